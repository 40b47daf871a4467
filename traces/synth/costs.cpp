// SPDX-License-Identifier: Apache-2.0
#include "traces/synth/costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace rehearse::synth {
namespace {

struct Rate {
  double peak;
  traces::DType dtype;
};

Rate rate_of(const pb::Flops& flops, const std::string& dtype) {
  if (dtype == "fp32") return {flops.fp32(), traces::DType::kFp32};
  if (dtype == "tf32") return {flops.tf32(), traces::DType::kFp32};
  if (dtype == "fp16") return {flops.fp16(), traces::DType::kFp16};
  // Transformer Engine multiplies in fp8 but keeps and sends bf16.
  if (dtype == "fp8") return {flops.fp8(), traces::DType::kBf16};
  return {flops.bf16(), traces::DType::kBf16};
}

}  // namespace

Result<Costs> Costs::create(const pb::Gpu& gpu, const std::string& dtype,
                            const Efficiencies& efficiencies) {
  const Rate rate = rate_of(gpu.flops(), dtype);
  const std::string where = gpu.model().empty() ? gpu.like() : gpu.model();
  if (!(rate.peak > 0))
    return fail(Code::kBadInput, fmt::format("the data sheet gives no {} rate", dtype), where,
                "choose a dtype this GPU computes in, or add flops." + dtype);
  if (!(gpu.memory_bandwidth() > 0))
    return fail(Code::kBadInput, "the data sheet gives no memory bandwidth", where,
                "add memory_bandwidth to the GPU");
  Costs costs;
  costs.efficiency_ = efficiencies;
  const double speed = gpu.speed() > 0 ? gpu.speed() : 1.0;
  costs.peak_ = rate.peak * speed;
  costs.dtype_ = rate.dtype;
  costs.memory_ = gpu.memory_bandwidth();
  const double nvlink = gpu.nvlink().links() * gpu.nvlink().bandwidth();
  costs.link_ = nvlink > 0 ? nvlink * costs.efficiency_.link : kPcieBandwidth;
  return costs;
}

Nanos Costs::kernel(double flops, double efficiency, double bytes, double memory_efficiency) const {
  const double compute = flops / (peak_ * efficiency);
  const double transfer = bytes / (memory_ * memory_efficiency);
  return kTimes.kernel + std::llround(1e9 * std::max(compute, transfer));
}

Nanos Costs::gemm(double flops, double bytes) const {
  return kernel(flops, efficiency_.gemm, bytes, efficiency_.memory);
}
Nanos Costs::attention(double flops, double bytes) const {
  return kernel(flops, efficiency_.attention, bytes, efficiency_.memory);
}
Nanos Costs::convolution(double flops, double bytes) const {
  return kernel(flops, efficiency_.convolution, bytes, efficiency_.memory);
}
Nanos Costs::stream(double bytes) const { return kernel(0, 1, bytes, efficiency_.memory); }
Nanos Costs::pointwise(double bytes) const { return kernel(0, 1, bytes, efficiency_.pointwise); }
Nanos Costs::gather(double bytes) const { return kernel(0, 1, bytes, efficiency_.gather); }
Nanos Costs::host_copy(double bytes) const {
  return kTimes.kernel + std::llround(1e9 * bytes / kHostCopyBandwidth);
}

Nanos Costs::collective(traces::Collective kind, Bytes bytes, uint32_t members,
                        bool spans_nodes) const {
  const double n = members;
  const double passes = kind == traces::Collective::kAllReduce ? 2 * (n - 1) / n
                        : traces::is_point_to_point(kind)      ? 1
                                                               : (n - 1) / n;
  const double bandwidth = spans_nodes ? kRemoteBandwidth : link_;
  const Nanos latency = spans_nodes ? kTimes.collective_remote : kTimes.collective_local;
  const Nanos hop = spans_nodes ? kTimes.per_hop_remote : kTimes.per_hop_local;
  // Beyond a few dozen members NCCL leaves the ring for trees: hops stop growing linearly.
  const auto hops = static_cast<Nanos>(std::min(members, 32u));
  return latency + hop * hops + std::llround(1e9 * passes * static_cast<double>(bytes) / bandwidth);
}

}  // namespace rehearse::synth
