// SPDX-License-Identifier: Apache-2.0
// Writes and reads a generated training run and prints operations per second and bytes per
// operation.
//   rtrace_bench [RANKS [STEPS [FILE]]]
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "tests/traces/trace_samples.hpp"
#include "traces/model/rtrace.hpp"

using namespace rehearse;
using namespace rehearse::traces;

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Result<void> write(const samples::TrainingRun& run, const std::filesystem::path& path) {
  const Trace frame = samples::training_frame(run);
  RH_TRY(RtraceWriter writer, RtraceWriter::create(path, Overwrite::kReplace));
  if (auto done = writer.header(frame.header); !done) return done;
  for (const Communicator& c : frame.communicators) {
    if (auto done = writer.communicator(c); !done) return done;
  }
  double seconds = 0;
  for (RankId r = 0; r < run.ranks; ++r) {
    const RankTrace rank = samples::training_rank(run, r);
    const auto start = std::chrono::steady_clock::now();
    if (auto done = writer.rank(rank, frame.strings); !done) return done;
    seconds += seconds_since(start);
  }
  if (auto done = writer.commit(); !done) return done;
  const auto operations = static_cast<double>(writer.operations());
  fmt::print("write: {} operations of {} ranks, {:.2f} M operations/s, {:.2f} bytes/operation\n",
             writer.operations(), run.ranks, operations / seconds / 1e6,
             static_cast<double>(std::filesystem::file_size(path)) / operations);
  return {};
}

Result<void> read(const std::filesystem::path& path, int threads) {
  const auto start = std::chrono::steady_clock::now();
  RH_TRY(const RtraceReader reader, RtraceReader::open(path, {.threads = threads}));
  const double opened = seconds_since(start);
  uint64_t operations = 0;
  SilentReporter silent;
  const auto count = [&](RankTrace&& rank) -> Result<void> {
    operations += rank.ops.size();
    return {};
  };
  if (auto done = reader.for_each_rank(count, silent); !done) return done;
  const double seconds = seconds_since(start);
  fmt::print("read, {} threads: {:.2f} s (open {:.3f} s), {:.1f} M operations/s\n", threads,
             seconds, opened, static_cast<double>(operations) / seconds / 1e6);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  samples::TrainingRun run{.ranks = 64, .steps = 4};
  if (argc > 1) run.ranks = static_cast<uint32_t>(std::atoi(argv[1]));
  if (argc > 2) run.steps = static_cast<uint32_t>(std::atoi(argv[2]));
  const samples::Folder folder;
  const std::filesystem::path path =
      argc > 3 ? std::filesystem::path(argv[3]) : folder / "bench.rtrace";
  auto done = write(run, path);
  for (int i = 0; i < 3 && done; ++i) done = read(path, 2);
  if (done) done = read(path, 1);
  if (!done) fmt::print(stderr, "{}\n", done.error().message());
  return done ? 0 : static_cast<int>(done.error().code);
}
