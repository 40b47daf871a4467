// SPDX-License-Identifier: Apache-2.0
// Imports Kineto JSON, each file in a process of its own, and prints MB of uncompressed text per second
// (and per second of processor time), peak memory and what of it is not output.
//   import_bench            the real files of REHEARSE_DATA, generated ones of 10 to 640 MB plain and
//                           gzip, and python's json.load on one of them
//   import_bench --large    the same with 4 GB
//   import_bench FILE...    the files named
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "traces/import/import.hpp"

using namespace rehearse;
using namespace rehearse::traces;

namespace {

// One training step: operators, launches, kernels, an all-reduce; the mix of a real profile.
std::string step_text(int64_t step) {
  std::string out;
  int64_t id = step * 1000 + 1;
  double at = static_cast<double>(step) * 10000;
  out += fmt::format(
      R"(  {{
    "ph": "X", "cat": "user_annotation", "name": "ProfilerStep#{}", "pid": 4242, "tid": 4242,
    "ts": {:.3f}, "dur": 9990.125,
    "args": {{ "External id": {}, "Record function id": 0, "Ev Idx": {} }}
  }},
)",
      step, at, id, id);
  for (int i = 0; i < 60; ++i, ++id, at += 150.25) {
    out += fmt::format(
        R"(  {{
    "ph": "X", "cat": "cpu_op", "name": "aten::convolution_backward_{}", "pid": 4242, "tid": 4242,
    "ts": {:.3f}, "dur": 140.5,
    "args": {{ "External id": {}, "Record function id": 0, "Concrete Inputs": ["", "", "[64]", "[2, 2]"], "Input type": ["float", "float", "ScalarList", "ScalarList"], "Input Dims": [[32, 64, 112, 112], [64, 3, 7, 7], [], []], "Ev Idx": {} }}
  }},
  {{
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 4242, "tid": 4242,
    "ts": {:.3f}, "dur": 6.125,
    "args": {{ "External id": {}, "cbid": 211, "correlation": {} }}
  }},
  {{ "ph": "s", "id": {}, "pid": 4242, "tid": 4242, "ts": {:.3f}, "cat": "ac2g", "name": "ac2g" }},
  {{
    "ph": "X", "cat": "kernel", "name": "{}", "pid": 0, "tid": {},
    "ts": {:.3f}, "dur": 120.5,
    "args": {{ "External id": {}, "queued": 0, "device": 0, "context": 1, "stream": {}, "correlation": {}, "registers per thread": 96, "shared memory": 49152, "blocks per SM": 0.074074, "warps per SM": 1.259259, "grid": [8, 1, 1], "block": [544, 1, 1], "est. achieved occupancy %": 0 }}
  }},
  {{ "ph": "f", "id": {}, "pid": 0, "tid": 7, "ts": {:.3f}, "cat": "ac2g", "name": "ac2g", "bp": "e" }},
)",
        i % 12, at, id, id, at + 20, id, id, id, at + 20,
        i == 59 ? "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
                : "void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512, true, 1>(float, "
                  "float, float)",
        i == 59 ? 20 : 7, at + 30, id, i == 59 ? 20 : 7, id, id, at + 30);
  }
  return out;
}

void write_sample(const std::filesystem::path& path, uint64_t bytes, bool compressed) {
  const std::string head =
      R"({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2},
"baseTimeNanoseconds": 1711964646000000000, "traceEvents": [
)";
  const std::string tail =
      R"(  {"name": "process_name", "ph": "M", "ts": 0.0, "pid": 4242, "tid": 0, "args": {"name": "python"}}
]}
)";
  std::FILE* plain = compressed ? nullptr : std::fopen(path.c_str(), "wb");
  gzFile packed = compressed ? gzopen(path.c_str(), "wb4") : nullptr;
  uint64_t written = 0;
  const auto put = [&](const std::string& text) {
    written += text.size();
    if (plain != nullptr) std::fwrite(text.data(), 1, text.size(), plain);
    if (packed != nullptr) gzwrite(packed, text.data(), static_cast<unsigned>(text.size()));
  };
  put(head);
  for (int64_t step = 0; written < bytes; ++step) put(step_text(step));
  put(tail);
  if (plain != nullptr) std::fclose(plain);
  if (packed != nullptr) gzclose(packed);
}

namespace fs = std::filesystem;

// What a child process took.
struct Figures {
  double seconds = 0, cpu = 0, peak = 0;  // MB
  bool ok = false;
};

double seconds_of(const timeval& t) {
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
}

Figures in_child(const std::function<int()>& work) {
  std::fflush(stdout);
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  Figures f;
  f.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  f.cpu = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  f.peak = static_cast<double>(usage.ru_maxrss) / 1024 * 1.048576;
  f.ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return f;
}

template <typename T>
double megabytes(const std::vector<T>& column) {
  return static_cast<double>(column.size() * sizeof(T)) / 1e6;
}

double output_of(const Trace& trace) {
  double sum = 0;
  for (const RankTrace& r : trace.ranks) {
    const Operations& o = r.ops;
    sum += megabytes(o.kind) + megabytes(o.lane) + megabytes(o.name) + megabytes(o.start) +
           megabytes(o.duration) + megabytes(o.correlation) + megabytes(o.detail) +
           megabytes(o.calls) + megabytes(o.copies) + megabytes(o.syncs) + megabytes(o.memory);
  }
  return sum;
}

double text_of(const fs::path& path) {
  auto source = Source::open(path, {});
  std::string block(1 << 20, '\0');
  while (source) {
    const auto got = source->read(block);
    if (!got || *got == 0) break;
  }
  return source ? static_cast<double>(source->offset()) / 1e6 : 0;
}

Figures measure(const std::string& name, const std::vector<fs::path>& files) {
  double text = 0, output = 0;
  for (const fs::path& file : files) text += text_of(file);
  int pipes[2];
  if (pipe(pipes) != 0) return {};
  const Figures f = in_child([&] {
    SilentReporter silent;
    double largest = 0;
    for (const fs::path& file : files) {
      const auto imported = import_files({file}, {}, silent);
      if (!imported) return 1;
      largest = std::max(largest, output_of(imported->trace));
    }
    return write(pipes[1], &largest, sizeof largest) == sizeof largest ? 0 : 1;
  });
  close(pipes[1]);
  if (read(pipes[0], &output, sizeof output) != sizeof output) output = 0;
  close(pipes[0]);
  fmt::print(
      "{:<28} {:8.1f} MB {:8.3f} s {:6.0f} MB/s {:6.0f} MB/s per core   peak {:6.0f} MB, "
      "beyond the output {:5.0f} MB{}\n",
      name, text, f.seconds, text / f.seconds, text / f.cpu, f.peak, f.peak - output,
      f.ok ? "" : "  (refused)");
  return f;
}

// Real profiles, the larger ones plain: their text is what counts.
void measure_real(const fs::path& folder) {
  const char* data = std::getenv("REHEARSE_DATA");
  const fs::path root = fs::path(data != nullptr ? data : "../shared/data") / "kineto";
  if (!fs::exists(root)) {
    fmt::print("skipped: no real traces (REHEARSE_DATA)\n");
    return;
  }
  std::vector<fs::path> packed, plain;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".gz" || entry.file_size() < 400'000) continue;
    if (entry.path().string().find("/et/") == std::string::npos) packed.push_back(entry.path());
  }
  std::sort(packed.begin(), packed.end());
  for (const fs::path& file : packed) {
    plain.push_back(folder / ("rehearse-bench-" + file.stem().string()));
    auto source = Source::open(file, {});
    std::FILE* out = std::fopen(plain.back().c_str(), "wb");
    std::string block(1 << 20, '\0');
    while (source && out != nullptr) {
      const auto got = source->read(block);
      if (!got || *got == 0) break;
      std::fwrite(block.data(), 1, *got, out);
    }
    if (out != nullptr) std::fclose(out);
  }
  measure(fmt::format("{} real files, gz", packed.size()), packed);
  measure(fmt::format("{} real files, plain", plain.size()), plain);
  for (const fs::path& file : plain) fs::remove(file);
}

void compare_with_python(const fs::path& path, const Figures& ours) {
  const Figures python = in_child([&] {
    execlp("python3", "python3", "-c", "import json,sys; json.load(open(sys.argv[1]))",
           path.c_str(), static_cast<char*>(nullptr));
    return 1;
  });
  if (!python.ok) {
    fmt::print("skipped: no python3\n");
    return;
  }
  fmt::print(
      "python3 json.load {:.2f} s, {:.0f} MB: {:.1f} times as long, {:.1f} times the memory\n",
      python.seconds, python.peak, python.seconds / ours.seconds, python.peak / ours.peak);
}

}  // namespace

int main(int argc, char** argv) {
  const bool large = argc > 1 && std::string(argv[1]) == "--large";
  if (argc > 1 && !large) {
    for (int i = 1; i < argc; ++i) measure(fs::path(argv[i]).filename().string(), {argv[i]});
    return 0;
  }
  const fs::path folder = fs::temp_directory_path();
  measure_real(folder);
  std::vector<uint64_t> sizes = {10, 40, 160, 640};
  if (large) sizes.push_back(4000);
  for (const uint64_t size : sizes) {
    const fs::path path = folder / "rehearse-bench-rank0.json";
    write_sample(path, size * 1'000'000, false);
    const Figures ours = measure(fmt::format("generated, {} MB", size), {path});
    if (size == 160) compare_with_python(path, ours);
    fs::remove(path);
  }
  const fs::path packed = folder / "rehearse-bench-rank0.json.gz";
  write_sample(packed, 320'000'000, true);
  measure("generated, 320 MB gz", {packed});
  fs::remove(packed);
  return 0;
}
