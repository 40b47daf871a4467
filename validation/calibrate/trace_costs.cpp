// SPDX-License-Identifier: Apache-2.0
#include "validation/calibrate/trace_costs.hpp"

#include <algorithm>
#include <map>

#include "validation/statistics.hpp"

namespace rehearse::validation {
namespace {

using traces::CopyDirection;
using traces::OpKind;

constexpr size_t kFewestOperations = 20;
constexpr Bytes kLargeCopy = Bytes{1} << 20;  // smaller ones are latency

struct Collected {
  std::vector<double> launch, start, to_device, to_host;
};

void add_operations(const traces::RankTrace& rank, Collected& out) {
  const traces::Operations& ops = rank.ops;
  std::map<int64_t, Nanos> launched;    // correlation -> end of the launch
  std::map<uint16_t, Nanos> free_from;  // stream -> end of its last operation
  for (size_t i = 0; i < ops.size(); ++i) {
    const Nanos end = ops.start[i] + ops.duration[i];
    if (ops.kind[i] == OpKind::kLaunch) {
      out.launch.push_back(static_cast<double>(ops.duration[i]) * 1e-3);
      if (ops.correlation[i] != 0) launched[ops.correlation[i]] = end;
      continue;
    }
    if (ops.kind[i] == OpKind::kKernel) {
      const auto at = launched.find(ops.correlation[i]);
      const bool idle = free_from[ops.lane[i]] <= (at == launched.end() ? 0 : at->second);
      if (at != launched.end() && idle && ops.start[i] >= at->second) {
        out.start.push_back(static_cast<double>(ops.start[i] - at->second) * 1e-3);
      }
    }
    if (const traces::Copy* copy = ops.copy(i);
        copy != nullptr && copy->bytes >= kLargeCopy && ops.duration[i] > 0) {
      const double rate = static_cast<double>(copy->bytes) / static_cast<double>(ops.duration[i]);
      if (copy->direction == CopyDirection::kHostToDevice) out.to_device.push_back(rate);
      if (copy->direction == CopyDirection::kDeviceToHost) out.to_host.push_back(rate);
    }
    if (ops.kind[i] != OpKind::kHost && ops.kind[i] != OpKind::kSync) {
      Nanos& last = free_from[ops.lane[i]];
      last = std::max(last, end);
    }
  }
}

TraceCost cost_of(const char* what, const char* unit, const std::vector<double>& values,
                  const char* missing) {
  TraceCost out{what, unit, values.size(), values.size() >= kFewestOperations, 0, 0, 0, ""};
  if (!out.determined) {
    out.note = missing;
    return out;
  }
  out.median = quantile_of(values, .5);
  out.low = quantile_of(values, .25);
  out.high = quantile_of(values, .75);
  return out;
}

}  // namespace

std::vector<TraceCost> trace_costs(const traces::Trace& trace) {
  Collected all;
  for (const traces::RankTrace& rank : trace.ranks) add_operations(rank, all);
  return {cost_of("launch of a kernel on the host", "us", all.launch, "few launches were recorded"),
          cost_of("start of a kernel on an idle stream", "us", all.start,
                  "few kernels start on an idle stream"),
          cost_of("copy from host to GPU", "GB/s", all.to_device,
                  "few copies of 1 MiB and more were recorded"),
          cost_of("copy from GPU to host", "GB/s", all.to_host,
                  "few copies of 1 MiB and more were recorded")};
}

}  // namespace rehearse::validation
