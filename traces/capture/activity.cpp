// SPDX-License-Identifier: Apache-2.0
#include "traces/capture/activity.hpp"

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdlib>

#include "traces/capture/activity_records.hpp"
#include "traces/capture/cupti.hpp"
#include "traces/capture/messages.hpp"
#include "traces/capture/pages.hpp"
#include "traces/capture/recorder.hpp"

namespace rehearse::capture::activity {
namespace {

using cupti::kSuccess;

constexpr size_t kBufferBytes = size_t{2} << 20;
constexpr size_t kBuffers = 32;
constexpr std::array<uint32_t, 10> kAlways = {
    cupti::kConcurrentKernel, cupti::kMemcpy,    cupti::kMemcpy2,
    cupti::kMemset,           cupti::kRuntime,   cupti::kDriver,
    cupti::kSynchronization,  cupti::kCudaEvent, cupti::kExternalCorrelation,
    cupti::kOverhead};
// In-flight kernels of the last step get this long to finish before their kind is switched off.
constexpr int64_t kLinger = 2'000'000'000;

struct Door {
  cupti::Functions f{};
  std::atomic<bool> active{false};
  std::atomic<bool> enabled{false};
  std::atomic<bool> finished{false};
  int64_t closing = 0;  // when the kinds are switched off; only the writer's
  ActivityRecords records;
  SpinLock lock;
  uint8_t* buffers = nullptr;
  uint32_t free = 0;  // a bit per buffer
};
constinit Door g_door;

void request_buffer(uint8_t** buffer, size_t* size, size_t* most_records) {
  Door& d = g_door;
  *buffer = nullptr;
  *size = *most_records = 0;
  // None left: CUPTI drops records and counts them.
  if (!d.lock.lock()) return;
  if (d.free != 0) {
    const auto i = static_cast<uint32_t>(__builtin_ctz(d.free));
    d.free &= ~(uint32_t{1} << i);
    *buffer = d.buffers + i * kBufferBytes;
    *size = kBufferBytes;
  }
  d.lock.unlock();
}

void buffer_full(void* context, uint32_t stream, uint8_t* buffer, size_t, size_t valid) {
  Door& d = g_door;
  Recorder& r = Recorder::instance();
  if (valid > 0 && r.is_on()) {
    cupti::Record* record = nullptr;
    while (d.f.next_record(buffer, valid, &record) == kSuccess && record != nullptr) {
      d.records.add(*record);
    }
    size_t dropped = 0;
    if (d.f.dropped(context, stream, &dropped) == kSuccess && dropped > 0) {
      r.lose(Lost::kByCupti, dropped);
    }
  }
  if (!d.lock.lock()) return;
  d.free |= uint32_t{1} << ((buffer - d.buffers) / static_cast<ptrdiff_t>(kBufferBytes));
  d.lock.unlock();
}

void enable_kinds(bool on) {
  Door& d = g_door;
  if (d.enabled.exchange(on) == on) return;
  const auto set = [&](uint32_t kind) {
    const int result = on ? d.f.enable(kind) : d.f.disable(kind);
    if (on && result != kSuccess) {
      complain("CUPTI does not record kind %u: %s", kind, d.f.text_of(result));
    }
  };
  const Settings& s = Recorder::instance().settings();
  for (const uint32_t kind : kAlways) set(kind);
  if (s.memory) set(cupti::kMemory2);
  if (s.graphs) set(cupti::kGraphTrace);
}

// Runs on the writer's thread.
void before_flush(bool last) {
  Door& d = g_door;
  Recorder& r = Recorder::instance();
  if (d.finished.load(std::memory_order_acquire)) return;
  const int64_t at = now();
  const Window::Phase phase = r.window().phase(at);
  if (phase == Window::Phase::kInside) enable_kinds(true);
  if (phase == Window::Phase::kAfter && d.closing == 0) d.closing = at + kLinger;
  d.f.flush_all(last ? 1 : 0);
  if (d.closing != 0 && (at >= d.closing || last)) enable_kinds(false);
  d.records.tell_devices();
}

void nothing(void*, int, uint32_t, const void*) {}

}  // namespace

bool start() {
  Door& d = g_door;
  Recorder& r = Recorder::instance();
  if (d.active.load(std::memory_order_acquire)) return true;
  if (!cupti::open(r.settings().cupti, d.f)) return false;
  uint32_t version = 0;
  if (d.f.get_version(&version) == kSuccess) r.found_cupti(version);
  void* subscriber = nullptr;
  const int subscribed = d.f.subscribe(&subscriber, nothing, nullptr);
  if (subscribed == cupti::kOtherSubscriber) {
    complain("another profiler uses CUPTI: kernels and CUDA calls are not recorded");
    return false;
  }
  if (subscribed != kSuccess) {
    complain("CUPTI does not start (%d, %s): kernels and CUDA calls are not recorded", subscribed,
             d.f.text_of(subscribed));
    return false;
  }
  d.buffers = map_pages<uint8_t>(kBuffers * kBufferBytes);
  if (d.buffers == nullptr) {
    complain("no memory for CUPTI: kernels and CUDA calls are not recorded");
    return false;
  }
  d.free = 0xffffffff;
  static_assert(kBuffers == 32);
  // The numbers that the kernel gives to threads, as for NVTX and NCCL.
  if (d.f.set_thread_id_type != nullptr) d.f.set_thread_id_type(1);
  uint64_t stamp = 0;
  if (d.f.get_timestamp(&stamp) != kSuccess) stamp = 0;
  d.records.start(d.f, version, stamp);
  if (const int result = d.f.register_callbacks(request_buffer, buffer_full); result != kSuccess) {
    complain("CUPTI takes no buffers (%d, %s): kernels and CUDA calls are not recorded", result,
             d.f.text_of(result));
    return false;
  }
  d.active.store(true, std::memory_order_release);
  if (r.window().phase(now()) == Window::Phase::kInside) enable_kinds(true);
  r.before_flush(before_flush);
  // CUDA does not work in the child of a fork.
  ::pthread_atfork(nullptr, nullptr, [] {
    g_door.active.store(false, std::memory_order_relaxed);
    g_door.enabled.store(false, std::memory_order_relaxed);
  });
  // Runs before what the driver does at exit, because it is registered after it.
  std::atexit([] {
    Recorder::instance().flush_at_exit();
    g_door.finished.store(true, std::memory_order_release);
  });
  return true;
}

void stretch_began() {
  if (g_door.active.load(std::memory_order_acquire)) enable_kinds(true);
}

void begin_launch(uint64_t id) {
  Door& d = g_door;
  if (d.enabled.load(std::memory_order_acquire)) {
    d.f.push_correlation(cupti::kOurCorrelation, id);
  }
}

void end_launch() {
  Door& d = g_door;
  uint64_t last = 0;
  if (d.active.load(std::memory_order_acquire)) d.f.pop_correlation(cupti::kOurCorrelation, &last);
}

}  // namespace rehearse::capture::activity
