// SPDX-License-Identifier: Apache-2.0
// A training job as CUPTI, NVTX and NCCL would show it, without any of them: steps of two kernels on a compute
// stream, an event that the communication stream waits for, a grouped all-reduce, a copy, and a host that
// waits for the stream.
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "tests/traces/capture/fake_cupti.hpp"
#include "tests/traces/capture/nvtx_client.hpp"
#include "tests/traces/capture/watched.hpp"
#include "traces/capture/cupti_layout.hpp"
#include "traces/capture/nccl_profiler_layout.hpp"

namespace rehearse::tests {
namespace {

namespace cupti = capture::cupti;
namespace nccl = capture::nccl;

constexpr uint32_t kCompute = 7, kCommunication = 20, kContext = 1, kDevice = 3;

uint64_t real_time() {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

uint32_t this_thread() { return static_cast<uint32_t>(syscall(SYS_gettid)); }

struct Job {
  FakePut put = nullptr;
  FakeLaunch launch = nullptr;
  const nccl::PluginV5* plugin = nullptr;
  void* context = nullptr;
  uint32_t next = 100'000;  // correlation ids of our own calls

  template <typename Record>
  void record(const Record& r) const {
    put(&r, sizeof r);
  }

  uint32_t call(uint32_t callback) {
    cupti::ApiRecord r{};
    r.kind = cupti::kRuntime;
    r.callback = callback;
    r.start = real_time();
    r.end = r.start + 500;
    r.thread = this_thread();
    r.correlation = next++;
    record(r);
    return r.correlation;
  }

  void event_between_streams(uint32_t event) {
    cupti::EventRecord recorded{};
    recorded.kind = cupti::kCudaEvent;
    recorded.correlation = call(135);
    recorded.context = kContext;
    recorded.stream = kCompute;
    recorded.event = event;
    record(recorded);
    cupti::SynchronizationRecord wait{};
    wait.kind = cupti::kSynchronization;
    wait.type = 2;
    wait.correlation = call(147);
    wait.start = wait.end = real_time();
    wait.context = kContext;
    wait.stream = kCommunication;
    wait.event = event;
    record(wait);
  }

  void all_reduce(uint64_t sequence, uint64_t at) {
    const auto begin = [&](nccl::DescriptorV5 d, uint64_t type, void* parent) {
      d.type = type;
      d.parent = parent;
      void* handle = nullptr;
      plugin->start_event(context, &handle, &d);
      return handle;
    };
    void* const group = begin({}, 256, nullptr);
    nccl::DescriptorV5 api{};
    api.coll_api = {"AllReduce", 1 << 20, "ncclFloat32", 0, nullptr, false};
    void* const call_handle = begin(api, 512, group);
    plugin->stop_event(call_handle);
    void* const launch_handle = begin({}, 2048, group);
    launch("_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE",
           kCommunication, at, at + 200'000);
    plugin->stop_event(launch_handle);
    nccl::DescriptorV5 coll{};
    coll.coll.sequence = sequence;
    coll.coll.function = "AllReduce";
    coll.coll.count = 1 << 20;
    coll.coll.datatype = "ncclFloat32";
    coll.coll.channels = 24;
    coll.coll.algorithm = "RING";
    coll.coll.protocol = "LL";
    plugin->stop_event(begin(coll, 2, call_handle));
    plugin->stop_event(group);
  }

  void step(int number) {
    const std::string name = "step " + std::to_string(number);
    NvtxClient::push(name.c_str());
    const uint64_t at = real_time();
    launch("_Z4gemmPfS_S_i", kCompute, at + 10'000, at + 60'000);
    launch("_Z4gemmPfS_S_i", kCompute, at + 70'000, at + 120'000);
    event_between_streams(static_cast<uint32_t>(number));
    all_reduce(static_cast<uint64_t>(number), at + 130'000);
    cupti::MemcpyRecord copy{};
    copy.kind = cupti::kMemcpy;
    copy.copy_kind = 1;
    copy.bytes = 4096;
    copy.start = at + 400'000;
    copy.end = at + 410'000;
    copy.device = kDevice;
    copy.context = kContext;
    copy.stream = kCompute;
    copy.correlation = call(41);
    record(copy);
    cupti::MemsetRecord fill{};
    fill.kind = cupti::kMemset;
    fill.bytes = 64;
    fill.start = at + 420'000;
    fill.end = at + 421'000;
    fill.device = kDevice;
    fill.context = kContext;
    fill.stream = kCompute;
    record(fill);
    // Steps of some length, so that times are in order whatever the machine does.
    const timespec pause{0, 2'000'000};
    nanosleep(&pause, nullptr);
    cupti::SynchronizationRecord wait{};
    wait.kind = cupti::kSynchronization;
    wait.type = 3;
    wait.correlation = call(131);
    wait.start = wait.end = real_time();
    wait.context = kContext;
    wait.stream = kCommunication;
    record(wait);
    NvtxClient::pop();
  }
};

}  // namespace

int play_job(const Words& words) {
  // As the driver does in cuInit.
  using Initialize = int (*)();
  const auto initialize =
      reinterpret_cast<Initialize>(door("CUDA_INJECTION64_PATH", "InitializeInjection"));
  if (initialize == nullptr || initialize() != 1) return 90;
  const NvtxClient nvtx(door("NVTX_INJECTION64_PATH", "InitializeInjectionNvtx2"));
  const char* const fake = std::getenv("REHEARSE_CAPTURE_CUPTI");
  void* const library = fake == nullptr ? nullptr : dlopen(fake, RTLD_NOW);
  Job job;
  if (library != nullptr) {
    job.put = reinterpret_cast<FakePut>(dlsym(library, "fake_put"));
    job.launch = reinterpret_cast<FakeLaunch>(dlsym(library, "fake_launch"));
  }
  if (job.put == nullptr || job.launch == nullptr) return 0;  // a real one: nothing to play with
  job.plugin = static_cast<const nccl::PluginV5*>(door("NCCL_PROFILER_PLUGIN", "ncclProfiler_v5"));
  if (job.plugin == nullptr) return 91;
  const char* const rank = std::getenv("RANK");
  int mask = 0;
  job.plugin->init(&job.context, 0x5eed, &mask, "world", 1, 2, rank != nullptr ? atoi(rank) : 0,
                   nullptr);
  for (int i = 0; i < std::stoi(words.at(0)); ++i) job.step(i);
  job.plugin->finalize(job.context);
  return 0;
}

}  // namespace rehearse::tests

// The driver, as far as the library asks it.
extern "C" {
int cuDeviceGet(int* handle, int device) {
  *handle = device;
  return 0;
}
int cuDeviceGetName(char* name, int size, int) {
  snprintf(name, static_cast<size_t>(size), "Fake GPU 9000");
  return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = size_t{80} << 30;
  return 0;
}
int cuDeviceGetPCIBusId(char* bus, int size, int) {
  snprintf(bus, static_cast<size_t>(size), "0000:1b:00.0");
  return 0;
}
int cuDeviceGetAttribute(int* value, int, int) {
  *value = 132;
  return 0;
}
}
