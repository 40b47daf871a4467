// SPDX-License-Identifier: Apache-2.0
// The program that tests have recorded. It does what its first word says, and is not told that anybody
// watches: it finds the capture library through the variables that CUDA, NVTX and NCCL read.
#include "tests/traces/capture/watched.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "tests/traces/capture/nvtx_client.hpp"
#include "traces/capture/nccl_profiler_layout.hpp"

#ifdef __SANITIZE_ADDRESS__
// Where threads still run when the process ends, as a recorder's do, g++ 12's search for leaks crashes itself now and
// then and ends the program with a code of its own. Leaks of the path are looked for by valgrind.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }
#endif

namespace rehearse::tests {

void* door(const char* variable, const char* symbol) {
  const char* const path = std::getenv(variable);
  void* const library = path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "watched: %s\n", dlerror());
    return nullptr;
  }
  return dlsym(library, symbol);
}

namespace {

void* nvtx_door() { return door("NVTX_INJECTION64_PATH", "InitializeInjectionNvtx2"); }

void ranges(const char* name, int count) {
  for (int i = 0; i < count; ++i) {
    NvtxClient::push("outer");
    NvtxClient::push(name);
    NvtxClient::pop();
    NvtxClient::pop();
  }
}

// The named number of ranges, then the exit code that is asked for.
int play_ranges(const Words& words) {
  const NvtxClient nvtx(nvtx_door());
  std::printf("the program's output\n");
  ranges("inner", std::stoi(words.at(0)));
  return std::stoi(words.at(1));
}

// Ranges until somebody ends it.
int play_for_ever(const Words&) {
  const NvtxClient nvtx(nvtx_door());
  for (;;) {
    ranges("again", 100);
    usleep(1000);
  }
}

// Ranges, some time for them to be written, and the end by a signal that nobody handles.
int play_signal(const Words& words) {
  const NvtxClient nvtx(nvtx_door());
  std::printf("the program's output\n");
  std::fflush(stdout);
  ranges("before", 100);
  usleep(300'000);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  raise(std::stoi(words.at(0)));
  return 93;
}

// Ranges in the parent and in a child that is forked but not executed.
int play_fork(const Words&) {
  const NvtxClient nvtx(nvtx_door());
  std::thread other([] { ranges("parent", 20000); });
  ranges("parent", 100);
  const pid_t child = fork();
  if (child == 0) {
    ranges("child", 100);
    // Multiprocessing ends like this: no handlers of exit. What is written is what was flushed.
    usleep(300'000);
    _exit(3);
  }
  other.join();
  ranges("parent", 100);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? 40 + WEXITSTATUS(status) : 99;
}

// The same process, another program in it.
int play_exec(const Words& words) {
  const NvtxClient nvtx(nvtx_door());
  ranges("first", 10);
  usleep(200'000);
  if (words.empty()) return 0;
  execl("/proc/self/exe", "watched", "ranges", "10", words[0].c_str(), nullptr);
  return 98;
}

// Closes every descriptor below a number, as daemons do, and opens files of its own in their place.
int play_close(const Words& words) {
  const NvtxClient nvtx(nvtx_door());
  ranges("before", 10);
  usleep(200'000);
  for (int fd = 3; fd < std::stoi(words.at(1)); ++fd) close(fd);
  int mine[8];
  for (int& fd : mine) fd = open(words.at(0).c_str(), O_RDWR | O_CREAT, 0600);
  ranges("after", 10);
  usleep(200'000);
  return lseek(mine[0], 0, SEEK_END) == 0 ? 0 : 97;
}

// Unloads the library as NCCL does with its last communicator, and goes on.
int play_dlclose(const Words&) {
  const char* const path = std::getenv("NCCL_PROFILER_PLUGIN");
  for (int i = 0; i < 3; ++i) {
    void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return 96;
    const auto* const plugin =
        static_cast<const capture::nccl::PluginV1*>(dlsym(library, "ncclProfiler_v1"));
    void* context = nullptr;
    int mask = 0;
    plugin->init(&context, &mask);
    plugin->finalize(context);
    dlclose(library);
    usleep(50'000);
  }
  return 0;
}

// Changes its environment while it is recorded, as frameworks do when they are loaded.
int play_environment(const Words&) {
  const NvtxClient nvtx(nvtx_door());
  for (int i = 0; i < 3000; ++i) {
    setenv(("WATCHED_" + std::to_string(i)).c_str(), "x", 1);
    if (i % 100 == 0) ranges("inner", 1);
  }
  setenv("NCCL_ALGO", "Tree", 1);
  return 0;
}

// A second copy of the library at another path.
int play_two(const Words& words) {
  const NvtxClient nvtx(nvtx_door());
  ranges("first", 10);
  setenv("NCCL_PROFILER_PLUGIN", words.at(0).c_str(), 1);
  return play_nccl({"5", "1", "10"});
}

// Ranges of steps, by push and by start, and what lies between them.
int play_steps(const Words& words) {
  const NvtxClient nvtx(nvtx_door());
  for (int i = 0; i < std::stoi(words.at(0)); ++i) {
    const std::string name = "iteration " + std::to_string(i);
    const uint64_t whole = NvtxClient::start("whole");
    NvtxClient::push(name.c_str());
    ranges("work", 1);
    NvtxClient::pop();
    NvtxClient::end(whole);
    ranges("between", 1);
    usleep(2000);
  }
  return 0;
}

// Real NCCL, called with a communicator that it refuses: its NVTX ranges come first.
int call_nccl(const Words& words) {
  void* const library = dlopen(words.at(0).c_str(), RTLD_NOW);
  if (library == nullptr) {
    std::printf("%s\n", dlerror());
    return 95;
  }
  using AllReduce = int (*)(const void*, void*, size_t, int, int, void*, void*);
  using AllGather = int (*)(const void*, void*, size_t, int, void*, void*);
  using Broadcast = int (*)(const void*, void*, size_t, int, int, void*, void*);
  using Send = int (*)(const void*, size_t, int, int, void*, void*);
  const auto find = [&](const char* name) { return dlsym(library, name); };
  // Types: 7 float32, 6 float16, 1 uint8. Operators: 0 sum, 2 max.
  int results[] = {
      reinterpret_cast<AllReduce>(find("ncclAllReduce"))(nullptr, nullptr, 1000, 7, 2, nullptr,
                                                         nullptr),
      reinterpret_cast<AllReduce>(find("ncclReduceScatter"))(nullptr, nullptr, 10, 6, 0, nullptr,
                                                             nullptr),
      reinterpret_cast<AllGather>(find("ncclAllGather"))(nullptr, nullptr, 77, 1, nullptr, nullptr),
      reinterpret_cast<Broadcast>(find("ncclBroadcast"))(nullptr, nullptr, 5, 7, 3, nullptr,
                                                         nullptr),
      reinterpret_cast<Send>(find("ncclSend"))(nullptr, 33, 1, 6, nullptr, nullptr),
      reinterpret_cast<Send>(find("ncclRecv"))(nullptr, 34, 1, 2, nullptr, nullptr)};
  for (const int result : results) {
    if (result != 4) return 94;
  }
  return 0;
}

// Deeper than any program, unbalanced, from several threads, with names that end in odd places.
int play_odd(const Words&) {
  const NvtxClient nvtx(nvtx_door());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 300; ++i) NvtxClient::push("deep");
      for (int i = 0; i < 310; ++i) NvtxClient::pop();
      const std::string huge(100'000, 'x');
      NvtxClient::push(huge.c_str());
      NvtxClient::pop();
      NvtxClient::push(static_cast<const char*>(nullptr));
      NvtxClient::pop();
      NvtxClient::mark("mark");
      NvtxClient::end(12345);
      void* const domain = NvtxClient::domain("");
      NvtxClient::pop(domain);
      NvtxClient::push("left open");
    });
  }
  for (std::thread& t : threads) t.join();
  NvtxClient::push("open at the end");
  return 0;
}

int play(const std::string& what, const Words& words) {
  if (what == "nccl") return play_nccl(words);
  if (what == "tuner") return play_tuner(words);
  if (what == "job") return play_job(words);
  if (what == "ranges") return play_ranges(words);
  if (what == "for-ever") return play_for_ever(words);
  if (what == "signal") return play_signal(words);
  if (what == "fork") return play_fork(words);
  if (what == "exec") return play_exec(words);
  if (what == "close") return play_close(words);
  if (what == "dlclose") return play_dlclose(words);
  if (what == "environment") return play_environment(words);
  if (what == "two") return play_two(words);
  if (what == "steps") return play_steps(words);
  if (what == "real-nccl") return call_nccl(words);
  if (what == "odd") return play_odd(words);
  return 89;
}

}  // namespace
}  // namespace rehearse::tests

#ifdef __SANITIZE_THREAD__
// The thread sanitizer takes it for a race that a program closes a descriptor which the library writes to. So it is, and
// the program's own fault: what the library does then is what is tested.
extern "C" const char* __tsan_default_suppressions() { return "race:play_close\n"; }
#endif

int main(int argc, char** argv) {
  if (argc < 2) return 88;
  if (const char* limit = std::getenv("WATCHED_FILE_LIMIT"); limit != nullptr) {
    const rlimit bytes{std::strtoul(limit, nullptr, 10), RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &bytes);
  }
  return rehearse::tests::play(argv[1], {argv + 2, argv + argc});
}
