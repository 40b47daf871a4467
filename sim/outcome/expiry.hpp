// SPDX-License-Identifier: Apache-2.0
// Timers that run out in a run as it was replayed, which knows no timers. Each is a function of when calls were
// enqueued, when their members came, when they ended and which links were down:
//
//   watchdog      PyTorch: a call has not ended `timeout` after the host enqueued it, moving or not
//   stall-check   Horovod: a call waits for members for so long; slow transfers do not count
//   ib-retry      a flow over InfiniBand stands on a link that stays down for retries * 4.096 us * 2^timeout
//   socket        the same over TCP
//   launcher      a process has ended loudly and the launcher ends the others
//   memory        an allocation does not fit (no timer, but an end of the same kind)
//
// The first that ends the job ends everything: what the replay has after it did not happen (cut()).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/memory/account.hpp"
#include "sim/outcome/outcome.hpp"

namespace rehearse::sim {

// A collective as PyTorch's watchdog spells it: "ALLREDUCE" of all_reduce.
[[nodiscard]] std::string op_type_of(std::string_view collective);

struct Expiry {
  Nanos time = 0;
  uint32_t rank = 0;              // position in Program::ranks
  uint32_t meeting = UINT32_MAX;  // the call it is about; UINT32_MAX: none
  std::string timer, text, action;
  bool ends_job = false;
  LinkId link = platforms::kNoLink;  // the dead link behind it
};

// Of what ends or raises something at most one of a kind per rank, in order of (time, rank).
[[nodiscard]] std::vector<Expiry> expiries(const Scenario& scenario, const Evidence& evidence,
                                           std::span<const MemoryAccount> memory,
                                           Findings& findings);

// The run as it was up to `when`: later ends and arrivals never were.
[[nodiscard]] Replayed cut(const Evidence& evidence, Nanos when);

}  // namespace rehearse::sim
