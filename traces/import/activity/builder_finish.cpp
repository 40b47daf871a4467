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

std::vector<int64_t> Builder::correlations_to_keep() const {
  std::vector<int64_t> ids = nccl_.correlations(part_.trace.ops);
  for (const Wait& w : waits_) ids.push_back(w.correlation);
  for (const EventRecord& e : events_) ids.push_back(e.correlation);
  return ids;
}

int32_t Builder::lane_of_stream(int64_t context, int64_t stream) {
  const auto device = device_of_context_.find(context);
  if (stream < 0 || device == device_of_context_.end()) return -1;
  const auto lane = lanes_.find({LaneKind::kStream, device->second, context, stream});
  return lane ? static_cast<int32_t>(*lane) : -1;
}

void Builder::join_syncs() {
  Operations& ops = part_.trace.ops;
  uint64_t lost = 0;
  for (const Wait& w : waits_) {
    Sync* const sync = calls_.sync(w.correlation, ops);
    if (sync == nullptr) {
      ++lost;
      continue;
    }
    sync->event = event_key(w.context, w.event);
    if (w.type == 2 || w.type == 3) sync->stream_lane = lane_of_stream(w.context, w.stream);
  }
  for (const EventRecord& e : events_) {
    Sync* const sync = calls_.sync(e.correlation, ops);
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
    const auto op = calls_.find(id);
    // A graph was captured elsewhere: its launch says nothing about NCCL's calls.
    if (op && ops.kind[*op] != OpKind::kGraphLaunch) {
      launches[id] = {ops.lane[*op], ops.start[*op]};
    }
  }
  nccl_.attach(part_, launches, context_.strings, where_, context_.findings);
}

std::vector<RankPart> Builder::finish() {
  notes_.flush();
  calls_.join(part_.trace, correlations_to_keep(), where_, context_.findings);
  join_syncs();
  join_calls();
  part_.trace.steps = steps_from_names(named_steps_, where_, context_.findings);
  const ProcessDevices devices{lanes_.devices(), std::move(memory_devices_), false};
  const std::vector<int64_t> communicating = communicating_gpus(part_, devices);
  choose_gpu(part_.trace, device_work_, communicating.size(), where_, context_.findings);
  lanes_.name(part_.trace, communicating, context_.strings);
  calls_ = {};
  part_.trace.ops.sort();
  return ranks_of_process(std::move(part_), devices, where_, context_.findings);
}

}  // namespace rehearse::traces::activity
