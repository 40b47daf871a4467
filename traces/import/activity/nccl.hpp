// SPDX-License-Identifier: Apache-2.0
// What NCCL was asked for, told by records beside its kernels: ranges of its own NVTX domain (ncclAllReduce,
// ncclGroupStart ... ncclGroupEnd) or events of its profiler plugin. Calls of one group are launched
// together at its end, so calls and kernels meet in windows: the stretch of a host thread in which a group
// launches. A window with more kernels than one is divided by communicator, else by order; what cannot be
// divided is told by the kernel's name alone, with a finding.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "traces/import/part.hpp"

namespace rehearse::traces::activity {

// One call of NCCL's API. A field that was not recorded keeps its default.
struct CallFacts {
  Collective collective = Collective::kAllReduce;
  uint64_t communicator = 0;
  Bytes message = -1;  // one rank's message, as NCCL counts it: what it sends, of reduce-scatter
                       // what it receives, of all-to-all, gather and scatter what goes to one peer
  DType dtype = DType::kUnknown;
  Reduction reduction = Reduction::kNone;
  int32_t peer = -1;  // root or peer in the communicator
};

// The collective of an API function ("ncclAllReduce") or of the plugin's name of it ("AllReduce").
[[nodiscard]] std::optional<Collective> collective_of_function(std::string_view function);
// ncclRedOp_t; kNone for numbers of the user's own operators.
[[nodiscard]] Reduction reduction_of(int64_t nccl_op);

class NcclCalls {
 public:
  // A range of NCCL's domain that covers one call of its API on a host thread.
  void range(LaneId lane, Nanos start, Nanos end, std::string_view name, const CallFacts& facts);
  // A window known otherwise, and what was called in it; they take the place of ranges. Kernels are tied
  // to it by the correlation id of their launch, or else by a launch between `from` and `to`.
  size_t window(LaneId lane, Nanos from, Nanos to);
  void add(size_t window, const CallFacts& facts) { told_[window].calls.push_back(facts); }
  void tie(int64_t correlation, size_t window) { ties_[correlation] = window; }
  // This rank's place in a communicator.
  void init(uint64_t communicator, uint32_t ranks, uint32_t rank);
  // Place in the largest communicator seen, usually that of the whole job.
  [[nodiscard]] std::optional<CommunicatorPlace> largest() const;
  // A kernel of NCCL, operation `op`, entry `call` of ops.calls.
  void kernel(size_t op, uint32_t call) { kernels_.push_back({op, call}); }
  [[nodiscard]] std::vector<int64_t> correlations(const Operations& ops) const;

  struct Launch {
    LaneId lane = 0;
    Nanos start = 0;
  };
  // Fills the calls of `part`, its communicators, launched, sized. `launches` by correlation id.
  void attach(RankPart& part, const std::unordered_map<int64_t, Launch>& launches,
              const Strings& strings, const std::string& where, Findings& findings);

 private:
  struct Range {
    LaneId lane = 0;
    Nanos start = 0, end = 0;
    enum class Kind : uint8_t { kCall, kGroupStart, kGroupEnd } kind = Kind::kCall;
    CallFacts facts;
  };
  struct Window {
    LaneId lane = 0;
    Nanos from = 0, to = 0;
    std::vector<CallFacts> calls;
    std::vector<size_t> kernels;  // into kernels_, in order of launch
  };
  struct Kernel {
    size_t op = 0;
    uint32_t call = 0;
  };

  [[nodiscard]] std::vector<Window> windows_of_ranges();
  [[nodiscard]] uint32_t communicator(RankPart& part, uint64_t id);
  void fill(RankPart& part, const Kernel& kernel, std::span<const CallFacts> calls,
            const Strings& strings, const std::string& where, Findings& findings);
  void fill_messages(RankPart& part, const Kernel& kernel, std::span<const CallFacts> calls);

  std::vector<Range> ranges_;
  std::vector<Window> told_;
  std::unordered_map<int64_t, size_t> ties_;
  std::vector<Kernel> kernels_;
  std::unordered_map<uint64_t, CommunicatorPlace> places_;
  std::unordered_map<uint64_t, uint32_t> table_;
  uint64_t groups_ = 0;  // of messages, so far
};

}  // namespace rehearse::traces::activity
