// SPDX-License-Identifier: Apache-2.0
// Published figures before and after a fix: a JSON list of objects (faults/fault_fix_pairs.json of the data folder), with what
// was wrong, what was done, the machine and the metric in words. What cannot be read is told, never guessed.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace rehearse::validation {

struct PublishedPair {
  std::string id;
  std::optional<double> before, after;  // none: no number ("hang", null)
  bool is_time = false;                 // less is better
  std::string fault_class, symptom, cause, fix, metric, hardware, nccl, source;

  // How many times as fast after the fix; none when a figure is missing.
  [[nodiscard]] std::optional<double> gain() const;
};

// In the order of the file; entries that are no objects or have no id are left out. kMissingInput, kBadInput when it is
// no such list.
[[nodiscard]] Result<std::vector<PublishedPair>> read_published_pairs(
    const std::filesystem::path& file);

}  // namespace rehearse::validation
