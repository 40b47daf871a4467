// SPDX-License-Identifier: Apache-2.0
// The timers that watch a run, as a rank's environment sets them: what they wait for is decided elsewhere
// (sim/outcome/expiry.hpp). Defaults are those of the libraries, with their sources:
//
//   PyTorch   torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp and torch/distributed/constants.py
//   NCCL      src/transport/net_ib.cc (timeout 14, from 2.14 on 18, from 2.23 on 20; 7 retries), src/misc/socket.cc
//   Horovod   horovod/common/stall_inspector.h
//   Linux     sim/timers/retries.hpp
#pragma once

#include <algorithm>
#include <map>
#include <string>

#include "base/finding.hpp"
#include "base/units.hpp"
#include "sim/proto/scenario.pb.h"

namespace rehearse::sim {

// TORCH_NCCL_ASYNC_ERROR_HANDLING.
enum class ErrorHandling { kNone = 0, kTearDown = 1, kCleanUpOnly = 2, kSkipCleanUp = 3 };

struct TorchTimers {
  Nanos timeout = 0;  // of a collective, from the moment the host enqueues it; 0: none
  ErrorHandling handling = ErrorHandling::kSkipCleanUp;
  bool desync_debug = false;   // TORCH_NCCL_DESYNC_DEBUG: what runs out says how far every rank was
  bool blocking_wait = false;  // the host waits and raises; the watchdog does not
  bool monitoring = true;
  Nanos heartbeat = 0;     // the monitor ends a process whose watchdog is stuck for so long
  Nanos dump_wait = 0;     // between noticing and tearing down, when dumps are on
  Nanos coordination = 0;  // how often a rank asks the store whether another has timed out
  int64_t records = 2000;  // the last calls of the rank that a dump holds; 0: it leaves none
  // Does a collective that is late end anything?
  [[nodiscard]] bool acts() const {
    return timeout > 0 && (handling != ErrorHandling::kNone || blocking_wait);
  }
};

struct HorovodTimers {
  bool checks = true;
  Nanos warning = 0;
  Nanos shutdown = 0;  // 0: never
};

struct NetworkTimers {
  Nanos ib_timeout =
      0;  // between two tries of a queue pair: 4.096 us * 2^NCCL_IB_TIMEOUT; 0: for ever
  int ib_retries = 0;
  Nanos connect = 0;      // all tries of a socket to connect: sleep * (1 + 2 + ... + retries)
  int connect_tries = 0;  // retries of it
  Nanos tcp = 0;          // an established connection without an answer
  // From the first lost packet to the error; 0: never. Without retries the first timeout is the error.
  [[nodiscard]] Nanos ib_total() const { return ib_timeout * std::max(1, ib_retries); }
};

struct RankTimers {
  pb::Framework framework = pb::FRAMEWORK_UNSPECIFIED;
  TorchTimers torch;
  HorovodTimers horovod;
  NetworkTimers network;
};

// `env` is the rank's whole environment (environment_of). Values that the library would not understand are
// findings, and its default holds.
[[nodiscard]] RankTimers timers_of(const pb::Launch& launch,
                                   const std::map<std::string, std::string>& env,
                                   Findings& findings);

// How long the launcher takes to notice a process that has ended and to end the others; -1: it does not look
// (ranks started by hand).
[[nodiscard]] Nanos launcher_notices(const pb::Launch& launch);

}  // namespace rehearse::sim
