// SPDX-License-Identifier: Apache-2.0
// A stand-in for libcupti: the functions that the capture library resolves, over records that a test makes.
// FAKE_CUPTI_SUBSCRIBE, FAKE_CUPTI_DROPS, FAKE_CUPTI_VERSION change what it answers; FAKE_CUPTI_WALKER names
// a real libcupti that walks the buffers instead of this one.
#include "tests/traces/capture/fake_cupti.hpp"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string>
#include <vector>

#include "tests/traces/capture/fake_cupti_sizes.hpp"
#include "traces/capture/cupti.hpp"

namespace {

namespace cupti = rehearse::capture::cupti;
using rehearse::tests::size_of;

struct Buffer {
  uint8_t* bytes = nullptr;
  size_t size = 0, used = 0;
};

struct Fake {
  std::mutex mutex;
  cupti::RequestBuffer request = nullptr;
  cupti::BufferFull full = nullptr;
  std::vector<Buffer> buffers;
  std::array<std::atomic<bool>, 64> enabled{};
  size_t drops = 0;
  std::atomic<uint32_t> correlation{1};
};
// Never destroyed: threads of the program go on while it ends.
Fake& g_fake = *new Fake;
thread_local std::vector<uint64_t> t_pushed;

int number(const char* variable, int otherwise) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? otherwise : std::atoi(value);
}

uint64_t real_time() {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

// The room for a record, in the newest buffer or a new one. Small ones, so that there are several.
uint8_t* room(size_t bytes) {
  constexpr size_t kUsed = 4096;
  if (g_fake.buffers.empty() || g_fake.buffers.back().used + bytes > kUsed) {
    Buffer b;
    size_t most = 0;
    if (g_fake.request != nullptr) g_fake.request(&b.bytes, &b.size, &most);
    if (b.bytes == nullptr || b.size < kUsed) {
      ++g_fake.drops;
      return nullptr;
    }
    std::memset(b.bytes, 0, kUsed);
    g_fake.buffers.push_back(b);
  }
  Buffer& b = g_fake.buffers.back();
  uint8_t* const at = b.bytes + b.used;
  b.used += bytes;
  return at;
}

}  // namespace

extern "C" {

int cuptiGetVersion(uint32_t* version) {
  *version = static_cast<uint32_t>(number("FAKE_CUPTI_VERSION", 130000));
  return 0;
}
int cuptiGetTimestamp(uint64_t* stamp) {
  *stamp = real_time();
  return 0;
}
int cuptiGetResultString(int, const char** text) {
  *text = "FAKE_RESULT";
  return 0;
}
int cuptiGetCallbackName(int domain, uint32_t id, const char** name) {
  if (domain == 2 && id == 211) {
    *name = "cudaLaunchKernel_v7000";
  } else if (domain == 2 && id == 131) {
    *name = "cudaStreamSynchronize_v3020";
  } else if (domain == 2 && id == 41) {
    *name = "cudaMemcpyAsync_v3020";
  } else if (domain == 2 && id == 135) {
    *name = "cudaEventRecord_v3020";
  } else if (domain == 2 && id == 147) {
    *name = "cudaStreamWaitEvent_v3020";
  } else if (domain == 1 && id == 307) {
    *name = "cuLaunchKernel";
  } else {
    return 1;
  }
  return 0;
}
int cuptiSubscribe(void** subscriber, cupti::Callback, void*) {
  *subscriber = &g_fake;
  return number("FAKE_CUPTI_SUBSCRIBE", 0);
}
int cuptiActivityRegisterCallbacks(cupti::RequestBuffer request, cupti::BufferFull full) {
  g_fake.request = request;
  g_fake.full = full;
  return 0;
}
int cuptiActivityEnable(uint32_t kind) {
  if (kind < g_fake.enabled.size()) g_fake.enabled[kind] = true;
  return 0;
}
int cuptiActivityDisable(uint32_t kind) {
  if (kind < g_fake.enabled.size()) g_fake.enabled[kind] = false;
  return 0;
}
int cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, cupti::Record** record) {
  if (const char* walker = std::getenv("FAKE_CUPTI_WALKER"); walker != nullptr) {
    static void* const library = dlopen(walker, RTLD_NOW | RTLD_LOCAL);
    using Walk = int (*)(uint8_t*, size_t, cupti::Record**);
    static const auto walk = reinterpret_cast<Walk>(dlsym(library, "cuptiActivityGetNextRecord"));
    return walk(buffer, valid, record);
  }
  uint8_t* next = buffer;
  if (*record != nullptr) {
    next = reinterpret_cast<uint8_t*>(*record);
    next += size_of((*record)->kind);
  }
  if (next >= buffer + valid) return cupti::kEndOfBuffer;
  *record = reinterpret_cast<cupti::Record*>(next);
  return 0;
}
int cuptiActivityGetNumDroppedRecords(void*, uint32_t, size_t* records) {
  static std::atomic<bool> told{false};
  *records = told.exchange(true) ? 0 : static_cast<size_t>(number("FAKE_CUPTI_DROPS", 0));
  return 0;
}
int cuptiActivityPushExternalCorrelationId(uint32_t, uint64_t id) {
  t_pushed.push_back(id);
  return 0;
}
int cuptiActivityPopExternalCorrelationId(uint32_t, uint64_t* last) {
  if (t_pushed.empty()) return 1;
  *last = t_pushed.back();
  t_pushed.pop_back();
  return 0;
}
int cuptiSetThreadIdType(int) { return 0; }

void fake_deliver() {
  std::vector<Buffer> ready;
  {
    const std::lock_guard lock(g_fake.mutex);
    ready.swap(g_fake.buffers);
  }
  for (auto b = ready.rbegin(); b != ready.rend(); ++b) {
    g_fake.full(nullptr, 0, b->bytes, b->size, b->used);
  }
}
int cuptiActivityFlushAll(uint32_t) {
  if (g_fake.full != nullptr) fake_deliver();
  return 0;
}

void fake_put(const void* record, size_t bytes) {
  const uint32_t kind = static_cast<const cupti::Record*>(record)->kind;
  if (kind >= g_fake.enabled.size() || !g_fake.enabled[kind]) return;
  const std::lock_guard lock(g_fake.mutex);
  if (uint8_t* const at = room(size_of(kind)); at != nullptr) std::memcpy(at, record, bytes);
}

void fake_launch(const char* kernel, uint32_t stream, uint64_t start, uint64_t end) {
  const uint32_t correlation = g_fake.correlation++;
  if (!t_pushed.empty()) {
    cupti::ExternalCorrelationRecord tie{};
    tie.kind = cupti::kExternalCorrelation;
    tie.external_kind = cupti::kOurCorrelation;
    tie.external = t_pushed.back();
    tie.correlation = correlation;
    fake_put(&tie, sizeof tie);
  }
  cupti::ApiRecord call{};
  call.kind = cupti::kRuntime;
  call.callback = 211;
  call.start = real_time();
  call.end = call.start + 2000;
  call.thread = static_cast<uint32_t>(syscall(SYS_gettid));
  call.correlation = correlation;
  fake_put(&call, sizeof call);
  cupti::KernelRecord k{};
  k.kind = cupti::kConcurrentKernel;
  k.start = start;
  k.end = end;
  k.device = 3;
  k.context = 1;
  k.stream = stream;
  k.grid_x = 24;
  k.grid_y = k.grid_z = 1;
  k.block_x = 512;
  k.block_y = k.block_z = 1;
  k.correlation = correlation;
  k.name = kernel;
  fake_put(&k, sizeof k);
}
}
