// SPDX-License-Identifier: Apache-2.0
// synth -> Kineto files -> import is the program of synth -> .rtrace.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/traces/import_samples.hpp"
#include "tests/traces/same_program.hpp"
#include "tests/traces/synth_sample.hpp"
#include "traces/export/kineto.hpp"

namespace rehearse::kineto_round_trip_test {
using namespace rehearse;
using namespace rehearse::traces;

namespace {

struct Job {
  const char* name;
  pb::Synth options;
};

// What a clock shows that is `offset` ahead at `origin` and gains `drift`.
Nanos shown(Nanos at, Nanos origin, Nanos offset, double drift) {
  return at + offset + static_cast<Nanos>(std::llround(drift * static_cast<double>(at - origin)));
}

// Clocks of ranks 1 to 3: far ahead and slow, behind and fast, ahead and fast. That of rank 0 is right.
struct Clock {
  Nanos offset = 0;
  double drift = 0;
};
constexpr std::array<Clock, 4> kClocks = {
    {{0, 0}, {50'000'000, -20e-6}, {-50'000'000, 20e-6}, {31'000'000, 13e-6}}};

std::vector<Job> jobs() {
  std::vector<Job> out;
  pb::Synth gpt = synth::small_gpt();
  gpt.set_tp(2);
  gpt.set_pp(2);
  gpt.set_dp(2);
  out.push_back({"gpt", gpt});
  pb::Synth moe = synth::named("moe");
  moe.set_layers(2);
  moe.set_hidden(256);
  moe.set_dp(4);
  out.push_back({"moe", moe});
  pb::Synth resnet = synth::named("resnet50");
  resnet.set_dp(4);
  out.push_back({"resnet50", resnet});
  resnet.set_framework("horovod");
  out.push_back({"resnet50 with Horovod", resnet});
  pb::Synth dlrm = synth::named("dlrm");
  dlrm.set_dp(4);
  out.push_back({"dlrm", dlrm});
  return out;
}

}  // namespace

TEST_CASE("a generated run imported from Kineto files is the same program", "[export][kineto]") {
  for (Job& job : jobs()) {
    INFO(job.name);
    job.options.set_steps(2);
    const auto made = synth::synthesize(job.options, synth::sample_gpu());
    if (!made) FAIL(made.error().message());
    const samples::TempFolder folder;
    for (const RankTrace& rank : made->ranks) {
      REQUIRE(write_kineto(rank, {made->header, made->communicators, made->strings}, folder.path(),
                           Compression::kNone, Overwrite::kRefuse));
    }
    SilentReporter silent;
    const auto back =
        import_files({folder.path()}, {.clocks = ClockAlignment::kAsRecorded}, silent);
    if (!back) FAIL(back.error().message());
    const auto expected = build_program(*made), got = build_program(back->trace);
    REQUIRE(expected);
    REQUIRE(got);
    CHECK(samples::difference(*expected, made->strings, *got, back->trace.strings) == "");
    CHECK(got->findings.rows().size() == expected->findings.rows().size());
    CHECK(back->trace.header.synthetic());
    for (size_t c = 0; c < made->communicators.size(); ++c) {
      const auto same =
          std::find_if(back->trace.communicators.begin(), back->trace.communicators.end(),
                       [&](const Communicator& d) { return d.id == made->communicators[c].id; });
      if (same == back->trace.communicators.end()) FAIL(made->communicators[c].id);
      CHECK(same->members == made->communicators[c].members);
    }
  }
}

TEST_CASE("clocks of files that are 50 ms and 20 ppm apart are brought within 5 us",
          "[export][kineto][clock]") {
  for (Job& job : jobs()) {
    if (std::string(job.name) == "gpt") job.options.set_pp(1);
    INFO(job.name);
    job.options.set_steps(8);
    job.options.set_jitter(0.2);  // ranks are late by turns
    const auto made = synth::synthesize(job.options, synth::sample_gpu());
    if (!made) FAIL(made.error().message());
    REQUIRE(made->ranks.size() == kClocks.size());
    const Nanos origin = made->ranks[0].ops.start.front();
    const samples::TempFolder folder;
    for (RankTrace rank : made->ranks) {
      const Clock& clock = kClocks[rank.rank];
      const auto move = [&](Nanos& at) { at = shown(at, origin, clock.offset, clock.drift); };
      for (size_t op = 0; op < rank.ops.size(); ++op) {
        Nanos end = rank.ops.start[op] + rank.ops.duration[op];
        move(rank.ops.start[op]);
        move(end);
        rank.ops.duration[op] = std::max<Nanos>(end - rank.ops.start[op], 0);
      }
      for (Step& step : rank.steps) {
        move(step.start);
        move(step.end);
      }
      REQUIRE(write_kineto(rank, {made->header, made->communicators, made->strings}, folder.path(),
                           Compression::kNone, Overwrite::kRefuse));
    }
    SilentReporter silent;
    const auto back = import_files({folder.path()}, {}, silent);
    if (!back) FAIL(back.error().message());
    CHECK(back->findings.count("clocks-aligned") == 1);
    for (size_t r = 0; r < kClocks.size(); ++r) {
      std::vector<Nanos> truth = made->ranks[r].ops.start, got = back->trace.ranks[r].ops.start;
      REQUIRE(truth.size() == got.size());
      std::sort(truth.begin(), truth.end());
      std::sort(got.begin(), got.end());
      Nanos furthest = 0;
      for (size_t i = 0; i < truth.size(); ++i) {
        furthest = std::max(furthest, std::abs(truth[i] - got[i]));
      }
      INFO("rank " << r);
      CHECK(furthest < 5'000);
    }
  }
}

}  // namespace rehearse::kineto_round_trip_test
