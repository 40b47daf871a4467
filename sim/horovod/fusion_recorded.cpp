// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <unordered_map>

#include "sim/horovod/fusion.hpp"
#include "sim/scenario/cut_calls.hpp"
#include "sim/scenario/rebuild.hpp"
#include "traces/synth/fusion.hpp"

namespace rehearse::sim {
namespace {

using traces::Call;
using Key = std::pair<uint32_t, int64_t>;  // communicator, sequence number

// When a rank asked for each of its all-reduces: at the launch, where the recording has it, and in which of its steps.
struct Asked {
  Nanos at = 0;
  size_t step = 0;
  const Call* call = nullptr;
};

std::map<Key, Asked> asked_by(const traces::RankTrace& rank) {
  std::unordered_map<int64_t, Nanos> launched;
  for (size_t i = 0; i < rank.ops.size(); ++i) {
    const bool launch = rank.ops.kind[i] == traces::OpKind::kLaunch;
    if (launch && rank.ops.correlation[i] != 0) {
      launched.emplace(rank.ops.correlation[i], rank.ops.start[i]);
    }
  }
  std::map<Key, Asked> out;
  for (size_t i = 0; i < rank.ops.size(); ++i) {
    const Call* call = rank.ops.call(i);
    if (call == nullptr || call->collective != traces::Collective::kAllReduce) continue;
    const auto found = launched.find(rank.ops.correlation[i]);
    Asked asked{found == launched.end() ? rank.ops.start[i] : found->second, 0, call};
    asked.step = static_cast<size_t>(std::ranges::count_if(
        rank.steps, [&](const traces::Step& step) { return step.start <= asked.at; }));
    out.emplace(Key{call->communicator, call->sequence}, asked);
  }
  return out;
}

// All-reduces that Horovod would find ready in one cycle: they follow each other and are of one type.
std::map<Key, size_t> cycles_of(const traces::RankTrace& rank, Nanos cycle) {
  std::map<Key, size_t> out;
  const Key* before = nullptr;
  Asked first{}, last{};
  size_t number = 0;
  const std::map<Key, Asked> all = asked_by(rank);
  for (const auto& [key, asked] : all) {
    const bool together = before != nullptr && before->first == key.first &&
                          before->second + 1 == key.second && asked.step == first.step &&
                          asked.at - first.at < cycle && asked.call->dtype == last.call->dtype &&
                          asked.call->reduction == last.call->reduction;
    if (!together) {
      ++number;
      first = asked;
    }
    out[key] = number;
    last = asked;
    before = &key;
  }
  return out;
}

class Recorded {
 public:
  Recorded(const Scenario& scenario, traces::Program& program)
      : fusing_(fusing_of(scenario)), trace_(*scenario.trace), program_(program) {}

  Result<void> edit() {
    const auto changed = [](const RankFusing& f) { return f.wanted != f.recorded; };
    if (std::ranges::none_of(fusing_, changed)) return {};
    cycles_ = cycles_of(trace_.ranks.front(), fusing_.front().wanted.cycle);
    for (size_t r = 0; r < fusing_.size(); ++r) {
      const int at = program_.find(trace_.ranks[r].rank);
      if (at < 0) continue;
      auto done = edit(program_.ranks[static_cast<size_t>(at)], fusing_[r]);
      if (!done) return done;
    }
    if (assumed_ > 0) {
      program_.findings.add("tensors-assumed", Severity::kInfo, "HOROVOD_FUSION_THRESHOLD",
                            "which tensors a fused call holds is not recorded: of each that is "
                            "cut, tensors are taken to have 512 KiB",
                            assumed_);
    }
    return {};
  }

 private:
  // Calls of one cycle, by their place among the rank's calls.
  [[nodiscard]] std::vector<std::vector<size_t>> groups(const traces::RankProgram& rank) const {
    std::map<size_t, std::vector<size_t>> by_cycle;
    for (size_t c = 0; c < rank.calls.size(); ++c) {
      const Call& call = rank.calls[c];
      if (call.collective != traces::Collective::kAllReduce) continue;
      if (program_.communicators[call.communicator].members.size() < 2) continue;
      const auto at = cycles_.find({call.communicator, call.sequence});
      if (at != cycles_.end()) by_cycle[at->second].push_back(c);
    }
    std::vector<std::vector<size_t>> out;
    for (auto& [cycle, calls] : by_cycle) out.push_back(std::move(calls));
    return out;
  }

  // What becomes of the calls of one cycle: a buffer goes where its last tensor was.
  void pack(const traces::RankProgram& rank, const std::vector<size_t>& calls, Bytes threshold,
            std::map<traces::OpId, CallCut>& cuts) {
    std::vector<Bytes> tensors;
    std::vector<size_t> call_of;
    for (const size_t c : calls) {
      const Bytes all = std::max(rank.calls[c].bytes_in, rank.calls[c].bytes_out);
      if (all > threshold && all > kMeanTensor) ++assumed_;
      const Bytes each = all > threshold ? kMeanTensor : std::max<Bytes>(all, 1);
      for (Bytes left = all; left > 0; left -= std::min(left, each)) {
        tensors.push_back(std::min(left, each));
        call_of.push_back(c);
      }
      cuts[rank.call_op[c]];
    }
    size_t tensor = 0;
    for (const size_t count : synth::fusion_buffers(tensors, threshold)) {
      Bytes bytes = 0;
      for (const size_t end = tensor + count; tensor < end; ++tensor) bytes += tensors[tensor];
      const size_t c = call_of[tensor - 1];
      Call part = rank.calls[c];
      part.bytes_in = part.bytes_out = bytes;
      cuts[rank.call_op[c]].parts.push_back(part);
    }
  }

  Result<void> edit(traces::RankProgram& rank, const RankFusing& fusing) {
    if (auto written = write_out(rank, program_.steps); !written) return written;
    std::map<traces::OpId, CallCut> cuts;
    for (const auto& calls : groups(rank)) pack(rank, calls, fusing.wanted.threshold, cuts);
    // A collective waits half a cycle for its turn; what it waited for was recorded.
    const Nanos more = std::max<Nanos>(0, (fusing.wanted.cycle - fusing.recorded.cycle) / 2);
    for (size_t c = 0; c < rank.calls.size(); ++c) {
      if (traces::is_point_to_point(rank.calls[c].collective)) continue;
      const auto cut = cuts.find(rank.call_op[c]);
      if (cut == cuts.end()) {
        rank.gap[rank.call_op[c]] += more;
      } else if (!cut->second.parts.empty()) {
        cut->second.wait = more;
      }
    }
    std::map<uint32_t, int64_t> first;  // sequence number by communicator
    for (const Call& call : rank.calls) {
      if (traces::is_point_to_point(call.collective)) continue;
      const auto [at, fresh] = first.emplace(call.communicator, call.sequence);
      if (!fresh) at->second = std::min(at->second, call.sequence);
    }
    if (auto done = cut_calls(rank, program_.steps, cuts); !done) return done;
    for (Call& call : rank.calls) {
      if (!traces::is_point_to_point(call.collective)) call.sequence = first[call.communicator]++;
    }
    return {};
  }

  const std::vector<RankFusing> fusing_;
  const traces::Trace& trace_;
  traces::Program& program_;
  std::map<Key, size_t> cycles_;
  uint64_t assumed_ = 0;
};

}  // namespace

Result<void> fuse_recorded(const Scenario& scenario, traces::Program& program) {
  if (scenario.trace->header.has_synth() &&
      scenario.trace->header.synth().framework() == "horovod") {
    return {};
  }
  return Recorded(scenario, program).edit();
}

}  // namespace rehearse::sim
