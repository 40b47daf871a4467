// SPDX-License-Identifier: Apache-2.0
#include "traces/capture/activity_records.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdio>
#include <string_view>

#include "traces/capture/recorder.hpp"

namespace rehearse::capture::activity {
namespace {

namespace cf = capture_file;

Recorder& recorder() { return Recorder::instance(); }

template <typename Made>
void keep(const Made& record) {
  recorder().put(Lost::kActivity, record);
}

// The record as what its kind says it is.
template <typename T>
const T& as(const cupti::Record& record) {
  return *reinterpret_cast<const T*>(&record);
}

cf::Dimensions dimensions(int32_t x, int32_t y, int32_t z) {
  return {static_cast<uint32_t>(x), static_cast<uint32_t>(y), static_cast<uint32_t>(z)};
}

// "cudaLaunchKernel_v7000" as the documentation calls it.
std::string_view without_version(std::string_view name) {
  const size_t v = name.rfind("_v");
  if (v == std::string_view::npos || name.size() - v < 6) return name;
  const std::string_view digits = name.substr(v + 2);
  return digits.find_first_not_of("0123456789") == std::string_view::npos ? name.substr(0, v)
                                                                          : name;
}

}  // namespace

void ActivityRecords::start(const cupti::Functions& functions, uint32_t version, uint64_t stamp) {
  f_ = &functions;
  version_ = version;
  const int64_t difference = stamp == 0 ? 0 : now() - static_cast<int64_t>(stamp);
  constexpr int64_t kAnotherClock = 1'000'000'000;
  shift_ = difference > kAnotherClock || difference < -kAnotherClock ? difference : 0;
  const int64_t seed = now();
  secret_ = XXH3_64bits(&seed, sizeof seed);
}

bool ActivityRecords::span(uint64_t start, uint64_t end, Span& out) const {
  if (start == 0 || end < start) return recorder().lose(Lost::kActivity, 1);
  const int64_t at = static_cast<int64_t>(start) + shift_;
  if (!recorder().window().holds(at)) return false;
  out = {recorder().since_origin(at), end - start};
  return true;
}

void ActivityRecords::saw(uint32_t device) {
  if (device < kMostDevices && (seen_.load(std::memory_order_relaxed) >> device & 1) == 0) {
    seen_.fetch_or(uint64_t{1} << device, std::memory_order_relaxed);
  }
}

void ActivityRecords::tell_devices() {
  const uint64_t news =
      seen_.load(std::memory_order_relaxed) & ~told_.load(std::memory_order_relaxed);
  told_.fetch_or(news, std::memory_order_relaxed);
  for (uint32_t device = 0; device < kMostDevices; ++device) {
    cupti::DeviceFacts facts{};
    if ((news >> device & 1) == 0 || !cupti::device_facts(device, facts)) continue;
    keep(cf::Device{device, facts.name, facts.memory, facts.bus, facts.multiprocessors});
  }
}

uint32_t ActivityRecords::api_name(bool driver, uint32_t callback) {
  const bool known = callback < kCallbacks;
  if (known) {
    const uint32_t id = api_names_[driver ? 1 : 0][callback].load(std::memory_order_relaxed);
    if (id != 0) return id;
  }
  const char* name = nullptr;
  constexpr int kDriverDomain = 1, kRuntimeDomain = 2;
  char number[32];
  if (f_->get_callback_name(driver ? kDriverDomain : kRuntimeDomain, callback, &name) !=
          cupti::kSuccess ||
      name == nullptr) {
    std::snprintf(number, sizeof number, "%s %u", driver ? "driver" : "runtime", callback);
    name = number;
  }
  const uint32_t id = recorder().names().id(without_version(name));
  if (known) api_names_[driver ? 1 : 0][callback].store(id, std::memory_order_relaxed);
  return id;
}

void ActivityRecords::add(const cupti::Record& record) {
  switch (record.kind) {
    case cupti::kKernel:
    case cupti::kConcurrentKernel:
      return kernel(as<cupti::KernelRecord>(record));
    case cupti::kMemcpy:
      return copy(as<cupti::MemcpyRecord>(record));
    case cupti::kMemcpy2:
      return peer_copy(as<cupti::PeerMemcpyRecord>(record));
    case cupti::kMemset:
      return fill(as<cupti::MemsetRecord>(record));
    case cupti::kDriver:
    case cupti::kRuntime:
      return api(as<cupti::ApiRecord>(record));
    case cupti::kSynchronization:
      return wait(as<cupti::SynchronizationRecord>(record));
    case cupti::kCudaEvent:
      return event(as<cupti::EventRecord>(record));
    case cupti::kExternalCorrelation: {
      const auto& r = as<cupti::ExternalCorrelationRecord>(record);
      return keep(cf::Correlation{r.external_kind, r.external, r.correlation});
    }
    case cupti::kOverhead:
      return overhead(as<cupti::OverheadRecord>(record));
    case cupti::kGraphTrace:
      return graph(as<cupti::GraphRecord>(record));
    case cupti::kMemory2:
      return memory(as<cupti::MemoryRecord>(record));
    default:
      return;
  }
}

void ActivityRecords::kernel(const cupti::KernelRecord& r) {
  Span s{};
  if (!span(r.start, r.end, s)) return;
  saw(r.device);
  keep(cf::Kernel{.start = s.start,
                  .duration = s.duration,
                  .name = recorder().names().id(r.name),
                  .device = r.device,
                  .stream = r.stream,
                  .correlation = r.correlation,
                  .context = r.context,
                  .grid = dimensions(r.grid_x, r.grid_y, r.grid_z),
                  .block = dimensions(r.block_x, r.block_y, r.block_z),
                  .registers = r.registers,
                  .static_shared = static_cast<uint32_t>(r.static_shared),
                  .dynamic_shared = static_cast<uint32_t>(r.dynamic_shared),
                  .graph_node = r.graph_node,
                  .graph = r.graph});
}

void ActivityRecords::copy(const cupti::MemcpyRecord& r) {
  Span s{};
  if (!span(r.start, r.end, s)) return;
  saw(r.device);
  keep(cf::Copy{.start = s.start,
                .duration = s.duration,
                .bytes = r.bytes,
                .kind = r.copy_kind,
                .device = r.device,
                .stream = r.stream,
                .correlation = r.correlation,
                .context = r.context,
                .graph_node = r.graph_node});
}

void ActivityRecords::peer_copy(const cupti::PeerMemcpyRecord& r) {
  Span s{};
  if (!span(r.start, r.end, s)) return;
  saw(r.device);
  keep(cf::Copy{.start = s.start,
                .duration = s.duration,
                .bytes = r.bytes,
                .kind = r.copy_kind,
                .device = r.device,
                .stream = r.stream,
                .correlation = r.correlation,
                .context = r.context,
                .from_device = r.source_device,
                .to_device = r.target_device,
                .graph_node = r.graph_node});
}

void ActivityRecords::fill(const cupti::MemsetRecord& r) {
  Span s{};
  if (!span(r.start, r.end, s)) return;
  saw(r.device);
  keep(cf::Fill{.start = s.start,
                .duration = s.duration,
                .bytes = r.bytes,
                .device = r.device,
                .stream = r.stream,
                .correlation = r.correlation,
                .context = r.context,
                .graph_node = r.graph_node});
}

void ActivityRecords::api(const cupti::ApiRecord& r) {
  Span s{};
  if (!span(r.start, r.end, s)) return;
  const bool driver = r.kind == cupti::kDriver;
  keep(cf::Api{.start = s.start,
               .duration = s.duration,
               .name = api_name(driver, r.callback),
               .thread = r.thread,
               .correlation = r.correlation,
               .result = static_cast<int32_t>(r.result),
               .driver = driver});
}

void ActivityRecords::wait(const cupti::SynchronizationRecord& r) {
  Span s{};
  if (!span(r.start, r.end, s)) return;
  keep(cf::Wait{.start = s.start,
                .duration = s.duration,
                .type = r.type,
                .correlation = r.correlation,
                .stream = r.stream == cupti::kInvalidStream ? -1 : int64_t{r.stream},
                .event = r.event,
                .context = r.context,
                .event_sync = version_ >= cupti::kHasEventSync ? r.event_sync : 0});
}

void ActivityRecords::event(const cupti::EventRecord& r) {
  cf::Event e{
      .correlation = r.correlation, .event = r.event, .stream = r.stream, .context = r.context};
  if (version_ >= cupti::kHasEventSync) {
    e.device = r.device;
    e.event_sync = r.event_sync;
    const int64_t at = static_cast<int64_t>(r.at);
    if (at != 0) e.at = recorder().since_origin(at + shift_);
  }
  keep(e);
}

void ActivityRecords::overhead(const cupti::OverheadRecord& r) {
  Span s{};
  if (!span(r.start, r.end, s)) return;
  keep(cf::Overhead{.start = s.start,
                    .duration = s.duration,
                    .kind = r.overhead_kind,
                    .thread = r.object_kind == cupti::kObjectThread ? r.object[1] : 0});
}

void ActivityRecords::graph(const cupti::GraphRecord& r) {
  Span s{};
  if (!span(r.start, r.end, s)) return;
  saw(r.device);
  keep(cf::Graph{.start = s.start,
                 .duration = s.duration,
                 .graph = r.graph,
                 .device = r.device,
                 .stream = r.stream,
                 .correlation = r.correlation,
                 .context = r.context});
}

void ActivityRecords::memory(const cupti::MemoryRecord& r) {
  Span s{};
  if (r.memory_kind != cupti::kMemoryKindDevice || !span(r.at, r.at, s)) return;
  const auto bytes = static_cast<int64_t>(r.bytes);
  const uint64_t address = r.address;
  keep(cf::Memory{.at = s.start,
                  .bytes = r.operation == 1 ? bytes : -bytes,
                  .block = XXH3_64bits_withSeed(&address, sizeof address, secret_),
                  .device = r.device,
                  .thread = 0});
}

}  // namespace rehearse::capture::activity
