// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "traces/import/devices.hpp"
#include "traces/import/kineto/builder.hpp"
#include "traces/import/limits.hpp"

namespace rehearse::traces::kineto {
namespace {

void describe_gpu(const Metadata& metadata, bool worked, RankTrace& trace) {
  std::set<int64_t> devices;  // two members of the document may list the same
  for (const Device& d : metadata.devices) {
    devices.insert(d.id);
    // Without a kernel any of them tells what kind they are.
    if (d.id != int64_t{trace.gpu} && (worked || !trace.gpu_model.empty())) continue;
    trace.gpu_model = d.name;
    trace.gpu_memory = std::max<Bytes>(d.memory, 0);
  }
  trace.visible_gpus = static_cast<uint32_t>(std::min<size_t>(devices.size(), 1024));
}

}  // namespace

void Builder::flush_repeats() {
  for (const Repeat& r : repeats_) {
    if (r.more > 0) context_.findings.add(r.id, r.severity, file_, r.advice, r.more);
  }
  repeats_.clear();
}

// Correlation ids by which later joins look for a host call, ascending.
std::vector<int64_t> Builder::correlations_to_keep() const {
  std::vector<int64_t> ids = communication_.correlations(part_.trace.ops);
  for (const SyncDetail& d : sync_details_) {
    ids.push_back(d.correlation);
    if (d.record > 0) ids.push_back(d.record);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

// Host calls and GPU work share correlation ids. A call of any name that put work on the GPU is a
// launch. The ids are looked at in as many parts as keep the lists of one part small.
void Builder::join_launches() {
  constexpr size_t kMostAtOnce = size_t{3} << 20;
  Operations& ops = part_.trace.ops;
  const std::vector<Lane>& lanes = part_.trace.lanes;
  const std::vector<int64_t> keep = correlations_to_keep();
  const size_t linked = ops.size() - static_cast<size_t>(std::count(ops.correlation.begin(),
                                                                    ops.correlation.end(), 0));
  const size_t parts = linked / kMostAtOnce + 1;
  const auto part_of = [&](int64_t id) {
    return parts == 1 ? 0 : (static_cast<uint64_t>(id) * 0x9e3779b97f4a7c15ULL >> 32) % parts;
  };
  const auto by_id = [](const RuntimeOp& a, const RuntimeOp& b) {
    return a.correlation < b.correlation;
  };
  uint64_t orphans = 0, duplicates = 0;
  std::vector<RuntimeOp> host;
  std::vector<int64_t> gpu;
  for (size_t part = 0; part < parts; ++part) {
    host.clear();
    gpu.clear();
    for (size_t op = 0; op < ops.size(); ++op) {
      const int64_t id = ops.correlation[op];
      if (id == 0 || part_of(id) != part) continue;
      if (lanes[ops.lane[op]].kind == LaneKind::kStream) {
        gpu.push_back(id);
      } else {
        host.push_back({id, static_cast<uint32_t>(op)});
      }
    }
    // Profilers count correlation ids upwards, so that there is mostly nothing to sort.
    if (!std::is_sorted(host.begin(), host.end(), by_id)) {
      std::stable_sort(host.begin(), host.end(), by_id);
    }
    if (!std::is_sorted(gpu.begin(), gpu.end())) std::sort(gpu.begin(), gpu.end());
    auto kept = keep.begin();
    size_t g = 0;
    for (size_t i = 0; i < host.size(); ++i) {
      const int64_t id = host[i].correlation;
      if (i > 0 && host[i - 1].correlation == id) ++duplicates;
      while (kept != keep.end() && *kept < id) ++kept;
      if (kept != keep.end() && *kept == id) runtime_.push_back(host[i]);
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
  std::stable_sort(runtime_.begin(), runtime_.end(), by_id);
  if (orphans > 0) {
    context_.findings.add("gpu-work-without-launch", Severity::kInfo, file_,
                          "their launch was before the recording began; they start as recorded",
                          orphans);
  }
  if (duplicates > 0) {
    context_.findings.add("duplicate-correlation", Severity::kWarning, file_,
                          "several host calls claim the same GPU work; the first is taken",
                          duplicates);
  }
}

// cuda_sync tells which stream and event a synchronising call waited for, and who recorded that
// event.
void Builder::join_syncs() {
  Operations& ops = part_.trace.ops;
  const auto sync_of = [&](int64_t correlation) -> Sync* {
    const auto at =
        std::lower_bound(runtime_.begin(), runtime_.end(), correlation,
                         [](const RuntimeOp& r, int64_t id) { return r.correlation < id; });
    if (at == runtime_.end() || at->correlation != correlation) return nullptr;
    const uint32_t op = at->op;
    return ops.kind[op] == OpKind::kSync ? &ops.syncs[ops.detail[op] - 1] : nullptr;
  };
  const auto stream_lane = [&](int64_t device, int64_t stream) -> int32_t {
    const auto lane = lanes_.find({LaneKind::kStream, device, stream});
    return stream < 0 || lane == lanes_.end() ? -1 : static_cast<int32_t>(lane->second);
  };
  uint64_t lost = 0;
  for (const SyncDetail& d : sync_details_) {
    Sync* const sync = sync_of(d.correlation);
    if (sync == nullptr) {
      ++lost;
      continue;
    }
    sync->event = d.event > 0 ? static_cast<uint64_t>(d.event) : 0;
    sync->stream_lane = stream_lane(d.device, d.stream);
    if (sync->sync == SyncKind::kEvent) sync->stream_lane = stream_lane(d.device, d.wait_stream);
    if (Sync* const record = d.record > 0 ? sync_of(d.record) : nullptr;
        record != nullptr && record->sync == SyncKind::kRecord) {
      record->event = sync->event;
      record->stream_lane = stream_lane(d.device, d.wait_stream);
    }
  }
  if (lost > 0) {
    context_.findings.add("sync-without-call", Severity::kInfo, file_,
                          "cuda_sync records whose host call is not in the trace are not used",
                          lost);
  }
  sync_details_ = {};
}

void Builder::join_calls(const Metadata& metadata) {
  Operations& ops = part_.trace.ops;
  std::unordered_map<int64_t, Communication::Launch> launches;
  for (const int64_t id : communication_.correlations(ops)) {
    const auto at =
        std::lower_bound(runtime_.begin(), runtime_.end(), id,
                         [](const RuntimeOp& r, int64_t key) { return r.correlation < key; });
    if (id != 0 && at != runtime_.end() && at->correlation == id) {
      launches[id] = {ops.lane[at->op], ops.start[at->op]};
    }
  }
  communication_.attach(part_, metadata, launches, context_.strings, file_, context_.findings);
}

void Builder::name_lanes(const std::vector<int64_t>& communicating) {
  std::vector<Lane>& lanes = part_.trace.lanes;
  const auto own = [&](int64_t device) {
    if (communicating.size() < 2) return device == int64_t{part_.trace.gpu};
    return std::binary_search(communicating.begin(), communicating.end(), device);
  };
  for (size_t i = 0; i < lanes.size(); ++i) {
    const LaneKey& key = lane_keys_[i];
    if (key.kind == LaneKind::kStream) {
      lanes[i].name = context_.strings.intern(
          own(key.owner) ? fmt::format("stream {}", key.id)
                         : fmt::format("gpu {} stream {}", key.owner, key.id));
      continue;
    }
    const auto label = labels_.find(key);
    lanes[i].name = label != labels_.end()
                        ? label->second
                        : context_.strings.intern(fmt::format("thread {}", key.id));
  }
}

void Builder::choose_gpu(const std::vector<int64_t>& communicating) {
  if (device_kernels_.empty()) {
    context_.findings.add(
        "no-gpu-work", Severity::kWarning, file_,
        "the trace holds host work only; record with the CUDA activity switched on");
    return;
  }
  std::pair<int64_t, uint64_t> most{-1, 0};
  for (const auto& [device, count] : device_kernels_) {
    if (count > most.second || (count == most.second && device < most.first))
      most = {device, count};
  }
  if (device_kernels_.size() > 1 && communicating.size() < 2) {
    context_.findings.add(
        "several-devices", Severity::kWarning, file_,
        "the rank is taken to own the GPU with most work; the others' streams are kept",
        device_kernels_.size() - 1);
  }
  if (most.first >= 0 && most.first < (int64_t{1} << 16))
    part_.trace.gpu = static_cast<uint32_t>(most.first);
}

std::vector<RankPart> Builder::finish(const Metadata& metadata) {
  RankTrace& trace = part_.trace;
  flush_repeats();
  join_launches();
  join_syncs();
  join_calls(metadata);
  ProcessDevices devices{{}, std::move(memory_devices_), true};
  for (const LaneKey& key : lane_keys_) {
    devices.of_lane.push_back(key.kind == LaneKind::kStream ? key.owner : kNoDevice);
  }
  const std::vector<int64_t> communicating = communicating_gpus(part_, devices);
  choose_gpu(communicating);
  name_lanes(communicating);
  const auto latest = std::max_element(trace.ops.start.begin(), trace.ops.start.end());
  if (metadata.base != 0 && latest != trace.ops.start.end() && *latest > kLatest - metadata.base) {
    context_.findings.add("bad-base-time", Severity::kWarning, file_ + ", baseTimeNanoseconds",
                          "the number makes no sense; times are taken without it");
  } else if (metadata.base != 0) {
    for (Nanos& start : trace.ops.start) start += metadata.base;
    for (Nanos& at : part_.launched) at += metadata.base;
    for (Step& s : trace.steps) {
      s.start += metadata.base;
      s.end += metadata.base;
    }
  }
  std::stable_sort(trace.steps.begin(), trace.steps.end(), [](const Step& a, const Step& b) {
    return a.start != b.start ? a.start < b.start : a.number < b.number;
  });
  trace.steps.erase(std::unique(trace.steps.begin(), trace.steps.end(),
                                [](const Step& a, const Step& b) { return a.number == b.number; }),
                    trace.steps.end());
  runtime_ = {};
  trace.ops.sort();
  std::vector<RankPart> ranks =
      ranks_of_process(std::move(part_), devices, file_, context_.findings);
  for (RankPart& rank : ranks) describe_gpu(metadata, !device_kernels_.empty(), rank.trace);
  return ranks;
}

}  // namespace rehearse::traces::kineto
