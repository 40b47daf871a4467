// SPDX-License-Identifier: Apache-2.0
// Small traces written like a story, for tests: every line appends to the ranks it names. Each rank
// has a host thread that launches (5 us a call), a compute stream and a communication stream that
// waits for the compute stream at each call and is waited for by it.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "traces/model/trace.hpp"

namespace rehearse::tests {

class SmallTrace {
 public:
  explicit SmallTrace(uint32_t ranks);

  void kernel(uint32_t rank, Nanos duration, const char* name = "gemm");
  // On the compute stream.
  void copy(uint32_t rank, traces::CopyDirection direction, Bytes bytes, Nanos duration,
            const char* name = "Memcpy");
  // `rank` calls a collective on the communicator of `members`.
  void call(uint32_t rank, const std::vector<uint32_t>& members, traces::Collective collective,
            Bytes bytes);
  // All of `callers` call an all-reduce on the communicator of `members` (default: the callers).
  void all_reduce(const std::vector<uint32_t>& callers, Bytes bytes,
                  std::vector<uint32_t> members = {});
  void send(uint32_t from, uint32_t to, Bytes bytes);
  // Both send to each other in one group.
  void exchange(uint32_t a, uint32_t b, Bytes bytes);
  // Everything since the last call of this is one step.
  void end_step();

  [[nodiscard]] const traces::Trace& trace();

 private:
  struct Clock {
    Nanos host = 0, compute = 0, comm = 0;
    Nanos step = 0;
  };
  uint32_t communicator(const std::vector<uint32_t>& members);
  void enqueue_call(uint32_t rank, const traces::Call& call);
  void sync(uint32_t rank, traces::SyncKind kind, int stream, uint64_t event);

  traces::Trace trace_;
  std::vector<Clock> clock_;
  std::map<std::vector<uint32_t>, uint32_t> communicators_;
  std::map<std::tuple<uint32_t, uint32_t, int, int>, int64_t> sequence_;
  int64_t correlation_ = 0;
  uint64_t event_ = 0;
  uint64_t group_ = 0;
};

}  // namespace rehearse::tests
