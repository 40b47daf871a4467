// SPDX-License-Identifier: Apache-2.0
#include "traces/import/activity/builder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "traces/capture_file/step_names.hpp"
#include "traces/import/devices.hpp"
#include "traces/import/kineto/category.hpp"
#include "traces/import/limits.hpp"
#include "traces/import/names.hpp"
#include "traces/model/utf8.hpp"

namespace rehearse::traces::activity {
Builder::Builder(ReadContext& context, std::string where)
    : context_(context), where_(std::move(where)), notes_(context.findings, where_) {}

void Builder::note(const char* id, Severity severity, const Place& place, const char* advice) {
  notes_.add(id, severity, advice, [&] {
    return place.table != nullptr
               ? fmt::format("{}: row {} of {}", where_, place.number, place.table)
               : fmt::format("{}: byte {}, record {}", where_, place.byte, place.number);
  });
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
  const auto found = lanes_.of(key, part_.trace.lanes);
  if (!found) {
    note("too-many-lanes", Severity::kDataLoss, place,
         "more threads and streams than a trace can hold; record fewer processes");
    return false;
  }
  lane = *found;
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
  return true;
}

uint32_t Builder::intern(std::string_view name, const Place& place) {
  if (name.size() > kLongestName) {
    note("name-shortened", Severity::kWarning, place, "names are kept up to 16 KiB");
    name = clipped(name, kLongestName);
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
    named_steps_.push_back({step->family, {step->number, span.start, span.start + span.duration}});
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

int64_t Builder::device() const { return std::max<int64_t>(busiest_gpu(device_work_), 0); }

}  // namespace rehearse::traces::activity
