// SPDX-License-Identifier: Apache-2.0
// How long work takes, from the data sheet of a GPU:
//
//   kernel      max(flops / (peak * e_flops), bytes / (memory bandwidth * e_memory)) + overhead
//   collective  latency + bytes on the busiest link / bandwidth (ring; nominal, a replay computes its own)
//
// Blind spots: no cache reuse, no tile quantisation, no clock throttling. The efficiencies are
// assumptions until a platform is calibrated; `Efficiencies` is the one table of them.
#pragma once

#include <string>

#include "base/units.hpp"
#include "platforms/proto/platform.pb.h"
#include "traces/model/trace.hpp"

namespace rehearse::synth {

// Shares of the data sheet reached. Assumptions, each a round value inside the range in its
// comment.
struct Efficiencies {
  double gemm = 0.60;         // large cuBLAS GEMMs run at 0.5-0.75 of the dense peak
  double attention = 0.40;    // fused attention, forward and backward: 0.3-0.6
  double convolution = 0.40;  // cuDNN NHWC training convolutions: 0.2-0.5
  double memory = 0.80;       // streaming kernels: 0.75-0.9 of the memory bandwidth
  double pointwise = 0.80;    // the same, of norms and elementwise kernels of a transformer's layer
  double gather = 0.40;       // embedding rows at random places: 0.3-0.6
  double link = 0.75;         // NVLink bus bandwidth NCCL reaches of the data sheet: 0.7-0.85
};

// Fixed times, assumptions of the same kind.
struct FixedTimes {
  Nanos kernel = 1'500;             // start and drain of a kernel
  Nanos launch = 4'000;             // cudaLaunchKernel on the host
  Nanos dispatch = 2'500;           // framework work before a launch
  Nanos event_call = 1'000;         // cudaEventRecord, cudaStreamWaitEvent
  Nanos launch_to_start = 2'000;    // end of a launch call to start of the kernel on an idle stream
  Nanos hand_over = 20'000;         // from one host thread to another
  Nanos data_loading = 150'000;     // next() of a data loader that keeps up
  Nanos negotiation = 200'000;      // Horovod: coordinator round for a set of ready tensors
  Nanos collective_local = 12'000;  // start of a collective inside one node
  Nanos collective_remote = 30'000;
  Nanos per_hop_local = 700;  // per member of a ring
  Nanos per_hop_remote = 1'500;
};
constexpr FixedTimes kTimes;
// Network per GPU when a group spans nodes, and NVLink-less peers: assumptions (400 Gb/s; PCIe 4
// x16).
constexpr double kRemoteBandwidth = 45e9;
constexpr double kPcieBandwidth = 20e9;
constexpr double kHostCopyBandwidth = 20e9;

class Costs {
 public:
  // kBadInput when the data sheet has no rate for `dtype` or no memory bandwidth.
  static Result<Costs> create(const pb::Gpu& gpu, const std::string& dtype,
                              const Efficiencies& efficiencies);
  [[nodiscard]] Nanos gemm(double flops, double bytes) const;
  [[nodiscard]] Nanos attention(double flops, double bytes) const;
  [[nodiscard]] Nanos convolution(double flops, double bytes) const;
  [[nodiscard]] Nanos stream(double bytes) const;
  [[nodiscard]] Nanos pointwise(double bytes) const;
  [[nodiscard]] Nanos gather(double bytes) const;
  [[nodiscard]] Nanos host_copy(double bytes) const;
  // `bytes`: the whole buffer (all-reduce, all-to-all, send) or the gathered one (all-gather,
  // reduce-scatter).
  [[nodiscard]] Nanos collective(traces::Collective kind, Bytes bytes, uint32_t members,
                                 bool spans_nodes) const;
  [[nodiscard]] traces::DType dtype() const { return dtype_; }
  [[nodiscard]] int element() const { return traces::size_of(dtype_); }

 private:
  [[nodiscard]] Nanos kernel(double flops, double efficiency, double bytes,
                             double memory_efficiency) const;
  Efficiencies efficiency_;
  double peak_ = 0, memory_ = 0, link_ = 0;
  traces::DType dtype_ = traces::DType::kBf16;
};

}  // namespace rehearse::synth
