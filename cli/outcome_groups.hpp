// SPDX-License-Identifier: Apache-2.0
// What many ranks of an outcome have in common, said once. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "sim/proto/outcome.pb.h"

namespace rehearse::cli {

// The same text from several ranks, in order of first appearance.
struct SameText {
  std::string text;             // without "[Rank N] " before it
  std::vector<uint32_t> ranks;  // ascending
};
[[nodiscard]] std::vector<SameText> same_texts(const pb::Outcome& outcome);

// Ranks that wait in the same call for the same ranks, by communicator and sequence.
struct SameWait {
  const pb::Wait* wait = nullptr;  // of one of them
  std::vector<uint32_t> ranks;     // ascending
  std::vector<uint32_t> wanted;
};
[[nodiscard]] std::vector<SameWait> same_waits(const pb::Outcome& outcome);

// "rank 6", "node 1", "link node0/mlx5_0/tx".
[[nodiscard]] std::string place_of(const pb::Culprit& culprit);

}  // namespace rehearse::cli
