// SPDX-License-Identifier: Apache-2.0
#include "traces/synth/framework.hpp"

#include <fmt/format.h>

#include <utility>

namespace rehearse::synth {

using traces::Collective;

namespace {

const char* type_in_name(traces::DType dtype) {
  switch (dtype) {
    case traces::DType::kFp16:
      return "f16";
    case traces::DType::kBf16:
      return "bf16";
    case traces::DType::kFp8:
      return "f8e4m3";
    case traces::DType::kInt64:
      return "i64";
    default:
      return "f32";
  }
}

// Names as in libnccl since 2.19; the suffix is a compiled variant, not the algorithm.
std::string kernel_name(Collective kind, traces::DType dtype) {
  constexpr const char* kArguments = "(ncclDevKernelArgsStorage<4096ul>)";
  switch (kind) {
    case Collective::kAllReduce:
      return fmt::format("ncclDevKernel_AllReduce_Sum_{}_RING_LL{}", type_in_name(dtype),
                         kArguments);
    case Collective::kReduceScatter:
      return fmt::format("ncclDevKernel_ReduceScatter_Sum_{}_RING_LL{}", type_in_name(dtype),
                         kArguments);
    case Collective::kAllGather:
      return fmt::format("ncclDevKernel_AllGather_RING_LL{}", kArguments);
    default:
      return fmt::format("ncclDevKernel_SendRecv{}", kArguments);
  }
}

constexpr int kPointToPoint = 100;  // keys of streams_ above the groups

}  // namespace

Framework::Framework(const pb::Synth& options, const Layout& layout, const Costs& costs,
                     RankId rank, traces::Strings& strings)
    : layout_(layout),
      costs_(costs),
      rank_(rank),
      strings_(strings),
      single_thread_(options.framework() == "tensorflow"),
      single_stream_(options.framework() == "tensorflow") {
  using traces::LaneKind;
  main_ = add_lane(LaneKind::kHostThread, 1000, single_thread_ ? "tf_executor" : "main");
  backward_ = single_thread_ ? main_ : add_lane(LaneKind::kHostThread, 1001, "autograd");
  if (options.framework() == "horovod")
    background_ = add_lane(LaneKind::kHostThread, 1002, "horovod background");
  compute_ = add_lane(LaneKind::kStream, 7, "compute");
  now_ = main_;
}

uint8_t Framework::add_lane(traces::LaneKind kind, int64_t id, std::string_view name) {
  script_.lanes.push_back({kind, id, strings_.intern(name)});
  return static_cast<uint8_t>(script_.lanes.size() - 1);
}

uint8_t Framework::stream_of(Group group) {
  const int key = single_stream_ ? 0 : static_cast<int>(group);
  if (auto found = streams_.find(key); found != streams_.end()) return found->second;
  const auto& communicators = layout_.communicators();
  const auto c = static_cast<size_t>(layout_.communicator(rank_, group));
  const auto lane =
      add_lane(traces::LaneKind::kStream, 16 + 4 * static_cast<int64_t>(streams_.size()),
               single_stream_ ? "nccl" : "nccl " + communicators[c].description);
  return streams_[key] = lane;
}

uint8_t Framework::stream_of(Toward toward, Collective direction) {
  const int key = kPointToPoint + 2 * static_cast<int>(toward) + (direction == Collective::kSend);
  if (auto found = streams_.find(key); found != streams_.end()) return found->second;
  const auto name =
      fmt::format("nccl {} {}", direction == Collective::kSend ? "send to" : "receive from",
                  toward == Toward::kNext ? "next stage" : "previous stage");
  const auto lane =
      add_lane(traces::LaneKind::kStream, 16 + 4 * static_cast<int64_t>(streams_.size()), name);
  return streams_[key] = lane;
}

void Framework::put(Do what, uint8_t stream, std::string_view name, uint32_t index, int64_t value) {
  script_.step.push_back({what, now_, stream, strings_.intern(name), index, value});
}

void Framework::kernel(std::string_view name, Nanos duration) {
  put(Do::kKernel, compute_, name, 0, duration);
  host_time_ += kTimes.dispatch + kTimes.launch;
}

void Framework::copy(std::string_view name, traces::CopyDirection direction, Bytes bytes) {
  script_.copies.push_back({direction, bytes});
  put(Do::kCopy, compute_, name, static_cast<uint32_t>(script_.copies.size() - 1),
      costs_.host_copy(static_cast<double>(bytes)));
  host_time_ += kTimes.dispatch + kTimes.launch;
}

void Framework::host(std::string_view name, Nanos duration) {
  put(Do::kHost, 0, name, 0, duration);
  host_time_ += duration;
}

uint32_t Framework::allocate(std::string_view name, Bytes bytes) {
  uint32_t address = 0;
  if (free_addresses_.empty()) {
    address = ++addresses_;
  } else {
    address = free_addresses_.back();
    free_addresses_.pop_back();
  }
  live_[address] = bytes;
  put(Do::kMemory, 0, name, address, bytes);
  return address;
}

void Framework::free(std::string_view name, uint32_t address) {
  put(Do::kMemory, 0, name, address, -live_[address]);
  live_.erase(address);
  free_addresses_.push_back(address);
}

void Framework::allocate_once(std::string_view name, Bytes bytes) {
  if (bytes <= 0) return;
  script_.once.push_back({Do::kMemory, main_, 0, strings_.intern(name), ++addresses_, bytes});
}

EventSlot Framework::take_event() {
  if (free_events_.empty()) return script_.events++;
  const EventSlot event = free_events_.back();
  free_events_.pop_back();
  return event;
}

void Framework::record(uint8_t stream, EventSlot event) {
  put(Do::kRecord, stream, "cudaEventRecord", event, kTimes.event_call);
  host_time_ += kTimes.event_call;
}

void Framework::wait(uint8_t stream, EventSlot event) {
  put(Do::kWait, stream, "cudaStreamWaitEvent", event, kTimes.event_call);
  host_time_ += kTimes.event_call;
}

CallSpec Framework::spec_of(const Collect& what) const {
  const uint32_t n = size(what.group);
  const Bytes part = what.bytes / n;
  CallSpec spec{.group = what.group,
                .collective = what.kind,
                .bytes_in = what.kind == Collective::kAllGather ? part : what.bytes,
                .bytes_out = what.kind == Collective::kReduceScatter ? part : what.bytes,
                .dtype = what.dtype};
  if (what.kind == Collective::kAllReduce || what.kind == Collective::kReduceScatter)
    spec.reduction = traces::Reduction::kSum;
  spec.local = costs_.collective(what.kind, what.bytes, n, false);
  spec.remote = costs_.collective(what.kind, what.bytes, n, true);
  return spec;
}

void Framework::call(const CallSpec& spec, uint8_t stream) {
  script_.calls.push_back(spec);
  put(Do::kCall, stream, kernel_name(spec.collective, spec.dtype),
      static_cast<uint32_t>(script_.calls.size() - 1), 0);
  host_time_ += kTimes.dispatch + kTimes.launch;
}

EventSlot Framework::start(const Collect& what) {
  const uint8_t stream = stream_of(what.group);
  const EventSlot event = take_event();
  record(compute_, event);
  wait(stream, event);
  call(spec_of(what), stream);
  record(stream, event);
  return event;
}

void Framework::join(EventSlot event) {
  wait(compute_, event);
  free_events_.push_back(event);
}

void Framework::run(const Collect& what) {
  if (size(what.group) > 1) join(start(what));
}

void Framework::point_to_point(Toward toward, Collective direction, Bytes bytes) {
  const uint32_t stages = size(Group::kPipeline);
  const uint32_t stage = layout_.at(rank_).pp;
  const uint32_t peer = (stage + (toward == Toward::kNext ? 1 : stages - 1)) % stages;
  const bool sends = direction == Collective::kSend;
  CallSpec spec{.group = Group::kPipeline,
                .collective = direction,
                .bytes_in = sends ? bytes : 0,
                .bytes_out = sends ? 0 : bytes,
                .dtype = costs_.dtype(),
                .peer = static_cast<int32_t>(peer)};
  spec.local = costs_.collective(direction, bytes, 2, false);
  spec.remote = costs_.collective(direction, bytes, 2, true);
  const uint8_t stream = stream_of(toward, direction);
  const EventSlot event = take_event();
  record(compute_, event);
  wait(stream, event);
  call(spec, stream);
  if (sends) {
    free_events_.push_back(event);
    return;
  }
  record(stream, event);
  join(event);
}

void Framework::send(Toward toward, Bytes bytes) {
  point_to_point(toward, Collective::kSend, bytes);
}
void Framework::receive(Toward from, Bytes bytes) {
  point_to_point(from, Collective::kRecv, bytes);
}

void Framework::begin_backward() {
  if (backward_ == main_) return;
  put(Do::kHandOver, backward_, "", 0, kTimes.hand_over);
  now_ = backward_;
}

void Framework::end_backward() {
  if (backward_ == main_) return;
  put(Do::kHandOver, main_, "", 0, kTimes.hand_over);
  now_ = main_;
}

void Framework::begin(std::string_view annotation) {
  const uint32_t slot = script_.annotations++;
  open_.push_back(slot);
  put(Do::kBegin, 0, annotation, slot, 0);
}

void Framework::end() {
  put(Do::kEnd, 0, "", open_.back(), 0);
  open_.pop_back();
}

void Framework::finish_step() {
  copy("Memcpy DtoH (Device -> Pageable)", traces::CopyDirection::kDeviceToHost, 4);
  put(Do::kAwaitDevice, 0, "cudaDeviceSynchronize", 0, kTimes.event_call);
}

EventSlot Framework::start_fused(const FusedBuffer& buffer) {
  const EventSlot ready = take_event();
  record(compute_, ready);
  const uint8_t stream = stream_of(buffer.what.group);
  const uint8_t issuer = now_;
  const Nanos issued = host_time_;
  put(Do::kHandOver, background_, "", 0, kTimes.hand_over + buffer.wait);
  now_ = background_;
  host("NEGOTIATE_ALLREDUCE", kTimes.negotiation);
  wait(stream, ready);
  const auto copy = [&] {
    const auto bytes = 2.0 * static_cast<double>(buffer.what.bytes);
    put(Do::kKernel, stream, "BatchedScaledD2DMemcpyCudaKernel", 0, costs_.stream(bytes));
  };
  if (buffer.tensors > 1) copy();
  call(spec_of(buffer.what), stream);
  if (buffer.tensors > 1) copy();
  record(stream, ready);
  now_ = issuer;
  host_time_ = issued;  // the background thread's time is not the issuer's
  return ready;
}

void Framework::await(EventSlot event) {
  // The main thread learns of the event from the background thread, so it cannot look before it was
  // recorded.
  const uint8_t issuer = now_;
  now_ = background_;
  put(Do::kHandOver, issuer, "", 0, 0);
  now_ = issuer;
  put(Do::kAwaitEvent, 0, "cudaEventSynchronize", event, kTimes.event_call);
  wait(compute_, event);
  free_events_.push_back(event);
}

Script Framework::take() { return std::move(script_); }

}  // namespace rehearse::synth
