// SPDX-License-Identifier: Apache-2.0
// Who or what stands out in an outcome: the places at which diagnosis tries a fault. Pure
// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "sim/proto/outcome.pb.h"
#include "sim/proto/scenario.pb.h"

namespace rehearse::faults {

struct Suspects {
  std::set<uint32_t> ranks;
  std::set<uint32_t> nodes;
  std::set<std::pair<uint32_t, uint32_t>> gpus;  // node, index in the node
  std::set<std::pair<uint32_t, uint32_t>> nics;
  std::set<std::string> links;
  // Sequence number of the collective that the others wait in.
  std::optional<int64_t> sequence;
};

// From culprits, from who is waited for in a hang, from ranks and nodes whose GPUs are busy longer
// than the others', from the link that is used far more than its like, and from NICs that carry
// nothing although most do. `document` is the expanded scenario.
[[nodiscard]] Suspects find_suspects(const pb::Outcome& outcome, const pb::Scenario& document);

}  // namespace rehearse::faults
