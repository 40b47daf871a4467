// SPDX-License-Identifier: Apache-2.0
// Imports Kineto JSON and prints MB/s of uncompressed text and peak memory.
//   import_bench [MEGABYTES [FOLDER]]   writes a trace of that size (plain and gz) into FOLDER
//   first import_bench FILE...                imports the files named
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <zlib.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

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

uint64_t uncompressed_size(const std::filesystem::path& path) {
  auto source = Source::open(path, {});
  std::string block(1 << 20, '\0');
  while (source) {
    const auto got = source->read(block);
    if (!got || *got == 0) break;
  }
  return source ? source->offset() : 0;
}

double peak_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

void measure(const std::filesystem::path& path) {
  const double text = static_cast<double>(uncompressed_size(path)) / 1e6;
  const double cpu = cpu_seconds();
  const auto start = std::chrono::steady_clock::now();
  SilentReporter silent;
  const auto imported = import_files({path}, {}, silent);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!imported) {
    fmt::print("{}: {}\n", path.filename().string(), imported.error().message());
    return;
  }
  const double output = static_cast<double>(imported->trace.operations()) * 35 / 1e6;
  fmt::print(
      "{}: {:.1f} MB of text, {} operations, {:.3f} s, {:.0f} MB/s, {:.0f} MB/s per core, output "
      "{:.0f} MB, peak {:.0f} MB\n",
      path.filename().string(), text, imported->trace.operations(), seconds, text / seconds,
      text / (cpu_seconds() - cpu), output, peak_mb());
  if (std::getenv("FINDINGS") == nullptr) return;
  for (const Finding& f : imported->findings.rows()) {
    fmt::print("  {} {} x{}: {} ({})\n", name_of(f.severity), f.id, f.count, f.first, f.advice);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::filesystem::exists(argv[1])) {
    for (int i = 1; i < argc; ++i) measure(argv[i]);
    return 0;
  }
  const uint64_t megabytes = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 200;
  const std::filesystem::path folder = argc > 2 ? argv[2] : std::filesystem::temp_directory_path();
  for (const bool compressed : {false, true}) {
    const auto path =
        folder / (compressed ? "rehearse-bench-rank0.json.gz" : "rehearse-bench-rank0.json");
    write_sample(path, megabytes * 1'000'000, compressed);
    measure(path);
    std::filesystem::remove(path);
  }
  return 0;
}
