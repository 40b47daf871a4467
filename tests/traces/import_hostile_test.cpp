// SPDX-License-Identifier: Apache-2.0
// Damaged files through the whole import: a clear error or findings, never a crash, and what was
// imported can be built, evaluated and inspected.
#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "base/random.hpp"
#include "tests/project.hpp"
#include "tests/traces/damage.hpp"
#include "tests/traces/import_samples.hpp"
#include "tests/traces/synth_sample.hpp"
#include "traces/export/kineto.hpp"
#include "traces/inspect/inspection.hpp"
#include "traces/program/evaluate.hpp"
#include "traces/program/program.hpp"

namespace rehearse::import_hostile_test {
using namespace rehearse;
using namespace rehearse::traces;

namespace {

std::string corpus(const std::string& name) {
  std::ifstream in(tests::project() / "tests/corpus" / name);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> documents() {
  std::vector<std::string> out = {corpus("kineto/small.json"), corpus("pytorch_et/flat.json"),
                                  corpus("pytorch_et/groups.json")};
  pb::Synth options = synth::small_gpt();
  options.set_layers(1);
  options.set_micro_batches(1);
  options.set_tp(2);
  const auto trace = synth::synthesize(options, synth::sample_gpu());
  REQUIRE(trace);
  out.push_back(
      kineto_json(trace->ranks[0], {trace->header, trace->communicators, trace->strings}));
  return out;
}

// Returns whether it was imported.
bool survives(const std::string& text, const ImportOptions& options) {
  const auto got = samples::import_text(text, options);
  if (!got) {
    CHECK_FALSE(got.error().what.empty());
    return false;
  }
  const auto program = build_program(got->trace);
  if (program) {
    for (const RankProgram& rank : program->ranks) {
      if (rank.edge_begin.back() != rank.edges.size()) FAIL("edges are not counted");
    }
    (void)recorded_step(*program);
  }
  CHECK(inspect(got->trace, {}));
  return true;
}

}  // namespace

TEST_CASE("files with flipped bits are refused, or can be used as far as they go",
          "[import][refusal]") {
  Random random(3, "flips");
  for (const std::string& text : documents()) {
    REQUIRE(text.size() > 100);
    int imported = 0;
    for (int i = 0; i < 150; ++i) {
      std::string damaged = text;
      for (uint64_t flips = 1 + random.below(4); flips-- > 0;) {
        damaged[random.below(damaged.size())] ^= static_cast<char>(1 << random.below(8));
      }
      imported += survives(damaged, {.assume_symmetric = 1, .unprofiled_step = 1000}) ? 1 : 0;
    }
    CHECK(imported > 0);
  }
}

TEST_CASE("files cut at every hundredth are refused, or can be used up to the cut",
          "[import][refusal]") {
  for (const std::string& text : documents()) {
    for (size_t percent = 1; percent < 100; ++percent) {
      const std::string cut = text.substr(0, text.size() * percent / 100);
      CHECK_FALSE(samples::import_text(cut));
      survives(cut, {.cut_files = CutFiles::kAccept});
    }
  }
}

TEST_CASE("lines of events and nodes as JSON bear cuts and flips", "[import][refusal]") {
  std::string lines;
  for (int i = 0; i < 40; ++i) {
    const std::string at = std::to_string(100 * i), id = std::to_string(i + 1);
    lines +=
        R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": )" +
        at + R"(, "dur": 4, "args": {"correlation": )" + id + "}}\n" +
        R"({"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": )" + at +
        R"(.5, "dur": 20, "args": {"device": 0, "stream": 7, "correlation": )" + id + "}}\n";
  }
  samples::check_cuts(lines, "rank0.jsonl");
  samples::check_flips(lines, "rank0.jsonl");
  samples::check_flips(corpus("chakra/small.0.json"), "small.0.json");
}

TEST_CASE("operations at random times and lanes give a program that can run", "[traces][program]") {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed, "chaos");
    Trace trace;
    trace.communicators = {{"all", "", {0}, ""}};
    RankTrace rank;
    for (int i = 0; i < 6; ++i) rank.lanes.push_back({static_cast<LaneKind>(i % 3), i, 0});
    const auto some = [&](uint64_t n) { return static_cast<int64_t>(random.below(n)); };
    for (int i = 0; i < 400; ++i) {
      const auto lane = static_cast<LaneId>(random.below(6));
      const Nanos start = some(2'000'000), length = some(100'000);
      const int64_t id = some(60);
      switch (random.below(4)) {
        case 0:
          rank.ops.add_sync(lane, 0, start, length, id,
                            {static_cast<SyncKind>(random.below(5)),
                             static_cast<int32_t>(some(8)) - 1, random.below(5)});
          break;
        case 1:
          rank.ops.add_call(lane, 0, start, length, id, {.sequence = i});
          break;
        default:
          rank.ops.add(static_cast<OpKind>(random.below(3)), lane, 0, start, length, id);
      }
    }
    rank.ops.sort();
    trace.ranks = {rank};
    const auto program = build_program(trace);
    REQUIRE(program);
    trace.ranks[0].steps = {{0, 0, 2'100'000}};
    const auto stepped = build_program(trace);
    REQUIRE(stepped);
    CHECK(recorded_step(*stepped) > 0);  // nothing waits for itself
  }
}

}  // namespace rehearse::import_hostile_test
