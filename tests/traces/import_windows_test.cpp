// SPDX-License-Identifier: Apache-2.0
// Ranks that recorded different parts of a run, clocks that differ, and what a program looks like after
// a way through another format.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "base/random.hpp"
#include "tests/skip.hpp"
#include "tests/traces/import_samples.hpp"
#include "tests/traces/synth_sample.hpp"
#include "traces/export/kineto.hpp"
#include "traces/import/clock.hpp"
#include "traces/import/match_by_time.hpp"
#include "traces/program/program.hpp"

namespace rehearse::import_windows_test {
using namespace rehearse;
using namespace rehearse::traces;

namespace {

// `kinds` at irregular times; only those of `recorded`.
RankPart window(RankId rank, const std::vector<Collective>& kinds,
                const std::vector<size_t>& recorded, Nanos offset) {
  RankPart part;
  part.trace.rank = rank;
  part.trace.lanes = {{LaneKind::kStream, 7, 0}};
  int64_t sequence = 0;
  for (const size_t k : recorded) {
    Call call;
    call.collective = kinds[k];
    call.sequence = sequence++;
    const auto end =
        static_cast<Nanos>(k * 1'000'000 + k * k * 37'000) + offset + Nanos{rank} * 3'000;
    part.trace.ops.add_call(0, 0, end - 400'000 + Nanos{rank} * 100'000,
                            400'000 - Nanos{rank} * 100'000, 0, call);
  }
  return part;
}

}  // namespace

TEST_CASE("windows of a run are matched by the times at which collectives end", "[import][match]") {
  using enum Collective;
  const std::vector<Collective> kinds = {kAllReduce, kAllGather, kAllReduce, kAllToAll,
                                         kAllReduce, kAllGather, kAllToAll,  kAllReduce,
                                         kAllGather, kAllReduce};
  std::vector<RankPart> ranks;
  ranks.push_back(window(0, kinds, {0, 1, 2, 3, 5, 6, 7, 9}, 0));
  ranks.push_back(window(1, kinds, {1, 2, 4, 5, 6, 8, 9}, 40'000'000));
  const auto match = match_by_time(ranks, 0, 0.3);
  REQUIRE(match);
  CHECK(match->matched == 2 * 5);
  CHECK(match->unmatched == 3 + 2);
  const auto sequence = [&](size_t rank, size_t call) {
    return ranks[rank].trace.ops.calls[call].sequence;
  };
  CHECK(sequence(0, 1) == sequence(1, 0));
  CHECK(sequence(0, 4) == sequence(1, 3));
  CHECK(sequence(0, 7) == sequence(1, 6));
  CHECK(sequence(1, 2) == 4);  // number 4 of the run, which rank 0 did not record
}

TEST_CASE("windows with nothing in common stay as they are", "[import][match]") {
  using enum Collective;
  std::vector<RankPart> ranks;
  ranks.push_back(window(0, std::vector<Collective>(8, kAllReduce), {0, 1, 2}, 0));
  ranks.push_back(window(1, std::vector<Collective>(8, kAllGather), {4, 5, 6}, 0));
  CHECK_FALSE(match_by_time(ranks, 0, 0.3));
  CHECK(ranks[1].trace.ops.calls[0].sequence == 0);
}

TEST_CASE("two of 128 ranks that were sampled are no error", "[import][real]") {
  const auto data = rehearse::tests::real_data();
  if (!data) return;
  SilentReporter silent;
  const auto got = import_files({*data / "kineto/recsys_sampled_2of128"}, {}, silent);
  REQUIRE(got);
  for (const Finding& f : got->findings.rows()) {
    INFO(f.id << ": " << f.first);
    CHECK(f.severity != Severity::kError);
  }
  CHECK(got->findings.count("ranks-missing") == 126);
}

TEST_CASE("clocks of generated ranks are recovered within 5 us", "[import][clock]") {
  struct Case {
    const char* model;
    uint32_t dp, tp;
    double jitter;
  };
  for (const Case c :
       {Case{"resnet50", 8, 1, 0.3}, Case{"gpt", 4, 2, 0.02}, Case{"dlrm", 8, 1, 0.5}}) {
    INFO(c.model);
    pb::Synth options = synth::named(c.model);
    options.set_dp(c.dp);
    options.set_tp(c.tp);
    options.set_steps(6);
    options.set_jitter(c.jitter);
    if (options.model() == "gpt") options.set_layers(8);
    auto truth = synth::synthesize(options, synth::sample_gpu());
    REQUIRE(truth);
    Trace trace = *truth;
    Random random(11, "clocks");
    for (RankTrace& r : trace.ranks) {
      r.host = "host" + std::to_string(r.rank);
      const double offset = r.rank == 0 ? 0 : (2 * random.uniform() - 1) * 50e6;
      const double drift = r.rank == 0 ? 0 : (2 * random.uniform() - 1) * 20e-6;
      const auto read = [&](Nanos t) {
        return t + static_cast<Nanos>(std::llround(offset + drift * static_cast<double>(t)));
      };
      for (size_t op = 0; op < r.ops.size(); ++op) {
        const Nanos end = read(r.ops.start[op] + r.ops.duration[op]);
        r.ops.start[op] = read(r.ops.start[op]);
        r.ops.duration[op] = end - r.ops.start[op];
      }
    }
    Findings findings;
    const ClockFit fit = align_clocks(trace, findings);
    CHECK(fit.aligned);
    Nanos worst = 0;
    for (size_t r = 0; r < trace.ranks.size(); ++r) {
      for (size_t op = 0; op < trace.ranks[r].ops.size(); ++op) {
        worst =
            std::max(worst, std::abs(trace.ranks[r].ops.start[op] - truth->ranks[r].ops.start[op]));
      }
    }
    CHECK(worst <= 5'000);
  }
}

TEST_CASE("a generated job is the same program after a way through Kineto files",
          "[import][roundtrip]") {
  pb::Synth options = synth::small_gpt();
  options.set_tp(2);
  options.set_pp(2);
  options.set_dp(2);
  auto truth = synth::synthesize(options, synth::sample_gpu());
  REQUIRE(truth);
  const samples::TempFolder folder;
  for (const RankTrace& r : truth->ranks) {
    REQUIRE(write_kineto(r, {truth->header, truth->communicators, truth->strings}, folder.path(),
                         Compression::kNone, Overwrite::kRefuse));
  }
  SilentReporter silent;
  const auto got = import_files({folder.path()}, {}, silent);
  REQUIRE(got);
  const auto a = build_program(*truth), b = build_program(got->trace);
  REQUIRE(a);
  REQUIRE(b);
  REQUIRE(a->ranks.size() == b->ranks.size());
  CHECK(a->steps == b->steps);
  for (size_t r = 0; r < a->ranks.size(); ++r) {
    const RankProgram &x = a->ranks[r], &y = b->ranks[r];
    REQUIRE(x.lanes.size() == y.lanes.size());
    REQUIRE(x.size() == y.size());
    for (LaneId l = 0; l < x.lanes.size(); ++l) {
      const auto same = std::find_if(y.lanes.begin(), y.lanes.end(), [&](const Lane& lane) {
        return lane.kind == x.lanes[l].kind && lane.id == x.lanes[l].id;
      });
      REQUIRE(same != y.lanes.end());
      const auto m = static_cast<LaneId>(same - y.lanes.begin());
      const OpId n = x.lane_begin[l + 1] - x.lane_begin[l];
      REQUIRE(y.lane_begin[m + 1] - y.lane_begin[m] == n);
      for (OpId k = 0; k < n; ++k) {
        const OpId p = x.lane_begin[l] + k, q = y.lane_begin[m] + k;
        CHECK(x.kind[p] == y.kind[q]);
        CHECK(x.duration[p] == y.duration[q]);
        CHECK(x.gap[p] == y.gap[q]);
        CHECK(x.predecessors(p).size() == y.predecessors(q).size());
        CHECK((x.call[p] == kNoCall) == (y.call[q] == kNoCall));
      }
    }
  }
}

}  // namespace rehearse::import_windows_test
