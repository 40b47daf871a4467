// SPDX-License-Identifier: Apache-2.0
#include "validation/calibrate/trace_costs.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "validation/statistics.hpp"

namespace rehearse::validation {
namespace {

using traces::CopyDirection;
using traces::OpKind;

constexpr size_t kFewestOperations = 20;
constexpr size_t kFewestOfAName = 5;          // kernels alone and beside a collective
constexpr Bytes kLargeCopy = Bytes{1} << 20;  // smaller ones are latency
constexpr double kMostOverlapApart = .1, kLeastOverlap = .9;

struct Span {
  Nanos start = 0, end = 0;
};

// Collectives of a rank, in order, joined where they overlap.
std::vector<Span> busy_with_calls(const traces::Operations& ops) {
  std::vector<Span> out;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops.call(i) == nullptr) continue;
    const Span span{ops.start[i], ops.start[i] + ops.duration[i]};
    if (!out.empty() && span.start <= out.back().end) {
      out.back().end = std::max(out.back().end, span.end);
    } else {
      out.push_back(span);
    }
  }
  return out;
}

// Share of a span that lies in one of `spans`.
double share_inside(const Span& of, const std::vector<Span>& spans) {
  auto at = std::partition_point(spans.begin(), spans.end(),
                                 [&](const Span& s) { return s.end <= of.start; });
  Nanos inside = 0;
  for (; at != spans.end() && at->start < of.end; ++at) {
    inside += std::min(at->end, of.end) - std::max(at->start, of.start);
  }
  return of.end > of.start ? static_cast<double>(inside) / static_cast<double>(of.end - of.start)
                           : 0;
}

struct Collected {
  std::vector<double> launch, start, to_device, to_host, beside;
};

// Median time of each kind of kernel beside collectives over that alone.
void add_beside(const traces::RankTrace& rank, std::vector<double>& out) {
  const std::vector<Span> calls = busy_with_calls(rank.ops);
  std::map<uint32_t, std::array<std::vector<double>, 2>> by_name;
  for (size_t i = 0; i < rank.ops.size(); ++i) {
    if (rank.ops.kind[i] != OpKind::kKernel || rank.ops.duration[i] <= 0) continue;
    const double share =
        share_inside({rank.ops.start[i], rank.ops.start[i] + rank.ops.duration[i]}, calls);
    if (share > kMostOverlapApart && share < kLeastOverlap) continue;
    by_name[rank.ops.name[i]][share >= kLeastOverlap ? 1 : 0].push_back(
        static_cast<double>(rank.ops.duration[i]));
  }
  for (const auto& [name, both] : by_name) {
    if (both[0].size() < kFewestOfAName || both[1].size() < kFewestOfAName) continue;
    // As often as it was seen beside one.
    out.insert(out.end(), both[1].size(), quantile_of(both[1], .5) / quantile_of(both[0], .5));
  }
}

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
  add_beside(rank, out.beside);
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
                  "few copies of 1 MiB and more were recorded"),
          cost_of("time of a kernel beside a collective over alone", "", all.beside,
                  "no kernel was recorded often both beside a collective and alone")};
}

}  // namespace rehearse::validation
