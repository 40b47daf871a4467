// SPDX-License-Identifier: Apache-2.0
// synth -> Kineto files -> import is the program of synth -> .rtrace.
#include <catch2/catch.hpp>

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

}  // namespace rehearse::kineto_round_trip_test
