// SPDX-License-Identifier: Apache-2.0
// In which order ranks issued calls of different groups (flight recorder). A rank that uses two communicators in another
// order than its peers does in each group what the others do; only the order tells. Peers that are not in both groups are
// compared by what the groups are for (their descriptions). Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/proto/outcome.pb.h"

namespace rehearse::faults {

struct CallOrder {
  uint32_t rank = 0;
  // It issued two neighbouring calls of different groups in another order than most of its peers in either group.
  bool other = false;
  // Which two, the first: counted among its neighbours of different groups as they should be. Nothing where the dump does
  // not go back to the first call.
  std::optional<int64_t> pair;
};

// Of every recorded rank, in the order of the dumps.
[[nodiscard]] std::vector<CallOrder> call_orders(const pb::Outcome& run);

// The only rank with another order; nothing: none, or several, where nobody can tell who is wrong.
[[nodiscard]] std::optional<CallOrder> only_other_order(const pb::Outcome& run);

}  // namespace rehearse::faults
