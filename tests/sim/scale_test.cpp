// SPDX-License-Identifier: Apache-2.0
// steps and grow-data-parallel: what is repeated is neither written down nor replayed again.
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "sim/replay/op_times.hpp"
#include "sim/scenario/transform.hpp"
#include "sim/worker.hpp"
#include "tests/sim/job16.hpp"
#include "tests/sim/small_trace.hpp"

namespace rehearse::scale_test {
using namespace rehearse;
using namespace rehearse::sim;
using namespace rehearse::tests;
using traces::OpId;
using traces::RankProgram;

namespace {

// Two ranks: work before the first step, two steps, work after them.
traces::Program two_steps() {
  SmallTrace small(2);
  for (int part = 0; part < 4; ++part) {
    for (int i = 0; i < 3; ++i) {
      for (uint32_t r = 0; r < 2; ++r) small.kernel(r, (7 + 3 * part + i) * 1000);
      small.all_reduce({0, 1}, 1000 + i);
      small.exchange(0, 1, 50 + i);
    }
    small.end_step();
  }
  traces::Trace trace = small.trace();
  for (traces::RankTrace& rank : trace.ranks) {
    rank.steps.erase(rank.steps.begin());
    rank.steps.pop_back();
  }
  auto program = traces::build_program(trace);
  REQUIRE(program);
  REQUIRE(program->steps == 2);
  return std::move(*program);
}

// Values that are written down for the operations of a program, shared ones once.
size_t written(const traces::Program& program) {
  std::map<const void*, size_t> held;
  const auto count = [&](const auto& column) { held[column.data()] = column.written(); };
  for (const RankProgram& rank : program.ranks) {
    count(rank.kind);
    count(rank.name);
    count(rank.gap);
    count(rank.duration);
    count(rank.call);
    count(rank.overlap);
    count(rank.edge_begin);
    count(rank.edges);
  }
  size_t sum = 0;
  for (const auto& [data, values] : held) sum += values;
  return sum;
}

// The copy of operation `op` of the recorded rank, by walking the lanes; UINT32_MAX: none.
OpId copy_of(const RankProgram& from, uint32_t steps, uint32_t factor, OpId op, uint32_t copy) {
  OpId at = 0;
  for (size_t l = 0; l < from.lanes.size(); ++l) {
    const OpId* begin = &from.step_begin[l * (steps + 1)];
    for (OpId o = from.lane_begin[l]; o < begin[0]; ++o, ++at) {
      if (o == op) return at;
    }
    for (uint32_t c = 0; c < factor; ++c) {
      for (OpId o = begin[0]; o < begin[steps]; ++o, ++at) {
        if (o == op && c == copy) return at;
      }
    }
    for (OpId o = begin[steps]; o < from.lane_begin[l + 1]; ++o, ++at) {
      if (o == op) return at;
    }
  }
  return UINT32_MAX;
}

}  // namespace

TEST_CASE("repeated steps are what they would be written out", "[sim][scale]") {
  const traces::Program once = two_steps();
  traces::Program often = once;
  constexpr uint32_t kFactor = 4;
  REQUIRE(repeat_steps(often, kFactor));
  CHECK(often.steps == 8);
  for (size_t r = 0; r < once.ranks.size(); ++r) {
    const RankProgram &from = once.ranks[r], &to = often.ranks[r];
    REQUIRE(to.repeat != nullptr);
    std::set<OpId> seen;
    for (OpId op = 0; op < from.size(); ++op) {
      for (uint32_t copy = 0; copy < kFactor; ++copy) {
        const OpId at = copy_of(from, once.steps, kFactor, op, copy);
        REQUIRE(at < to.size());
        const bool last = at == copy_of(from, once.steps, kFactor, op, kFactor - 1);
        seen.insert(at);
        CHECK(to.kind[at] == from.kind[op]);
        CHECK(to.name[at] == from.name[op]);
        CHECK(to.gap[at] == from.gap[op]);
        CHECK(to.duration[at] == from.duration[op]);
        const auto was = from.predecessors(op), is = to.predecessors(at);
        REQUIRE(is.size() == was.size());
        const bool once_only = copy > 0 && at == copy_of(from, once.steps, kFactor, op, 0);
        for (size_t i = 0; i < was.size() && !once_only && !(last && copy + 1 < kFactor); ++i) {
          CHECK(is[i] == copy_of(from, once.steps, kFactor, was[i], copy));
        }
        REQUIRE((to.call[at] == traces::kNoCall) == (from.call[op] == traces::kNoCall));
        if (to.call[at] != traces::kNoCall) {
          CHECK(to.call_op[to.call[at]] == at);
          CHECK(to.calls[to.call[at]].bytes_in == from.calls[from.call[op]].bytes_in);
        }
      }
    }
    CHECK(seen.size() == to.size());  // nothing else is there
    // Sequence numbers go on without a gap.
    std::map<std::tuple<uint32_t, bool, int, int>, int64_t> next;
    for (const traces::Call& call : to.calls) {
      const bool pair = traces::is_point_to_point(call.collective);
      CHECK(call.sequence ==
            next[{call.communicator, pair, pair ? static_cast<int>(call.collective) : 0,
                  pair ? call.peer : 0}]++);
    }
  }
}

TEST_CASE("steps that are repeated are written down once", "[sim][scale]") {
  traces::Program twice = two_steps(), often = two_steps();
  const size_t before = written(twice);
  REQUIRE(repeat_steps(twice, 2));
  REQUIRE(repeat_steps(often, 1000));
  CHECK(often.operations() > 300 * twice.operations());
  CHECK(written(twice) == before);
  CHECK(written(often) == before);
}

TEST_CASE("times of copies that end alike are kept once, others whole", "[sim][scale]") {
  traces::Program program = two_steps();
  constexpr uint32_t kCopies = 3000;
  REQUIRE(repeat_steps(program, kCopies));
  const RankProgram& rank = program.ranks[0];
  OpTimes times(rank);
  CHECK(times[0] == -1);
  CHECK(times.back() == -1);
  std::vector<Nanos> expected(rank.size());
  constexpr uint32_t kOdd = 1000;  // a step that something held up
  for (OpId op = 0; op < rank.size(); ++op) {
    const traces::Repeat::Place at = rank.repeat->locate(op);
    expected[op] = Nanos{at.copy} * 1'000'000 + Nanos{at.source} * 1000 +
                   (at.copy == kOdd && at.source % 2 == 0 ? 7 : 0);
    times.set(op, expected[op]);
  }
  CHECK(times.held() == rank.size());
  times.settle(kCopies - 2);
  CHECK(times.all() == expected);
  CHECK(times.held() * 100 < rank.size());
  // As if the run had ended in the middle.
  const Nanos when = expected[rank.size() / 2];
  times.cut(when);
  for (OpId op = 0; op < rank.size(); op += 97) {
    CHECK(times[op] == (expected[op] > when ? -1 : expected[op]));
  }
}

TEST_CASE("a replay keeps the times of a few copies of its steps", "[sim][scale]") {
  const auto held = [](const std::string& steps) {
    Scenario scenario = job16();
    REQUIRE(change(scenario, steps));
    SilentReporter silent;
    const auto bytes = in_child(
        [&](Reporter& inner) -> Result<std::string> {
          size_t sum = 0;
          auto done = replay_here(scenario, inner, [&](const Evidence& e) {
            for (const OpTimes& rank : e.replayed.end) sum += rank.held();
          });
          if (!done) return tl::unexpected(done.error());
          return std::to_string(sum);
        },
        silent);
    REQUIRE(bytes);
    return std::stoull(*bytes);
  };
  CHECK(held("steps: 200") < 2 * held("steps: 10"));
}

TEST_CASE("a change of one rank writes out that column of that rank only", "[sim][scale]") {
  traces::Program program = two_steps();
  const size_t before = written(program);
  REQUIRE(repeat_steps(program, 10));
  pb::Patch patch;
  patch.mutable_slow_rank()->set_rank(1);
  patch.mutable_slow_rank()->set_slowdown(2);
  const Nanos was = std::as_const(program.ranks[0].duration)[program.ranks[0].size() - 1];
  REQUIRE(transform(program, patch));
  CHECK(written(program) <= before + program.ranks[1].size());
  CHECK(std::as_const(program.ranks[0].duration)[program.ranks[0].size() - 1] == was);
}

TEST_CASE("steps repeated twice over give the run of all at once", "[sim][scale]") {
  pb::Outcome at_once = run_job16({"steps: 6"}), twice = run_job16({"steps: 2", "steps: 3"});
  for (pb::Outcome* outcome : {&at_once, &twice}) {
    outcome->clear_patches();
    outcome->clear_origin();
  }
  CHECK(at_once.SerializeAsString() == twice.SerializeAsString());
}

TEST_CASE("a grown job replays no more ranks, calls and flows", "[sim][scale]") {
  struct Work {
    size_t ranks = 0, operations = 0, meetings = 0;
    uint64_t flows = 0, events = 0;
    bool operator==(const Work&) const = default;
  };
  const auto work = [](const std::vector<std::string>& changes) {
    Scenario scenario = job16();
    for (const std::string& text : changes) REQUIRE(change(scenario, text));
    SilentReporter silent;
    const auto bytes = in_child(
        [&](Reporter& inner) -> Result<std::string> {
          Work out;
          auto done = replay_here(scenario, inner, [&](const Evidence& e) {
            out = {e.program.ranks.size(), e.program.operations(), e.replayed.meetings.size(),
                   e.replayed.counters.flows, e.replayed.events};
          });
          if (!done) return tl::unexpected(done.error());
          return std::string(reinterpret_cast<const char*>(&out), sizeof out);
        },
        silent);
    REQUIRE(bytes);
    Work out;
    std::memcpy(&out, bytes->data(), sizeof out);
    return out;
  };
  const Work once = work({}), grown = work({"grow-data-parallel: 16"});
  CHECK(once.ranks == 16);
  CHECK(grown.ranks == once.ranks);
  CHECK(grown.operations == once.operations);
  CHECK(grown.meetings == once.meetings);
  CHECK(grown.flows == once.flows);
}

TEST_CASE("a rank that was recorded late begins late once, not in every repeated step",
          "[sim][scale]") {
  const auto last_step = [](Nanos late) {
    Scenario scenario = job16();
    auto trace = std::make_shared<traces::Trace>(*scenario.trace);
    traces::RankTrace& rank = trace->ranks[3];
    for (Nanos& start : rank.ops.start) start += late;
    for (traces::Step& step : rank.steps) {
      step.start += late;
      step.end += late;
    }
    scenario.trace = trace;
    REQUIRE(change(scenario, "steps: 5"));
    SilentReporter silent;
    const auto outcome = simulate(scenario, silent);
    REQUIRE(outcome);
    REQUIRE(outcome->step_time_ns().each_size() == 10);
    return static_cast<double>(outcome->step_time_ns().each(9));
  };
  CHECK(last_step(3'000'000) == Approx(last_step(0)).margin(100'000));
}

}  // namespace rehearse::scale_test
