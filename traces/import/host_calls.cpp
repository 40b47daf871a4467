// SPDX-License-Identifier: Apache-2.0
#include "traces/import/host_calls.hpp"

#include <algorithm>

namespace rehearse::traces {

// The ids are looked at in as many parts as keep the lists of one part small.
void HostCalls::join(RankTrace& trace, std::vector<int64_t> keep, const std::string& where,
                     Findings& findings) {
  constexpr size_t kMostAtOnce = size_t{3} << 20;
  std::sort(keep.begin(), keep.end());
  keep.erase(std::unique(keep.begin(), keep.end()), keep.end());
  Operations& ops = trace.ops;
  const size_t linked = ops.size() - static_cast<size_t>(std::count(ops.correlation.begin(),
                                                                    ops.correlation.end(), 0));
  const size_t parts = linked / kMostAtOnce + 1;
  const auto part_of = [&](int64_t id) {
    return parts == 1 ? 0 : (static_cast<uint64_t>(id) * 0x9e3779b97f4a7c15ULL >> 32) % parts;
  };
  uint64_t orphans = 0, duplicates = 0;
  std::vector<HostCall> host;
  std::vector<int64_t> gpu;
  for (size_t part = 0; part < parts; ++part) {
    host.clear();
    gpu.clear();
    for (size_t op = 0; op < ops.size(); ++op) {
      const int64_t id = ops.correlation[op];
      if (part_of(id) != part) continue;
      const bool on_stream = trace.lanes[ops.lane[op]].kind == LaneKind::kStream;
      if (id == 0) {
        orphans += on_stream ? 1 : 0;
      } else if (on_stream) {
        gpu.push_back(id);
      } else {
        host.push_back({id, static_cast<uint32_t>(op)});
      }
    }
    // Profilers count correlation ids upwards, so that there is mostly nothing to sort.
    if (!std::is_sorted(host.begin(), host.end(), before)) {
      std::stable_sort(host.begin(), host.end(), before);
    }
    if (!std::is_sorted(gpu.begin(), gpu.end())) std::sort(gpu.begin(), gpu.end());
    auto kept = keep.begin();
    size_t g = 0;
    for (size_t i = 0; i < host.size(); ++i) {
      const int64_t id = host[i].correlation;
      if (i > 0 && host[i - 1].correlation == id) ++duplicates;
      while (kept != keep.end() && *kept < id) ++kept;
      if (kept != keep.end() && *kept == id) kept_.push_back(host[i]);
      for (; g < gpu.size() && gpu[g] < id; ++g) ++orphans;
      if (g < gpu.size() && gpu[g] == id) {
        OpKind& kind = ops.kind[host[i].op];
        if (kind == OpKind::kHost) kind = OpKind::kLaunch;
        const bool again = i + 1 < host.size() && host[i + 1].correlation == id;
        while (!again && g < gpu.size() && gpu[g] == id) ++g;
      }
    }
    orphans += gpu.size() - g;
  }
  std::stable_sort(kept_.begin(), kept_.end(), before);
  if (orphans > 0) {
    findings.add(
        "gpu-work-without-launch", Severity::kInfo, where,
        "their launch was before the recording began, or is not told (no correlation id); they "
        "start as recorded",
        orphans);
  }
  if (duplicates > 0) {
    findings.add("duplicate-correlation", Severity::kWarning, where,
                 "several host calls claim the same GPU work; the first is taken", duplicates);
  }
}

std::optional<uint32_t> HostCalls::find(int64_t correlation) const {
  const auto at = std::lower_bound(kept_.begin(), kept_.end(), HostCall{correlation, 0}, before);
  if (correlation == 0 || at == kept_.end() || at->correlation != correlation) return std::nullopt;
  return at->op;
}

Sync* HostCalls::sync(int64_t correlation, Operations& ops) const {
  const auto op = find(correlation);
  return op && ops.kind[*op] == OpKind::kSync ? &ops.syncs[ops.detail[*op] - 1] : nullptr;
}

}  // namespace rehearse::traces
