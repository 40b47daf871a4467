// SPDX-License-Identifier: Apache-2.0
// Time travel: what is seen in a replay that ends at a moment is what a whole run shows when it passes there.
#include "sim/snapshot/travel.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "base/random.hpp"
#include "sim/simulate.hpp"
#include "tests/sim/job16.hpp"

namespace rehearse::travel_test {
using namespace rehearse;
using namespace rehearse::tests;

namespace {

sim::Scenario job_with(const std::vector<std::string>& changes) {
  sim::Scenario scenario = job16();
  for (const std::string& text : changes) {
    if (auto done = change(scenario, text); !done) FAIL(done.error().message());
  }
  return scenario;
}

std::vector<Nanos> random_times(uint64_t seed, Nanos last, size_t count) {
  Random random(seed, "travel", 0);
  std::set<Nanos> times;
  while (times.size() < count) {
    times.insert(static_cast<Nanos>(random.below(static_cast<uint64_t>(last) + 1)));
  }
  return {times.begin(), times.end()};
}

pb::Snapshot at(const sim::Scenario& scenario, Nanos time) {
  SilentReporter silent;
  sim::Travel travel;
  travel.to.time = time;
  auto state = sim::state_at(scenario, travel, silent);
  if (!state) FAIL(state.error().message());
  return std::move(*state);
}

// Without what only the whole run can tell.
std::string bytes_of(pb::Snapshot state) {
  state.clear_end_ns();
  state.clear_ended();
  state.clear_events();
  return state.SerializeAsString();
}

// Every rank on its own clock and one link on and off: lanes that change their rate on the way.
const std::vector<std::string> kChanging = {
    "{slow-rank: {rank: 5, slowdown: 1.7}, from: 1ms, until: 6ms}",
    "{set: {\"platform.nodes[1].nics[*].bandwidth\": 40Gbps}, from: 2ms, until: 8ms}"};

}  // namespace

TEST_CASE("a moment of a run says that ranks are clones", "[sim][travel]") {
  const pb::Snapshot state = at(job16_with_clone(), 1'000'000);
  std::set<std::string> ids;
  for (const pb::OutcomeFinding& finding : state.findings()) ids.insert(finding.id());
  CHECK(ids.contains("symmetric-assumed"));
  CHECK(ids.contains("variance-unknown"));
}

TEST_CASE("time travel sees what a whole run shows when it passes there", "[sim][travel]") {
  const std::vector<std::vector<std::string>> jobs = {
      {},
      kChanging,
      {"skip-collective: {rank: 3, nth: 20}"},
      {"write-checkpoint: {bytes: 50MB}", "stop-rank: {rank: 9, at: 5ms, silent: true}"}};
  size_t looked = 0;
  for (size_t j = 0; j < jobs.size(); ++j) {
    const sim::Scenario scenario = job_with(jobs[j]);
    SilentReporter silent;
    const auto whole = sim::simulate(scenario, silent);
    REQUIRE(whole);
    const std::vector<Nanos> times = random_times(j, whole->end_ns() + 1000, 8);
    const auto passed = sim::states_at(scenario, times, silent);
    REQUIRE(passed);
    REQUIRE(passed->size() == times.size());
    for (size_t i = 0; i < times.size(); ++i) {
      INFO("job " << j << " at " << times[i] << " ns");
      CHECK((*passed)[i].time_ns() == times[i]);
      CHECK((bytes_of(at(scenario, times[i])) == bytes_of((*passed)[i])));
      ++looked;
    }
    // Looking changed nothing.
    CHECK(sim::simulate(scenario, silent)->end_ns() == whole->end_ns());
  }
  CHECK(looked == 32);
}

TEST_CASE("lanes stand where the timeline of the whole run has them", "[sim][travel]") {
  for (const auto& changes : {std::vector<std::string>{}, kChanging}) {
    const sim::Scenario scenario = job_with(changes);
    SilentReporter silent;
    const auto whole = sim::simulate(scenario, sim::Detail::kTimeline, silent);
    REQUIRE(whole);
    const std::vector<Nanos> times = random_times(7, whole->end_ns(), 12);
    const auto states = sim::states_at(scenario, times, silent);
    REQUIRE(states);
    for (const pb::Snapshot& state : *states) {
      for (int r = 0; r < state.ranks_size(); ++r) {
        for (int l = 0; l < state.ranks(r).lanes_size(); ++l) {
          const pb::LaneTimeline& lane = whole->timeline().ranks(r).lanes(l);
          const pb::LaneState& seen = state.ranks(r).lanes(l);
          int64_t start = 0;
          uint32_t ended = 0;
          bool runs = false;
          for (int i = 0; i < lane.start_size(); ++i) {
            start += lane.start(i);
            const int64_t end = start + lane.duration(i);
            ended += end <= state.time_ns() ? 1 : 0;
            runs |= start <= state.time_ns() && state.time_ns() < end;
          }
          INFO("rank " << r << " " << seen.lane() << " at " << state.time_ns()
                       << " ns: " << seen.state() << " " << seen.operation());
          CHECK(seen.index() == ended);
          const bool works =
              seen.state() == "running" || seen.state() == "in-call" || seen.state() == "moving";
          CHECK(works == runs);
        }
      }
    }
  }
}

TEST_CASE("flows go on at the rates that are shown", "[sim][travel]") {
  const sim::Scenario scenario = job_with({"platform.nodes[*].nics[*].bandwidth=10Gbps"});
  SilentReporter silent;
  const auto whole = sim::simulate(scenario, silent);
  REQUIRE(whole);
  std::vector<Nanos> times = random_times(3, whole->end_ns(), 60);
  std::vector<Nanos> pairs;
  for (Nanos time : times) {
    pairs.push_back(time);
    pairs.push_back(time + 1000);
  }
  std::sort(pairs.begin(), pairs.end());
  const auto states = sim::states_at(scenario, pairs, silent);
  REQUIRE(states);
  int compared = 0;
  for (size_t i = 0; i + 1 < states->size(); ++i) {
    const pb::Snapshot &a = (*states)[i], &b = (*states)[i + 1];
    if (b.time_ns() - a.time_ns() != 1000 || a.flows_size() != b.flows_size()) continue;
    for (int f = 0; f < a.flows_size(); ++f) {
      const pb::FlowState &now = a.flows(f), &then = b.flows(f);
      if (now.of() != then.of() || now.rate() != then.rate() || now.bytes() != then.bytes())
        continue;
      CHECK(now.left() - then.left() == Approx(now.rate() * 1e-6).margin(2));
      ++compared;
    }
  }
  CHECK(compared > 10);
}

TEST_CASE("a hang at its last progress names who came and who did not", "[sim][travel]") {
  const sim::Scenario scenario = job_with({"end-early: {rank: 5, steps: 1}"});
  SilentReporter silent;
  const auto outcome = sim::simulate(scenario, silent);
  REQUIRE(outcome);
  REQUIRE(outcome->verdict() == pb::HANG);
  sim::Travel travel;
  travel.to = *sim::parse_moment("last-progress");
  const auto state = sim::state_at(scenario, travel, silent);
  REQUIRE(state);
  CHECK(state->time_ns() == outcome->last_progress_ns());
  CHECK(state->flows().empty());
  std::set<uint32_t> missing;
  for (const pb::OpenCall& call : state->calls())
    missing.insert(call.missing().begin(), call.missing().end());
  CHECK(missing.count(5) == 1);
  // The first watchdog of the outcome is among those that run.
  REQUIRE(outcome->timers_size() > 0);
  REQUIRE(state->timers_size() > 0);
  CHECK(state->timers(0).runs_out_ns() == outcome->timers(0).time_ns());
  CHECK_FALSE(state->timers(0).ran_out());
  CHECK(at(scenario, outcome->timers(0).time_ns()).timers(0).ran_out());
}

TEST_CASE("steps and single moments are found from both sides", "[sim][travel]") {
  const sim::Scenario scenario = job_with({});
  SilentReporter silent;
  const auto outcome = sim::simulate(scenario, silent);
  REQUIRE(outcome);
  sim::Travel to_step;
  to_step.to = *sim::parse_moment("step 1");
  const auto begun = sim::state_at(scenario, to_step, silent);
  REQUIRE(begun);
  sim::Travel first = to_step;
  first.to = *sim::parse_moment("step 0");
  CHECK(begun->time_ns() ==
        sim::state_at(scenario, first, silent)->time_ns() + outcome->step_time_ns().each(0));
  sim::Travel further = to_step;
  further.moments = 4;
  const auto four = sim::state_at(scenario, further, silent);
  REQUIRE(four);
  CHECK(four->time_ns() > begun->time_ns());
  std::set<int64_t> moments;
  for (const pb::Happening& event : four->events()) moments.insert(event.time_ns());
  CHECK(moments.size() == 4);
  CHECK(*moments.rbegin() == four->time_ns());
  sim::Travel back;
  back.to.time = four->time_ns();
  back.moments = -3;
  CHECK(sim::state_at(scenario, back, silent)->time_ns() == *moments.begin());
  sim::Travel nowhere;
  nowhere.to = *sim::parse_moment("step 99");
  CHECK(sim::state_at(scenario, nowhere, silent).error().code == Code::kBadInput);
  for (const char* text : {"", "soon", "step", "step x", "-1s", "1e30s"}) {
    INFO(text);
    CHECK_FALSE(sim::parse_moment(text));
  }
}

TEST_CASE("memory follows the run up to its peak", "[sim][travel]") {
  const sim::Scenario scenario = job_with({});
  SilentReporter silent;
  const auto outcome = sim::simulate(scenario, silent);
  REQUIRE(outcome);
  REQUIRE(outcome->memory().ranks_size() == 16);
  std::vector<int64_t> most(16, 0);
  const auto states = sim::states_at(scenario, random_times(1, outcome->end_ns(), 100), silent);
  REQUIRE(states);
  for (const pb::Snapshot& state : *states) {
    for (int r = 0; r < 16; ++r) {
      REQUIRE(state.ranks(r).has_memory());
      most[r] = std::max(most[r], state.ranks(r).memory());
    }
  }
  for (int r = 0; r < 16; ++r) {
    CHECK(most[r] <= outcome->memory().ranks(r).peak());
    CHECK(most[r] > outcome->memory().ranks(r).peak() / 2);
  }
}

TEST_CASE("a branch is a fresh run with the patch limited to the time from then on",
          "[sim][travel]") {
  const sim::Scenario scenario = job_with({});
  SilentReporter silent;
  const auto whole = sim::simulate(scenario, silent);
  REQUIRE(whole);
  const std::vector<std::pair<std::string, std::string>> patches = {
      {"slow-rank: {rank: 6, slowdown: 3}", "{slow-rank: {rank: 6, slowdown: 3}, from: @}"},
      {"set: {\"platform.nodes[0].nics[*].bandwidth\": 20Gbps}",
       "{set: {\"platform.nodes[0].nics[*].bandwidth\": 20Gbps}, from: @}"},
      {"background-traffic: {from-node: 0, to-node: 1, rate: 150Gbps}",
       "{background-traffic: {from-node: 0, to-node: 1, rate: 150Gbps}, from: @}"},
      {"stop-rank: {rank: 2, silent: true}", "stop-rank: {rank: 2, silent: true, at: @}"}};
  for (const auto& [branch, fresh] : patches) {
    for (const Nanos time : random_times(5, whole->end_ns(), 2)) {
      INFO(branch << " from " << time << " ns");
      const auto patch = sim::parse_patch(branch, "test");
      REQUIRE(patch);
      const auto branched = sim::branch_of(scenario, *patch, time);
      REQUIRE(branched);
      CHECK(sim::check_past(scenario, *branched, time, silent));
      std::string limited = fresh;
      limited.replace(limited.find('@'), 1, std::to_string(time) + "ns");
      pb::Outcome a = *sim::simulate(*branched, silent);
      pb::Outcome b = *sim::simulate(job_with({limited}), silent);
      CHECK(a.SerializeAsString() == b.SerializeAsString());
      CHECK((a.verdict() != whole->verdict() || a.end_ns() >= whole->end_ns()));
    }
  }
}

TEST_CASE("a branch that would change the past is refused", "[sim][travel]") {
  const sim::Scenario scenario = job_with({});
  SilentReporter silent;
  const auto late = sim::parse_patch("skip-collective: {rank: 3, nth: 60}", "test");
  const auto early = sim::parse_patch("skip-collective: {rank: 3, nth: 0}", "test");
  const Nanos time = sim::simulate(scenario, silent)->end_ns() / 2;
  CHECK(sim::check_past(scenario, *sim::branch_of(scenario, *late, 1'000'000), 1'000'000, silent));
  const auto refused =
      sim::check_past(scenario, *sim::branch_of(scenario, *early, time), time, silent);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::kBadInput);
  CHECK_FALSE(refused.error().fix.empty());
  const auto before = sim::parse_patch("{slow-rank: {rank: 1, slowdown: 2}, from: 1us}", "test");
  CHECK_FALSE(sim::branch_of(scenario, *before, time));
}

}  // namespace rehearse::travel_test
