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

// Correlation ids by which later joins look for a host call.
std::vector<int64_t> Builder::correlations_to_keep() const {
  std::vector<int64_t> ids = communication_.correlations(part_.trace.ops);
  for (const SyncDetail& d : sync_details_) {
    ids.push_back(d.correlation);
    if (d.record > 0) ids.push_back(d.record);
  }
  return ids;
}

// cuda_sync tells which stream and event a synchronising call waited for, and who recorded that
// event.
void Builder::join_syncs() {
  Operations& ops = part_.trace.ops;
  const auto stream_lane = [&](int64_t device, int64_t stream) -> int32_t {
    const auto lane = lanes_.find({LaneKind::kStream, device, 0, stream});
    return stream < 0 || !lane ? -1 : static_cast<int32_t>(*lane);
  };
  uint64_t lost = 0;
  for (const SyncDetail& d : sync_details_) {
    Sync* const sync = calls_.sync(d.correlation, ops);
    if (sync == nullptr) {
      ++lost;
      continue;
    }
    sync->event = d.event > 0 ? static_cast<uint64_t>(d.event) : 0;
    sync->stream_lane = stream_lane(d.device, d.stream);
    if (sync->sync == SyncKind::kEvent) sync->stream_lane = stream_lane(d.device, d.wait_stream);
    if (Sync* const record = d.record > 0 ? calls_.sync(d.record, ops) : nullptr;
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
    const auto op = calls_.find(id);
    if (!op) continue;
    launches[id] = {ops.lane[*op], ops.start[*op], ops.kind[*op] == OpKind::kGraphLaunch};
  }
  communication_.attach(part_, metadata, launches, context_.strings, file_, context_.findings);
}

std::vector<RankPart> Builder::finish(const Metadata& metadata) {
  RankTrace& trace = part_.trace;
  notes_.flush();
  if (trace.steps.empty()) {
    trace.steps = steps_from_names(named_steps_, file_, context_.findings);
  }
  calls_.join(trace, correlations_to_keep(), file_, context_.findings);
  join_syncs();
  join_calls(metadata);
  const ProcessDevices devices{lanes_.devices(), std::move(memory_devices_), true};
  const std::vector<int64_t> communicating = communicating_gpus(part_, devices);
  choose_gpu(trace, device_work_, communicating.size(), file_, context_.findings);
  lanes_.name(trace, communicating, context_.strings);
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
  calls_ = {};
  trace.ops.sort();
  std::vector<RankPart> ranks =
      ranks_of_process(std::move(part_), devices, file_, context_.findings);
  for (RankPart& rank : ranks) describe_gpu(metadata, !device_work_.empty(), rank.trace);
  return ranks;
}

}  // namespace rehearse::traces::kineto
