// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <filesystem>

#include "base/atomic_file.hpp"
#include "synth_sample.hpp"
#include "tests/temporary_folder.hpp"
#include "traces/model/rtrace.hpp"

namespace rehearse::synth::synth_write_test {
namespace {

using Folder = tests::TemporaryFolder;

pb::Synth job() {
  pb::Synth options = small_gpt();
  options.set_dp(3);
  options.set_tp(2);
  options.set_pp(2);
  return options;
}

}  // namespace

TEST_CASE("a generated file has the same bytes for any number of threads",
          "[traces][synth][threads]") {
  const Folder folder;
  SilentReporter silent;
  std::string bytes;
  for (int threads : {1, 2, 5}) {
    const auto path = folder.path / (std::to_string(threads) + ".rtrace");
    const auto operations =
        synthesize_to(path, job(), sample_gpu(), {Overwrite::kRefuse, threads}, silent);
    REQUIRE(operations);
    const auto content = read_file(path, 100 << 20);
    REQUIRE(content);
    if (bytes.empty()) bytes = *content;
    CHECK(*content == bytes);
  }
}

TEST_CASE("a generated file reads back as the trace in memory", "[traces][synth]") {
  const Folder folder;
  SilentReporter silent;
  const auto path = folder.path / "job.rtrace";
  const auto operations = synthesize_to(path, job(), sample_gpu(), {}, silent);
  REQUIRE(operations);
  const auto memory = synthesize(job(), sample_gpu());
  const auto file = traces::read_rtrace(path, {}, silent);
  REQUIRE(memory);
  REQUIRE(file);
  CHECK(*operations == memory->operations());
  CHECK(file->header.SerializeAsString() == memory->header.SerializeAsString());
  CHECK(file->header.synthetic());
  CHECK(file->header.synth().hidden() == 512);
  REQUIRE(file->ranks.size() == memory->ranks.size());
  for (size_t r = 0; r < file->ranks.size(); ++r) {
    CHECK(file->ranks[r].ops.start == memory->ranks[r].ops.start);
    CHECK(file->ranks[r].ops.kind == memory->ranks[r].ops.kind);
    CHECK(file->ranks[r].ops.calls.size() == memory->ranks[r].ops.calls.size());
    CHECK(file->ranks[r].env == memory->ranks[r].env);
  }
}

TEST_CASE("an existing file is not replaced unless asked, a refused job leaves none",
          "[traces][synth]") {
  const Folder folder;
  SilentReporter silent;
  const auto path = folder.path / "job.rtrace";
  REQUIRE(synthesize_to(path, job(), sample_gpu(), {}, silent));
  CHECK_FALSE(synthesize_to(path, job(), sample_gpu(), {}, silent));
  CHECK(synthesize_to(path, job(), sample_gpu(), {Overwrite::kReplace, 2}, silent));
  pb::Synth wrong = job();
  wrong.set_layers(5);
  CHECK_FALSE(synthesize_to(folder.path / "none.rtrace", wrong, sample_gpu(), {}, silent));
  CHECK_FALSE(std::filesystem::exists(folder.path / "none.rtrace"));
}

}  // namespace rehearse::synth::synth_write_test
