// SPDX-License-Identifier: Apache-2.0
#include "traces/import/activity/builder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "traces/capture_file/step_names.hpp"
#include "traces/import/kineto/category.hpp"
#include "traces/import/limits.hpp"
#include "traces/import/names.hpp"

namespace rehearse::traces::activity {
namespace {

// Beyond this, a sum of start and duration might overflow.

std::string_view clip(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80) --bytes;
  return text.substr(0, bytes);
}

}  // namespace

Builder::Builder(ReadContext& context, std::string where)
    : context_(context), where_(std::move(where)) {}

void Builder::note(const char* id, Severity severity, const Place& place, const char* advice) {
  const auto seen =
      std::find_if(repeats_.begin(), repeats_.end(), [&](const Repeat& r) { return r.id == id; });
  if (seen != repeats_.end()) {
    ++seen->more;
    return;
  }
  repeats_.push_back({id, severity, advice, 0});
  const std::string at =
      place.table != nullptr
          ? fmt::format("{}: row {} of {}", where_, place.number, place.table)
          : fmt::format("{}: byte {}, record {}", where_, place.byte, place.number);
  context_.findings.add(id, severity, at, advice);
}

bool Builder::times(Span& span, const Place& place) {
  if (span.start > kLatest || span.start < -kLatest || span.duration > kLatest) {
    note("event-without-time", Severity::kDataLoss, place,
         "records without a time that makes sense are left out");
    return false;
  }
  if (span.duration < 0) {
    note("negative-duration", Severity::kWarning, place,
         "taken as 0 ns long; the recording clock went backwards");
    span.duration = 0;
  }
  return true;
}

bool Builder::lane_of(const LaneKey& key, const Place& place, LaneId& lane) {
  Recent& recent = recent_[key.kind == LaneKind::kStream ? 1 : 0];
  if (recent.lane >= 0 && recent.key == key) {
    lane = static_cast<LaneId>(recent.lane);
    return true;
  }
  const auto [found, added] = lanes_.emplace(key, static_cast<LaneId>(part_.trace.lanes.size()));
  if (added) {
    if (part_.trace.lanes.size() >= kMostLanes) {
      lanes_.erase(found);
      note("too-many-lanes", Severity::kDataLoss, place,
           "more threads and streams than a trace can hold; record fewer processes");
      return false;
    }
    part_.trace.lanes.push_back({key.kind, key.id, 0});
    lane_keys_.push_back(key);
  }
  lane = found->second;
  recent = {key, lane};
  return true;
}

bool Builder::host_lane(int64_t thread, const Place& place, LaneId& lane) {
  return lane_of({LaneKind::kHostThread, 0, 0, thread}, place, lane);
}

bool Builder::stream_lane(const GpuWork& work, const Place& place, LaneId& lane) {
  if (!lane_of({LaneKind::kStream, work.device, work.context, work.stream}, place, lane))
    return false;
  device_of_context_[work.context] = work.device;
  ++device_work_[work.device];
  if (work.correlation != 0) gpu_correlations_.push_back(work.correlation);
  return true;
}

uint32_t Builder::intern(std::string_view name, const Place& place) {
  if (name.size() > kLongestName) {
    note("name-shortened", Severity::kWarning, place, "names are kept up to 16 KiB");
    name = clip(name, kLongestName);
  }
  return context_.strings.intern(name);
}

void Builder::kernel(const GpuWork& work, const Place& place) {
  Span span = work.span;
  LaneId lane = 0;
  if (!times(span, place) || !stream_lane(work, place, lane)) return;
  Operations& ops = part_.trace.ops;
  if (is_nccl_kernel(context_.strings.at(work.name))) {
    const size_t op =
        ops.add_call(lane, work.name, span.start, span.duration, work.correlation, Call{});
    nccl_.kernel(op, static_cast<uint32_t>(ops.calls.size() - 1));
  } else {
    ops.add(OpKind::kKernel, lane, work.name, span.start, span.duration, work.correlation);
  }
}

void Builder::copy(const GpuWork& work, const Copy& copy, const Place& place) {
  Span span = work.span;
  LaneId lane = 0;
  if (!times(span, place) || !stream_lane(work, place, lane)) return;
  part_.trace.ops.add_copy(lane, work.name, span.start, span.duration, work.correlation, copy);
}

void Builder::memset(const GpuWork& work, const Place& place) {
  Span span = work.span;
  LaneId lane = 0;
  if (!times(span, place) || !stream_lane(work, place, lane)) return;
  part_.trace.ops.add(OpKind::kMemset, lane, work.name, span.start, span.duration,
                      work.correlation);
}

void Builder::api(const Span& when, uint32_t name, int64_t thread, int64_t correlation,
                  const Place& place) {
  Span span = when;
  LaneId lane = 0;
  if (!times(span, place) || !host_lane(thread, place, lane)) return;
  Operations& ops = part_.trace.ops;
  const kineto::RuntimeCall call = kineto::runtime_call_of(context_.strings.at(name));
  if (correlation != 0) api_.push_back({correlation, static_cast<uint32_t>(ops.size())});
  if (call.kind == OpKind::kSync) {
    ops.add_sync(lane, name, span.start, span.duration, correlation, {.sync = call.sync});
  } else {
    ops.add(call.kind, lane, name, span.start, span.duration, correlation);
  }
}

void Builder::range(const Span& when, std::string_view text, int64_t thread,
                    const RangeFacts& facts, const Place& place) {
  Span span = when;
  LaneId lane = 0;
  if (!times(span, place) || !host_lane(thread, place, lane)) return;
  const std::string_view name = capture_file::without_number(text);
  const bool framework = name.size() < text.size();
  pytorch_ = pytorch_ || name.starts_with("aten::");
  part_.trace.ops.add(framework ? OpKind::kHost : OpKind::kAnnotation, lane, intern(name, place),
                      span.start, span.duration);
  if (name.starts_with("nccl")) {
    nccl_.range(lane, span.start, span.start + span.duration, name, facts.call);
    if (facts.ranks && facts.rank) nccl_.init(facts.call.communicator, *facts.ranks, *facts.rank);
  } else if (const auto step = capture_file::step_of(name)) {
    steps_.push_back({step->family, {step->number, span.start, span.start + span.duration}});
  }
}

void Builder::overhead(const Span& when, uint32_t name, int64_t thread, const Place& place) {
  Span span = when;
  LaneId lane = 0;
  if (!times(span, place) || !host_lane(thread, place, lane)) return;
  part_.trace.ops.add(OpKind::kAnnotation, lane, name, span.start, span.duration);
}

void Builder::memory(Nanos at, const Memory& memory, int64_t device, int64_t thread, uint32_t name,
                     const Place& place) {
  Span span{at, 0};
  LaneId lane = 0;
  if (!times(span, place) || !host_lane(thread, place, lane)) return;
  part_.trace.ops.add_memory(lane, name, span.start, memory);
  memory_devices_.push_back(device);
}

int64_t Builder::device() const {
  std::pair<int64_t, uint64_t> most{0, 0};
  for (const auto& [device, count] : device_work_) {
    if (count > most.second) most = {device, count};
  }
  return most.first;
}

}  // namespace rehearse::traces::activity
