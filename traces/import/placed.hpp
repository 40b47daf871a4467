// SPDX-License-Identifier: Apache-2.0
// Which rank each part of the files is. Ranks that files tell come first; the others are told by the names of their
// folders, else they get the lowest numbers that are free, in order of the numbers in their files' names.
#pragma once

#include <string>
#include <vector>

#include "base/finding.hpp"
#include "traces/import/part.hpp"

namespace rehearse::traces {

struct Placed {
  RankPart part;
  std::string file;
};

// Takes the ranks out of `parts`; ascending, none twice. What is assumed, joined or left out is a finding.
[[nodiscard]] std::vector<Placed> place_ranks(std::vector<FilePart>& parts, Findings& findings);

}  // namespace rehearse::traces
