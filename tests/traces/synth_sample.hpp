// SPDX-License-Identifier: Apache-2.0
// A GPU and small jobs for the tests of traces/synth.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "traces/synth/synth.hpp"

namespace rehearse::synth {

inline pb::Gpu sample_gpu() {
  pb::Gpu gpu;
  gpu.set_model("NVIDIA H100 80GB HBM3");
  gpu.set_memory(int64_t{80} << 30);
  gpu.set_memory_bandwidth(3.35e12);
  gpu.set_compute_capability(90);
  gpu.set_sms(132);
  gpu.mutable_flops()->set_fp32(67e12);
  gpu.mutable_flops()->set_tf32(494e12);
  gpu.mutable_flops()->set_fp16(989e12);
  gpu.mutable_flops()->set_bf16(989e12);
  gpu.mutable_flops()->set_fp8(1979e12);
  gpu.mutable_nvlink()->set_generation(4);
  gpu.mutable_nvlink()->set_links(18);
  gpu.mutable_nvlink()->set_bandwidth(25e9);
  return gpu;
}

// A small GPT: 4 layers of 512, 4 micro-batches, 2 steps, one process.
inline pb::Synth small_gpt() {
  pb::Synth options;
  options.set_model("gpt");
  options.set_layers(4);
  options.set_hidden(512);
  options.set_heads(4);
  options.set_vocabulary(1024);
  options.set_sequence(256);
  options.set_micro_batch(1);
  options.set_micro_batches(4);
  options.set_dp(1);
  return options;
}

inline pb::Synth named(const std::string& model) {
  pb::Synth options;
  options.set_model(model);
  return options;
}

// Number and send-buffer bytes of one rank's calls by (group name before '/', collective).
struct CallCount {
  int64_t calls = 0;
  Bytes bytes = 0;
  bool operator==(const CallCount&) const = default;
};
using CallCounts = std::map<std::pair<std::string, traces::Collective>, CallCount>;

inline CallCounts count_calls(const traces::Trace& trace, traces::RankId rank) {
  CallCounts counts;
  for (const traces::Call& call : trace.ranks[rank].ops.calls) {
    const std::string& id = trace.communicators[call.communicator].id;
    CallCount& count = counts[{id.substr(0, id.find('/')), call.collective}];
    ++count.calls;
    count.bytes += std::max(call.bytes_in, call.bytes_out);
  }
  return counts;
}

}  // namespace rehearse::synth
