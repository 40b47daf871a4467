// SPDX-License-Identifier: Apache-2.0
// The transfers of a program during a replay: copies and storage, each of one rank alone. Declared to the fabric
// before the run; a lane stops at each (RankLanes) until the bytes are through. In tags the part is the position
// among the rank's stops and the id the rank.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "sim/replay/link_users.hpp"
#include "sim/replay/replay.hpp"

namespace rehearse::sim {

class Transfers {
 public:
  Transfers() = default;
  // Asks `options.transfer` for each; those that take their recorded time are not stopped at. Fills
  // `out.transfer_begin` and `users`.
  static Result<Transfers> declare(const traces::Program& program, const ReplayOptions& options,
                                   Fabric& fabric, LinkUsers& users, Replayed& out);

  // Operations of a rank that stop their lane, ascending.
  [[nodiscard]] std::span<const OpId> stops(size_t rank) const { return stops_[rank]; }
  // No transfer's bytes move sooner after its lane has come to it; -1: there are none.
  [[nodiscard]] Nanos shortest_latency() const { return shortest_; }

  // The lane has come to `op` at `when`: a timer is set from which its bytes move.
  void arrive(size_t rank, OpId op, Nanos when, Fabric& fabric) const;
  // That timer. True: there is nothing to move, it has ended.
  [[nodiscard]] bool start(uint64_t tag, Fabric& fabric, Replayed& out);
  // One of its flows has ended. True: it was the last.
  [[nodiscard]] bool flow_ended(uint64_t tag);
  [[nodiscard]] OpId operation(uint64_t tag) const;

 private:
  struct Declared {
    Nanos latency = 0;
    uint32_t index = 0;  // into RankProgram::transfers
    uint32_t flows_left = 0;
    std::vector<std::pair<RouteId, double>> flows;
  };
  std::vector<std::vector<Declared>> declared_;  // by rank and stop
  std::vector<std::vector<OpId>> stops_;
  Nanos shortest_ = -1;
};

}  // namespace rehearse::sim
