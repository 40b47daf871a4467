// SPDX-License-Identifier: Apache-2.0
// Flows of a route that shares no link with any other route: rings inside a node, a group with cards of its own. They
// share with each other only, evenly, so their ends follow without a solver. Exact; only the times told are rounded to
// nanoseconds. O(log flows) per start and end.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"

namespace rehearse::sim {

class LoneRoute {
 public:
  // What one flow alone gets.
  explicit LoneRoute(BytesPerSec rate) : rate_(rate * 1e-9) {}

  void start(Nanos now, double bytes, uint64_t tag);
  // Flows whose tag has these bits stand still for ever; true if there was one.
  bool halt(Nanos now, uint64_t mask, uint64_t bits);
  // When the next flow ends; -1: never. After the end of time: the latest time there is.
  [[nodiscard]] Nanos next_end() const;
  // At next_end(): takes out what ends then, tags in order of starts.
  [[nodiscard]] std::vector<uint64_t> take_ended(Nanos now);

 private:
  struct Flow {
    double until;  // of served_, when it has all its bytes
    uint64_t order;
    uint64_t tag;
    bool operator>(const Flow& o) const {
      return until != o.until ? until > o.until : order > o.order;
    }
  };
  // Bytes that each flow got up to `now`.
  void serve(Nanos now);
  // From as_of_ on, in nanoseconds and parts of them.
  [[nodiscard]] double to_next_end() const;

  double rate_;              // bytes per nanosecond
  std::vector<Flow> flows_;  // heap
  double served_ =
      0;  // bytes that a flow would have got that was there all the time since none was
  Nanos as_of_ = 0;
  double past_ =
      0;  // what served_ is ahead of as_of_, parts of a nanosecond: ends are rounded, sums are not
  uint64_t order_ = 0;
};

}  // namespace rehearse::sim
