// SPDX-License-Identifier: Apache-2.0
// Inspects a .rtrace file, or a generated run of 1,024 ranks, and prints the time and the memory it
// took.
//   inspect_bench [FILE]
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>

#include "tests/traces/trace_samples.hpp"
#include "traces/inspect/inspection.hpp"

using namespace rehearse;
using namespace rehearse::traces;

namespace {

Result<void> generate(const std::filesystem::path& path) {
  const samples::TrainingRun run{.ranks = 1024, .steps = 5};
  const Trace frame = samples::training_frame(run);
  RH_TRY(RtraceWriter writer, RtraceWriter::create(path, Overwrite::kReplace));
  if (auto done = writer.header(frame.header); !done) return done;
  for (const Communicator& c : frame.communicators) {
    if (auto done = writer.communicator(c); !done) return done;
  }
  for (RankId r = 0; r < run.ranks; ++r) {
    if (auto done = writer.rank(samples::training_rank(run, r), frame.strings); !done) return done;
  }
  return writer.commit();
}

Result<void> run(const std::filesystem::path& path) {
  const auto start = std::chrono::steady_clock::now();
  SilentReporter silent;
  RH_TRY(const RtraceReader reader, RtraceReader::open(path, {}));
  RH_TRY(const Inspection inspection, inspect(reader, {}, silent));
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print("inspect: {} operations in {:.2f} s, {:.1f} M operations/s, largest memory {} MiB\n",
             inspection.operations, seconds,
             static_cast<double>(inspection.operations) / seconds / 1e6, usage.ru_maxrss / 1024);
  fmt::print("{}", to_text(inspection, 100));
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const samples::Folder folder;
  const std::filesystem::path path =
      argc > 1 ? std::filesystem::path(argv[1]) : folder / "big.rtrace";
  Result<void> done = argc > 1 ? Result<void>() : generate(path);
  if (done) done = run(path);
  if (!done) fmt::print(stderr, "{}\n", done.error().message());
  return done ? 0 : static_cast<int>(done.error().code);
}
