// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "traces/import/activity/builder.hpp"
#include "traces/import/devices.hpp"

namespace rehearse::traces::activity {
namespace {

constexpr int64_t kNoEvent = 0xffffffff;  // CUPTI's "invalid" event id

uint64_t event_key(int64_t context, int64_t event) {
  if (event < 0 || event >= kNoEvent) return 0;
  return static_cast<uint64_t>(context) << 32 | static_cast<uint64_t>(event);
}

}  // namespace

void Builder::flush_repeats() {
  for (const Repeat& r : repeats_) {
    if (r.more > 0) context_.findings.add(r.id, r.severity, where_, r.advice, r.more);
  }
  repeats_.clear();
}

// Host calls and GPU work share correlation ids. A call of any name that put work on the GPU is a launch.
void Builder::join_launches() {
  Operations& ops = part_.trace.ops;
  std::stable_sort(api_.begin(), api_.end(),
                   [](const ApiOp& a, const ApiOp& b) { return a.correlation < b.correlation; });
  std::sort(gpu_correlations_.begin(), gpu_correlations_.end());
  uint64_t orphans = 0, duplicates = 0;
  auto call = api_.begin();
  for (size_t g = 0; g < gpu_correlations_.size(); ++g) {
    const int64_t id = gpu_correlations_[g];
    while (call != api_.end() && call->correlation < id) ++call;
    if (call == api_.end() || call->correlation != id) {
      ++orphans;
    } else if (OpKind& kind = ops.kind[call->op]; kind == OpKind::kHost) {
      kind = OpKind::kLaunch;
    }
  }
  for (size_t i = 1; i < api_.size(); ++i) {
    if (api_[i].correlation == api_[i - 1].correlation) ++duplicates;
  }
  if (orphans > 0) {
    context_.findings.add("gpu-work-without-launch", Severity::kInfo, where_,
                          "their launch was before the recording began; they start as recorded",
                          orphans);
  }
  if (duplicates > 0) {
    context_.findings.add("duplicate-correlation", Severity::kWarning, where_,
                          "several host calls claim the same GPU work; the first is taken",
                          duplicates);
  }
  gpu_correlations_ = {};
}

int32_t Builder::lane_of_stream(int64_t context, int64_t stream) {
  const auto device = device_of_context_.find(context);
  if (stream < 0 || device == device_of_context_.end()) return -1;
  const auto lane = lanes_.find({LaneKind::kStream, device->second, context, stream});
  return lane == lanes_.end() ? -1 : static_cast<int32_t>(lane->second);
}

void Builder::join_syncs() {
  Operations& ops = part_.trace.ops;
  const auto sync_of = [&](int64_t correlation) -> Sync* {
    const auto at = std::lower_bound(api_.begin(), api_.end(), correlation,
                                     [](const ApiOp& r, int64_t id) { return r.correlation < id; });
    if (correlation == 0 || at == api_.end() || at->correlation != correlation) return nullptr;
    return ops.kind[at->op] == OpKind::kSync ? &ops.syncs[ops.detail[at->op] - 1] : nullptr;
  };
  uint64_t lost = 0;
  for (const Wait& w : waits_) {
    Sync* const sync = sync_of(w.correlation);
    if (sync == nullptr) {
      ++lost;
      continue;
    }
    sync->event = event_key(w.context, w.event);
    if (w.type == 2 || w.type == 3) sync->stream_lane = lane_of_stream(w.context, w.stream);
  }
  for (const EventRecord& e : events_) {
    Sync* const sync = sync_of(e.correlation);
    if (sync == nullptr || sync->sync != SyncKind::kRecord) {
      ++lost;
      continue;
    }
    sync->event = event_key(e.context, e.event);
    sync->stream_lane = lane_of_stream(e.context, e.stream);
  }
  if (lost > 0) {
    context_.findings.add(
        "sync-without-call", Severity::kInfo, where_,
        "records of waits whose host call is no wait (such as cudaEventQuery), or "
        "is not in the trace, are not used",
        lost);
  }
  waits_ = {};
  events_ = {};
}

void Builder::join_calls() {
  Operations& ops = part_.trace.ops;
  std::unordered_map<int64_t, NcclCalls::Launch> launches;
  for (const int64_t id : nccl_.correlations(ops)) {
    const auto at = std::lower_bound(api_.begin(), api_.end(), id, [](const ApiOp& r, int64_t key) {
      return r.correlation < key;
    });
    // A graph was captured elsewhere: its launch says nothing about NCCL's calls.
    if (id != 0 && at != api_.end() && at->correlation == id &&
        ops.kind[at->op] != OpKind::kGraphLaunch) {
      launches[id] = {ops.lane[at->op], ops.start[at->op]};
    }
  }
  nccl_.attach(part_, launches, context_.strings, where_, context_.findings);
}

// Ranges named like steps: of the surest kind of name only, one after the other.
void Builder::find_steps() {
  if (steps_.empty()) return;
  const int family =
      std::min_element(steps_.begin(), steps_.end(), [](const auto& a, const auto& b) {
        return a.family < b.family;
      })->family;
  std::vector<Step> steps;
  for (const NamedStep& s : steps_) {
    if (s.family == family) steps.push_back(s.step);
  }
  std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
    return a.start != b.start ? a.start < b.start : a.end > b.end;
  });
  uint64_t inside = 0;
  for (const Step& s : steps) {
    if (part_.trace.steps.empty() || s.start >= part_.trace.steps.back().end) {
      part_.trace.steps.push_back(s);
    } else {
      ++inside;
    }
  }
  if (inside > 0) {
    context_.findings.add("steps-overlap", Severity::kInfo, where_,
                          "ranges named like steps that begin inside another one are no steps",
                          inside);
  }
}

void Builder::name_lanes(const std::vector<int64_t>& communicating) {
  std::vector<Lane>& lanes = part_.trace.lanes;
  const auto own = [&](int64_t gpu) {
    if (communicating.size() < 2) return gpu == int64_t{part_.trace.gpu};
    return std::binary_search(communicating.begin(), communicating.end(), gpu);
  };
  std::map<std::pair<int64_t, int64_t>, int> contexts;  // (device, stream) in how many contexts
  for (const LaneKey& key : lane_keys_) {
    if (key.kind == LaneKind::kStream) ++contexts[{key.device, key.id}];
  }
  for (size_t i = 0; i < lanes.size(); ++i) {
    const LaneKey& key = lane_keys_[i];
    if (key.kind == LaneKind::kStream) {
      std::string name = fmt::format("stream {}", key.id);
      if (contexts[{key.device, key.id}] > 1)
        name = fmt::format("context {} {}", key.context, name);
      if (!own(key.device)) name = fmt::format("gpu {} {}", key.device, name);
      lanes[i].name = context_.strings.intern(name);
      continue;
    }
    const auto label = labels_.find(key.id);
    lanes[i].name = label != labels_.end()
                        ? label->second
                        : context_.strings.intern(fmt::format("thread {}", key.id));
  }
}

std::vector<RankPart> Builder::finish() {
  flush_repeats();
  join_launches();
  join_syncs();
  join_calls();
  find_steps();
  if (const int64_t most = device(); most >= 0 && most < (int64_t{1} << 16)) {
    part_.trace.gpu = static_cast<uint32_t>(most);
  }
  ProcessDevices devices{{}, std::move(memory_devices_), false};
  for (const LaneKey& key : lane_keys_) {
    devices.of_lane.push_back(key.kind == LaneKind::kStream ? key.device : kNoDevice);
  }
  const std::vector<int64_t> communicating = communicating_gpus(part_, devices);
  if (device_work_.size() > 1 && communicating.size() < 2) {
    context_.findings.add(
        "several-devices", Severity::kWarning, where_,
        "the rank is taken to own the GPU with most work; the others' streams are kept",
        device_work_.size() - 1);
  }
  if (device_work_.empty()) {
    context_.findings.add("no-gpu-work", Severity::kWarning, where_,
                          "the trace holds host work only; record CUDA activity too");
  }
  name_lanes(communicating);
  api_ = {};
  part_.trace.ops.sort();
  return ranks_of_process(std::move(part_), devices, where_, context_.findings);
}

}  // namespace rehearse::traces::activity
