// SPDX-License-Identifier: Apache-2.0
// Real files that are one job, and what is left of one that was cut.
#include <catch2/catch.hpp>

#include "tests/skip.hpp"
#include "tests/traces/import_samples.hpp"

namespace rehearse::import_real_test {
using namespace rehearse;
using namespace rehearse::traces;

TEST_CASE("eight ranks of DLRM become eight collectives of eight ranks with sizes",
          "[import][real]") {
  const auto data = rehearse::tests::real_data();
  if (!data) return;
  SilentReporter silent;
  const auto got = import_files({*data / "kineto/dlrm_8rank_v100"}, {}, silent);
  if (!got) FAIL(got.error().message());
  const Trace& trace = got->trace;
  REQUIRE(trace.ranks.size() == 8);
  CHECK(trace.header.world_size() == 8);
  REQUIRE(trace.communicators.size() == 1);
  CHECK(trace.communicators[0].members.size() == 8);
  // Kind, bytes in; bytes out of the uneven exchange differ by rank.
  const std::vector<std::pair<Collective, Bytes>> order = {
      {Collective::kAllToAll, 6144 * 4},    {Collective::kAllToAll, 24 * 8},
      {Collective::kAllToAll, 384 * 4},     {Collective::kAllToAll, 3392 * 4},
      {Collective::kAllReduce, 394241 * 4}, {Collective::kAllToAll, 6144 * 4},
      {Collective::kAllReduce, 112 * 4},    {Collective::kAllReduce, 226960 * 4}};
  const std::vector<Bytes> uneven = {96, 224, 288, 1664, 592, 96, 192, 240};
  for (const RankTrace& rank : trace.ranks) {
    REQUIRE(rank.ops.calls.size() == 8);
    for (const Call& call : rank.ops.calls) {
      const auto& [kind, bytes] = order.at(static_cast<size_t>(call.sequence));
      CHECK(call.collective == kind);
      CHECK(call.bytes_in == bytes);
      CHECK(call.bytes_out == (call.sequence == 3 ? uneven[rank.rank] * 8 * 4 : bytes));
    }
    REQUIRE(rank.steps.size() == 1);
    CHECK(rank.steps[0].number == 10);
    CHECK(rank.gpu_model == "Tesla V100-SXM2-32GB");
  }
  CHECK(trace.ranks[3].steps[0].end - trace.ranks[3].steps[0].start == 19'313'000);
  CHECK(got->findings.count("collective-without-size") == 0);
  CHECK(got->findings.count("execution-trace-mismatch") == 0);
  CHECK(got->findings.count("collective-mismatch") == 0);
  CHECK(got->findings.count("ranks-missing") == 0);
  CHECK(trace.header.clock_residual() <= 7'000);
}

TEST_CASE("an execution trace of the second of two ranks is of rank 1", "[import][real]") {
  const auto data = rehearse::tests::real_data();
  if (!data) return;
  SilentReporter silent;
  const auto got = import_files({*data / "et/resnet_2gpu_et_1.1.0.json.gz"}, {}, silent);
  if (!got) FAIL(got.error().message());
  REQUIRE(got->trace.ranks.size() == 1);
  CHECK(got->trace.ranks[0].rank == 1);  // its tensors are on cuda:1; broadcasts name their root, 0
  CHECK(got->trace.header.world_size() == 2);
  CHECK(got->findings.count("rank-contradiction") == 0);
}

TEST_CASE("a real trace cut at every hundredth is refused, or accepted and marked",
          "[import][real]") {
  const auto data = rehearse::tests::real_data();
  if (!data) return;
  auto source = Source::open(*data / "kineto/critical_path/alexnet_trace.json.gz", {});
  REQUIRE(source);
  std::string text(1 << 20, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const auto got = source->read(std::span(text).subspan(size));
    REQUIRE(got);
    if (*got == 0) break;
    size += *got;
  }
  text.resize(size);
  size_t last = 0;
  for (size_t percent = 1; percent < 100; ++percent) {
    const std::string cut = text.substr(0, text.size() * percent / 100);
    INFO(percent << " %");
    CHECK_FALSE(samples::import_text(cut));
    const auto taken = samples::import_text(cut, {.cut_files = CutFiles::kAccept});
    if (!taken) continue;
    CHECK(taken->findings.count("file-cut") == 1);
    CHECK(taken->trace.operations() >= last);
    last = taken->trace.operations();
  }
  CHECK(last > 700);
}

}  // namespace rehearse::import_real_test
