// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/traces/import_samples.hpp"
#include "tests/traces/synth_sample.hpp"
#include "traces/export/chakra.hpp"
#include "traces/export/kineto.hpp"
#include "traces/import/symmetric.hpp"
#include "traces/inspect/inspection.hpp"
#include "traces/program/evaluate.hpp"
#include "traces/program/overhead.hpp"
#include "traces/program/program.hpp"

namespace rehearse::import_symmetric_test {
using namespace rehearse;
using namespace rehearse::traces;

namespace {

Trace job(uint32_t dp, uint32_t tp, uint32_t pp) {
  pb::Synth options = synth::small_gpt();
  options.set_dp(dp);
  options.set_tp(tp);
  options.set_pp(pp);
  auto trace = synth::synthesize(options, synth::sample_gpu());
  REQUIRE(trace);
  return std::move(*trace);
}

// The trace as if only these ranks, and the communicators they know, had been recorded.
Trace part_of(const Trace& whole, const std::vector<RankId>& ranks) {
  Trace trace;
  trace.header = whole.header;
  trace.strings = whole.strings;
  std::vector<int64_t> place(whole.communicators.size(), -1);
  for (const RankId r : ranks) {
    trace.ranks.push_back(whole.ranks[r]);
    for (Call& call : trace.ranks.back().ops.calls) {
      int64_t& at = place[call.communicator];
      if (at < 0) {
        at = static_cast<int64_t>(trace.communicators.size());
        trace.communicators.push_back(whole.communicators[call.communicator]);
      }
      call.communicator = static_cast<uint32_t>(at);
    }
  }
  return trace;
}

std::vector<RankId> members_of(const Trace& trace, const Call& call) {
  return trace.communicators[call.communicator].members;
}

}  // namespace

TEST_CASE("one rank per pipeline stage is enough for a whole job", "[import][symmetric]") {
  const Trace whole = job(2, 2, 2);
  REQUIRE(whole.ranks.size() == 8);
  // One rank of each stage, at different places in its tensor and data groups.
  std::vector<RankId> stage_of(8, 0);
  for (const Communicator& c : whole.communicators) {
    if (c.id.rfind("pp/", 0) != 0) continue;
    for (size_t i = 0; i < c.members.size(); ++i) stage_of[c.members[i]] = static_cast<RankId>(i);
  }
  const RankId first = 0;
  const auto second =
      static_cast<RankId>(std::find(stage_of.begin(), stage_of.end(), 1u) - stage_of.begin());
  Trace trace = part_of(whole, {first, second});
  Findings findings;
  assume_symmetric(trace, 7, findings);
  REQUIRE(trace.ranks.size() == 8);
  CHECK(trace.header.cloned_from_size() == 6);
  CHECK(findings.count("symmetric-assumed") == 6);
  CHECK(findings.count("variance-unknown") == 2);
  CHECK(findings.count("role-without-sample") == 0);
  for (RankId r = 0; r < 8; ++r) {
    INFO("rank " << r);
    const RankTrace& made = trace.ranks[r];
    const RankTrace& truth = whole.ranks[r];
    CHECK(made.rank == r);
    REQUIRE(made.ops.calls.size() == truth.ops.calls.size());
    for (size_t c = 0; c < made.ops.calls.size(); ++c) {
      const Call& a = made.ops.calls[c];
      const Call& b = truth.ops.calls[c];
      CHECK(a.collective == b.collective);
      CHECK(a.bytes_in == b.bytes_in);
      CHECK(a.peer == b.peer);
      CHECK(members_of(trace, a) == members_of(whole, b));
    }
  }
  for (const Finding& f : findings.rows()) {  // as the import keeps them
    pb::TraceFinding* row = trace.header.add_findings();
    row->set_id(f.id);
    row->set_count(f.count);
  }
  const auto program = build_program(trace);
  REQUIRE(program);
  CHECK(program->findings.count("symmetric-assumed") == 6);
  CHECK(program->findings.count("variance-unknown") == 2);
  CHECK(recorded_step(*program) > 0);
  const auto inspection = inspect(trace, {});
  REQUIRE(inspection);
  CHECK(inspection->findings.count("collective-type-mismatch") == 0);
  CHECK(inspection->findings.count("collective-member-missing") == 0);
}

TEST_CASE("clones that were exported are clones when they come back", "[import][symmetric]") {
  Trace trace = part_of(job(4, 1, 1), {1});
  Findings findings;
  assume_symmetric(trace, 1, findings);
  REQUIRE(trace.header.cloned_from_size() == 3);
  for (const bool chakra : {false, true}) {
    const samples::TempFolder folder;
    for (const RankTrace& rank : trace.ranks) {
      if (chakra) {
        REQUIRE(write_chakra(rank, {trace.header, trace.communicators, trace.strings},
                             folder.path(), Overwrite::kRefuse));
      } else {
        REQUIRE(write_kineto(rank, {trace.header, trace.communicators, trace.strings},
                             folder.path(), Compression::kNone, Overwrite::kRefuse));
      }
    }
    SilentReporter silent;
    const auto back = import_files({folder.path()}, {}, silent);
    REQUIRE(back);
    CHECK(back->trace.ranks.size() == 4);
    CHECK(back->trace.header.cloned_from_size() == 3);
    CHECK(back->trace.header.cloned_from().at(0) == 1);
    CHECK(back->findings.count("symmetric-assumed") == 3);
  }
}

TEST_CASE("a stage that nobody recorded stays missing and is told", "[import][symmetric]") {
  Trace trace = part_of(job(2, 2, 2), {0});
  Findings findings;
  assume_symmetric(trace, 1, findings);
  CHECK(trace.ranks.size() == 4);
  CHECK(findings.count("role-without-sample") == 4);
}

TEST_CASE("clones draw their durations from the recorded steps by seed and rank",
          "[import][symmetric]") {
  const Trace whole = job(8, 1, 1);
  const auto drawn = [&](uint64_t seed) {
    Trace trace = part_of(whole, {2});
    Findings findings;
    assume_symmetric(trace, seed, findings);
    auto program = build_program(trace);
    REQUIRE(program);
    REQUIRE(program->ranks.size() == 8);
    return std::move(*program);
  };
  const Program a = drawn(1), b = drawn(1), c = drawn(2);
  CHECK(a.ranks[5].duration == b.ranks[5].duration);
  CHECK(a.ranks[5].duration != c.ranks[5].duration);
  CHECK(a.ranks[5].duration != a.ranks[6].duration);
  // The recorded rank keeps its own; what clones have was recorded somewhere in the same place.
  CHECK(a.ranks[2].duration == c.ranks[2].duration);
  const RankProgram &source = a.ranks[2], &clone = a.ranks[5];
  for (LaneId l = 0; l < source.lanes.size(); ++l) {
    const OpId* begin = source.step_begin.data() + l * (a.steps + 1);
    for (OpId k = 0; k < begin[1] - begin[0]; ++k) {
      const OpId op = begin[0] + k, other = begin[1] + k;
      if (source.call[op] != kNoCall || source.kind[op] == OpKind::kSync) continue;
      const bool known =
          clone.duration[op] == source.duration[op] || clone.duration[op] == source.duration[other];
      CHECK(known);
    }
  }
}

TEST_CASE("a recorded wait that nobody explains stays as wait of the clones",
          "[import][symmetric]") {
  Trace trace;
  trace.header.set_world_size(2);
  trace.communicators = {{"all", "", {0, 1}, "nccl"}};
  RankTrace rank;
  rank.lanes = {{LaneKind::kStream, 7, 0}};
  Call call;
  call.bytes_in = call.bytes_out = 1024;
  rank.ops.add_call(0, 0, 0, 100'000, 0, call);
  call.sequence = 1;
  rank.ops.add_call(0, 0, 200'000, 350'000, 0, call);
  trace.ranks = {rank};
  Findings findings;
  assume_symmetric(trace, 1, findings);
  REQUIRE(trace.ranks.size() == 2);
  CHECK(trace.ranks[0].ops.start[1] == 200'000);
  CHECK(trace.ranks[1].ops.start[1] == 450'000);
  CHECK(trace.ranks[1].ops.duration[1] == 100'000);
  CHECK(findings.count("exogenous-wait") == 1);
}

TEST_CASE("groups that are no regular split are refused rank by rank", "[import][symmetric]") {
  Trace trace;
  trace.header.set_world_size(4);
  trace.communicators = {{"odd", "", {0, 3}, "nccl"}};
  RankTrace rank;
  rank.lanes = {{LaneKind::kStream, 7, 0}};
  rank.ops.add_call(0, 0, 0, 100, 0, {});
  trace.ranks = {rank};
  Findings findings;
  assume_symmetric(trace, 1, findings);
  CHECK(trace.ranks.size() == 2);  // rank 3 is a member
  CHECK(findings.count("communicator-not-regular") == 2);
}

TEST_CASE("a profiled step is brought to the unprofiled one by a cost per host event",
          "[import][overhead]") {
  // A step bound by its host: each operator and launch costs 2 us more than it would.
  std::string events;
  int id = 0;
  double at = 0;
  for (int step = 0; step < 3; ++step) {
    events += "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#" +
              std::to_string(step) + "\",\"pid\":1,\"tid\":1,\"ts\":" + std::to_string(at) +
              ",\"dur\":1000},";
    for (int k = 0; k < 50; ++k, at += 20) {
      ++id;
      const std::string number = std::to_string(id);
      events += "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"op\",\"pid\":1,\"tid\":1,\"ts\":" +
                std::to_string(at) + ",\"dur\":18},";
      events +=
          "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":"
          "1,\"ts\":" +
          std::to_string(at + 10) + ",\"dur\":6,\"args\":{\"correlation\":" + number + "}},";
      events += "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":" +
                std::to_string(at + 17) +
                ",\"dur\":1,\"args\":{\"stream\":7,\"device\":0,\"correlation\":" + number + "}},";
    }
  }
  events.pop_back();
  const std::string text = samples::document(events);
  ImportOptions options;
  options.unprofiled_step = 800'000;
  const auto got = samples::import_text(text, options);
  REQUIRE(got);
  CHECK(got->findings.count("profiler-overhead") == 1);
  // 100 operators and launches and a step mark: 200 us.
  CHECK(overhead_of(got->trace.ranks[0]) >= 1'900);
  CHECK(overhead_of(got->trace.ranks[0]) <= 2'100);
  Trace plain = got->trace;
  plain.ranks[0].env.clear();
  const auto with = build_program(got->trace), without = build_program(plain);
  REQUIRE(with);
  REQUIRE(without);
  const double ratio = double(recorded_step(*with)) / double(recorded_step(*without));
  CHECK(ratio == Approx(0.8).epsilon(0.01));

  options.unprofiled_step = 2'000'000;
  const auto longer = samples::import_text(text, options);
  REQUIRE(longer);
  CHECK(longer->findings.count("unprofiled-step-longer") == 1);
  CHECK(overhead_of(longer->trace.ranks[0]) == 0);
  options.unprofiled_step = 1;
  const auto unreachable = samples::import_text(text, options);
  REQUIRE(unreachable);
  CHECK(unreachable->findings.count("unprofiled-step-not-reached") == 1);
}

}  // namespace rehearse::import_symmetric_test
