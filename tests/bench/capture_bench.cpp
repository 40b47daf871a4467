// SPDX-License-Identifier: Apache-2.0
// What the capture library costs the threads of the program that it records: pairs of NCCL's events through
// the profiler plugin, records of CUPTI through the callback that gives buffers back, NVTX ranges. Threads
// record at the same time; figures are per event and thread. Files go to a folder that is removed.
#include <dlfcn.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/traces/capture/fake_cupti.hpp"
#include "tests/traces/capture/nvtx_client.hpp"
#include "traces/capture/cupti_layout.hpp"
#include "traces/capture/nccl_profiler_layout.hpp"

namespace {

namespace fs = std::filesystem;
namespace cupti = rehearse::capture::cupti;
namespace nccl = rehearse::capture::nccl;

constexpr int kRounds = 7;

// The thread's own time: what it would have had for something else, however busy the machine is.
double spent() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

// Median over rounds of the mean time per event; a pause between them, as programs have, so that the
// writer's work shows only where it disturbs.
template <typename Work>
void measure(const char* what, int events, int threads, Work work) {
  std::vector<double> each;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> took(static_cast<size_t>(threads));
    std::vector<std::thread> running;
    for (double& mine : took) {
      running.emplace_back([&] {
        const double begin = spent();
        work();
        mine = (spent() - begin) / events;
      });
    }
    for (std::thread& t : running) t.join();
    each.insert(each.end(), took.begin(), took.end());
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  std::sort(each.begin(), each.end());
  std::printf("%-34s %d thread%s  median %6.1f ns  least %6.1f  most %6.1f\n", what, threads,
              threads == 1 ? " " : "s", each[each.size() / 2], each.front(), each.back());
}

void bench_nccl(void* library) {
  const auto* const plugin = static_cast<const nccl::PluginV5*>(dlsym(library, "ncclProfiler_v5"));
  void* context = nullptr;
  int mask = 0;
  plugin->init(&context, 1, &mask, "bench", 1, 8, 0, nullptr);
  constexpr int kPairs = 100'000;
  const auto pairs = [&] {
    nccl::DescriptorV5 d{};
    d.type = 2;
    d.coll.function = "AllReduce";
    d.coll.datatype = "ncclBfloat16";
    d.coll.algorithm = "RING";
    d.coll.protocol = "SIMPLE";
    d.coll.count = 1 << 20;
    d.coll.channels = 16;
    d.coll.warps = 16;
    for (int i = 0; i < kPairs; ++i) {
      d.coll.sequence = static_cast<uint64_t>(i);
      void* handle = nullptr;
      plugin->start_event(context, &handle, &d);
      plugin->stop_event(handle);
    }
  };
  for (const int threads : {1, 2})
    measure("NCCL event pair (start and stop)", kPairs, threads, pairs);
}

void bench_nvtx(void* library) {
  const rehearse::tests::NvtxClient client(dlsym(library, "InitializeInjectionNvtx2"));
  constexpr int kRanges = 100'000;
  measure("NVTX range (push and pop)", kRanges, 1, [] {
    for (int i = 0; i < kRanges; ++i) {
      rehearse::tests::NvtxClient::push("aten::addmm");
      rehearse::tests::NvtxClient::pop();
    }
  });
}

// Buffers are filled beforehand; what is timed is the callback that empties them.
void bench_cupti(void* library, const char* fake) {
  reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"))();
  void* const stand_in = dlopen(fake, RTLD_NOW);
  const auto put = reinterpret_cast<FakePut>(dlsym(stand_in, "fake_put"));
  const auto deliver = reinterpret_cast<FakeDeliver>(dlsym(stand_in, "fake_deliver"));
  const uint64_t at = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                                std::chrono::system_clock::now().time_since_epoch())
                                                .count());
  constexpr int kKernels = 250;
  std::vector<double> each;
  uint32_t correlation = 1;
  // The stand-in's buffers are small: many rounds, of which the median counts.
  for (int round = 0; round < 400; ++round) {
    for (int i = 0; i < kKernels; ++i) {
      cupti::ApiRecord call{};
      call.kind = cupti::kRuntime;
      call.callback = 211;
      call.start = at + static_cast<uint64_t>(correlation) * 5000;
      call.end = call.start + 3000;
      call.thread = 4711;
      call.correlation = correlation;
      put(&call, sizeof call);
      cupti::KernelRecord k{};
      k.kind = cupti::kConcurrentKernel;
      k.registers = 64;
      k.start = call.start + 8000;
      k.end = k.start + 20'000;
      k.context = 1;
      k.stream = 7;
      k.grid_x = 432;
      k.grid_y = k.grid_z = 1;
      k.block_x = 128;
      k.block_y = k.block_z = 1;
      k.correlation = correlation++;
      k.name = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEE";
      put(&k, sizeof k);
    }
    const double begin = spent();
    deliver();
    each.push_back((spent() - begin) / (2 * kKernels));
  }
  std::sort(each.begin(), each.end());
  std::printf("%-34s 1 thread   median %6.1f ns  least %6.1f  most %6.1f\n",
              "CUPTI record (kernels, API calls)", each[each.size() / 2], each.front(),
              each.back());
}

}  // namespace

int main() {
  std::string folder = (fs::temp_directory_path() / "rehearse-capture-bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 74;
  setenv("REHEARSE_CAPTURE_FOLDER", folder.c_str(), 1);
  setenv("REHEARSE_CAPTURE_CUPTI", FAKE_CUPTI, 1);
  void* const library = dlopen(CAPTURE_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  bench_nccl(library);
  bench_cupti(library, FAKE_CUPTI);
  bench_nvtx(library);
  fs::remove_all(folder);
  return 0;
}
