// SPDX-License-Identifier: Apache-2.0
#include "cli/capture_selftest_probes.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <ctime>

#include "base/units.hpp"
#include "traces/capture/nccl_profiler_layout.hpp"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;
namespace nccl = capture::nccl;
using State = Probe::State;

constexpr unsigned kLongest = 30;  // seconds

template <typename Function>
bool resolve(void* library, const char* name, Function& out) {
  out = reinterpret_cast<Function>(::dlsym(library, name));
  return out != nullptr;
}

std::string last_error() {
  const char* const text = ::dlerror();
  return text != nullptr ? text : "no reason given";
}

// The plugin API that a version of NCCL asks for first.
int plugin_version(int nccl) {
  const int minor = nccl / 100 % 100, major = nccl / 10000;
  if (major > 2 || minor >= 29) return 6;
  if (minor >= 28) return 5;
  if (minor >= 27) return 4;
  if (minor >= 26) return 3;
  if (minor >= 24) return 2;
  return minor >= 23 ? 1 : 0;
}

void read_all(int fd, std::string& out) {
  std::array<char, 4096> chunk{};
  for (;;) {
    const ssize_t n = ::read(fd, chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    out.append(chunk.data(), static_cast<size_t>(n));
  }
}

}  // namespace

Probe in_child(const std::function<Probe()>& look) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return {State::kWrong, "no pipe"};
  const pid_t child = ::fork();
  if (child < 0) return {State::kWrong, "no process"};
  if (child == 0) {
    ::alarm(kLongest);
    ::signal(SIGALRM, SIG_DFL);
    const Probe probe = look();
    const std::string text = std::to_string(static_cast<int>(probe.state)) + probe.text;
    [[maybe_unused]] const ssize_t told = ::write(pipe[1], text.data(), text.size());
    // Not _exit: the capture library writes its file at exit.
    std::exit(0);
  }
  ::close(pipe[1]);
  std::string text;
  read_all(pipe[0], text);
  ::close(pipe[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (text.empty() || WIFSIGNALED(status)) {
    const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return {State::kWrong, signal == SIGALRM ? fmt::format("does not answer within {} s", kLongest)
                                             : fmt::format("ended by signal {}", signal)};
  }
  return {static_cast<State>(text[0] - '0'), text.substr(1)};
}

Probe probe_library(const fs::path& library) {
  void* const object = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr) return {State::kWrong, last_error()};
  for (const char* door :
       {"InitializeInjection", "InitializeInjectionNvtx2", "InitializeInjectionNvtxExtension",
        "ncclProfiler_v1", "ncclProfiler_v6"}) {
    if (::dlsym(object, door) == nullptr) {
      return {State::kWrong, fmt::format("{} lacks {}", library.string(), door)};
    }
  }
  return {State::kGood, library.string()};
}

Probe probe_driver() {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return {State::kSkipped, "no CUDA driver: " + last_error()};
  int (*init)(unsigned) = nullptr;
  int (*version_of)(int*) = nullptr;
  int (*count_of)(int*) = nullptr;
  int (*name_of)(char*, int, int) = nullptr;
  if (!resolve(driver, "cuInit", init) || !resolve(driver, "cuDriverGetVersion", version_of) ||
      !resolve(driver, "cuDeviceGetCount", count_of) ||
      !resolve(driver, "cuDeviceGetName", name_of)) {
    return {State::kWrong, last_error()};
  }
  if (const int result = init(0); result != 0) {
    return {State::kSkipped, fmt::format("the driver finds no GPU (cuInit: {})", result)};
  }
  int version = 0, count = 0;
  std::array<char, 256> name{};
  if (version_of(&version) != 0 || count_of(&count) != 0 || count == 0) {
    return {State::kSkipped, "the driver finds no GPU"};
  }
  name_of(name.data(), static_cast<int>(name.size()), 0);
  return {State::kGood, fmt::format("CUDA {}.{}, {} x {}", version / 1000, version % 1000 / 10,
                                    count, name.data())};
}

Probe probe_cupti() {
  void* cupti = nullptr;
  for (const char* name : {"libcupti.so.13", "libcupti.so.12", "libcupti.so",
                           "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"}) {
    cupti = ::dlopen(name, RTLD_NOW);
    if (cupti != nullptr) break;
  }
  if (cupti == nullptr) {
    return {State::kSkipped,
            "no libcupti where the loader looks: frameworks bring their own, "
            "else put it on LD_LIBRARY_PATH"};
  }
  int (*version_of)(uint32_t*) = nullptr;
  int (*subscribe)(void**, void (*)(void*, int, uint32_t, const void*), void*) = nullptr;
  int (*text_of)(int, const char**) = nullptr;
  uint32_t version = 0;
  if (!resolve(cupti, "cuptiGetVersion", version_of) ||
      !resolve(cupti, "cuptiSubscribe", subscribe) ||
      !resolve(cupti, "cuptiGetResultString", text_of) || version_of(&version) != 0) {
    return {State::kWrong, last_error()};
  }
  void* subscriber = nullptr;
  const int result = subscribe(
      &subscriber, [](void*, int, uint32_t, const void*) {}, nullptr);
  if (result == 0) return {State::kGood, fmt::format("version {}", version)};
  const char* text = "";
  text_of(result, &text);
  return {State::kSkipped, fmt::format("version {}; it does not start here: {}", version, text)};
}

Probe probe_nccl() {
  void* const library = ::dlopen("libnccl.so.2", RTLD_NOW);
  if (library == nullptr) {
    return {State::kSkipped, "no libnccl.so.2 where the loader looks: frameworks bring their own"};
  }
  int (*version_of)(int*) = nullptr;
  int version = 0;
  if (!resolve(library, "ncclGetVersion", version_of) || version_of(&version) != 0) {
    return {State::kWrong, "it does not tell its version"};
  }
  const int plugin = plugin_version(version);
  const std::string number =
      fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  return {State::kGood, plugin == 0 ? number + ", too old for profiler plugins: NVTX ranges only"
                                    : fmt::format("{}, profiler plugin v{}", number, plugin)};
}

Probe probe_folder(const fs::path& folder) {
  std::error_code error;
  fs::path there = folder;
  while (!fs::exists(there, error) && there.has_relative_path()) there = there.parent_path();
  std::string file = (there / ".rehearse-selftest-XXXXXX").string();
  const int fd = ::mkstemp(file.data());
  if (fd < 0) return {State::kWrong, there.string() + " cannot be written"};
  ::close(fd);
  fs::remove(file, error);
  struct ::statvfs facts {};
  if (::statvfs(there.c_str(), &facts) != 0) return {State::kWrong, there.string()};
  const uint64_t free = uint64_t{facts.f_bavail} * facts.f_frsize;
  return {State::kGood,
          fmt::format("{}, {} free", folder.string(), format_bytes(static_cast<Bytes>(free)))};
}

Probe probe_cost(const fs::path& library, const fs::path& folder) {
  ::setenv("REHEARSE_CAPTURE_FOLDER", folder.c_str(), 1);
  void* const object = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr) return {State::kWrong, last_error()};
  const auto* const plugin = static_cast<const nccl::PluginV5*>(::dlsym(object, "ncclProfiler_v5"));
  if (plugin == nullptr) return {State::kWrong, last_error()};
  void* context = nullptr;
  int mask = 0;
  if (plugin->init(&context, 1, &mask, "selftest", 1, 1, 0, nullptr) != 0 || mask == 0) {
    return {State::kWrong, "the library does not record"};
  }
  nccl::DescriptorV5 descriptor{};
  descriptor.type = 2;
  descriptor.coll.function = "AllReduce";
  descriptor.coll.datatype = "ncclFloat32";
  descriptor.coll.algorithm = "RING";
  descriptor.coll.protocol = "SIMPLE";
  // The thread's own time: the machine may be busy with other things.
  const auto spent = [] {
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
  };
  const double begin = spent();
  for (int i = 0; i < kPlayedPairs; ++i) {
    descriptor.coll.sequence = static_cast<uint64_t>(i);
    void* handle = nullptr;
    plugin->start_event(context, &handle, &descriptor);
    plugin->stop_event(handle);
  }
  const double took = spent() - begin;
  plugin->finalize(context);
  return {State::kGood, fmt::format("{:.2f} us per event of NCCL", took / kPlayedPairs)};
}

Probe probe_kernel(const fs::path& library, const fs::path& folder) {
  ::setenv("REHEARSE_CAPTURE_FOLDER", folder.c_str(), 1);
  ::setenv("CUDA_INJECTION64_PATH", library.c_str(), 1);
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return {State::kSkipped, "no CUDA driver"};
  int (*init)(unsigned) = nullptr;
  int (*device)(int*, int) = nullptr;
  int (*retain)(void**, int) = nullptr;
  int (*current)(void*) = nullptr;
  int (*load)(void**, const void*) = nullptr;
  int (*function)(void**, void*, const char*) = nullptr;
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                void**, void**) = nullptr;
  int (*synchronize)() = nullptr;
  if (!resolve(driver, "cuInit", init) || !resolve(driver, "cuDeviceGet", device) ||
      !resolve(driver, "cuDevicePrimaryCtxRetain", retain) ||
      !resolve(driver, "cuCtxSetCurrent", current) || !resolve(driver, "cuModuleLoadData", load) ||
      !resolve(driver, "cuModuleGetFunction", function) ||
      !resolve(driver, "cuLaunchKernel", launch) ||
      !resolve(driver, "cuCtxSynchronize", synchronize)) {
    return {State::kWrong, last_error()};
  }
  if (init(0) != 0) return {State::kSkipped, "no GPU"};
  static constexpr const char* kKernel =
      ".version 6.0\n.target sm_50\n.address_size 64\n"
      ".visible .entry rehearse_selftest()\n{\nret;\n}\n";
  int handle = 0;
  void* context = nullptr;
  void* module = nullptr;
  void* kernel = nullptr;
  if (device(&handle, 0) != 0 || retain(&context, handle) != 0 || current(context) != 0 ||
      load(&module, kKernel) != 0 || function(&kernel, module, "rehearse_selftest") != 0 ||
      launch(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) != 0 || synchronize() != 0) {
    return {State::kWrong, "a kernel that does nothing does not run"};
  }
  return {State::kGood, "a kernel ran"};
}

}  // namespace rehearse::cli
