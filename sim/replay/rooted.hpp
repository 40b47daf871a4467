// SPDX-License-Identifier: Apache-2.0
// A broadcast, reduce, gather, scatter or send/recv whose members come at different times. NCCL
// moves data as far as it can: a message starts when its sender has come and either its receiver
// has, or the message fits into the buffers between them (8 slots per channel, the credit).
//
// Chain (broadcast, reduce: the data passes member after member). A message of S bytes with credit
// C lets `need` = ceil(S / C) buffers be filled one behind the other: the member at position p is
// done with it when everyone before p has come and the first member that is missing is at least
// `need` positions further. So a Reduce leaf runs ahead of a missing root when S <= C, or when
// enough members stand between them.
// Star (gather, scatter, a pair is the smallest): each message for itself; the root is done when
// all its messages are.
//
// Simplified: the part of a message above the credit starts when its receiver has come, not the
// first slots of it before.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <vector>

#include "sim/replay/shapes.hpp"

namespace rehearse::sim {

// In as much memory as its own members and messages take, however large the communicator; a pair's without the heap.
class RootedCall {
 public:
  using Hops = boost::container::small_vector<uint32_t, 2>;

  // `shape` must outlive this. Members in `absent` are not part of the program: taken to be there.
  RootedCall(const DeclaredShape& shape, traces::Collective collective,
             const std::vector<bool>& absent);

  void arrive(uint32_t member);
  // Messages that may start now and have not yet; they count as started from here on.
  [[nodiscard]] Hops take_startable();
  [[nodiscard]] bool is_everything(const Hops& hops) const { return hops.size() == hops_.size(); }
  void hop_ended(uint32_t hop);
  void all_hops_ended();
  // Has all that the member takes part in been done, and has it come?
  [[nodiscard]] bool may_leave(uint32_t member) const;

 private:
  // A member that sends or receives.
  struct Seat {
    uint32_t member = 0;
    uint32_t position = 0;   // chain
    uint32_t open_hops = 0;  // star
    bool here = false;
  };
  struct Hop {
    bool started = false, done = false;
  };
  // Past the last: it neither sends nor receives.
  [[nodiscard]] size_t seat_of(uint32_t member) const;

  const DeclaredShape& shape_;
  bool chain_;
  boost::container::small_vector<Seat, 2> seats_;  // by member
  boost::container::small_vector<Hop, 2> hops_;
  uint32_t prefix_ = 0;       // chain: positions from the first on that have come
  uint32_t started_ = 0;      // chain: hops from the first on
  uint32_t done_prefix_ = 0;  // chain: hops from the first on that are done
};

}  // namespace rehearse::sim
