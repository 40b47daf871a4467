// SPDX-License-Identifier: Apache-2.0
// Who or what stands out in the evidence: the places at which diagnosis tries a fault, and what kind of
// straggler it is. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "faults/diagnose/changes.hpp"
#include "sim/proto/outcome.pb.h"
#include "sim/proto/scenario.pb.h"

namespace rehearse::faults {

// How findings of logs name an adapter: "on node 1 adapter 3 ...".
constexpr const char* kOfNode = "on node ";

struct Suspects {
  std::vector<uint32_t> ranks;  // most suspect first
  std::vector<uint32_t> nodes;
  std::vector<std::pair<uint32_t, uint32_t>> gpus;  // node, index in the node
  std::vector<std::pair<uint32_t, uint32_t>> nics;
  std::vector<std::string> links;
  std::vector<std::string> groups;  // of ranks that are late together: "0-7"
  // Sequence number of the collective that the others wait in.
  std::optional<int64_t> sequence;
  // Which two neighbouring calls of different groups the first rank issued in another order than its peers.
  std::optional<int64_t> pair;
  // When the run stopped, and after how many whole steps.
  std::optional<int64_t> moment;
  std::optional<uint32_t> steps;
  // Size that one rank brought to a call, over that of the others.
  std::optional<double> size_ratio;
};

// From who is waited for in a hang, who failed first, who did not come up, whose compute or host time
// rose, who waits least while the others wait, whose memory rose, from links that are busier than
// before and NICs that carry nothing although most do, and ranks that were not recorded. `document` is the expanded
// scenario; `pace` turns times of the evidence into times of the simulated job.
[[nodiscard]] Suspects find_suspects(const pb::Outcome& outcome, const Changes& changes,
                                     const pb::Scenario& document, double pace);

// Ranks, and nodes with them, that are started otherwise than they should be, before all other suspects.
void add_configured(const pb::Launch& configured, const pb::Launch& healthy, Suspects& suspects);

// fixed-rank, fixed-node, fixed-stage (a group of ranks in several nodes), everyone, random (some ranks more
// than others, none alone), rotating (some ranks held up by their hosts in turn); empty: nobody is late.
[[nodiscard]] std::string straggler_kind(const Changes& changes, const pb::Scenario& document);

}  // namespace rehearse::faults
