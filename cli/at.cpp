// SPDX-License-Identifier: Apache-2.0
// `rehearse at`: the state of every rank at a moment of a run, and how it would go on with a change.
#include <fmt/format.h>

#include <boost/program_options/value_semantic.hpp>
#include <nlohmann/json.hpp>

#include "base/document.hpp"
#include "cli/outcome_file.hpp"
#include "cli/scenario_options.hpp"
#include "cli/snapshot_text.hpp"
#include "cli/verbs.hpp"
#include "faults/world.hpp"
#include "sim/snapshot/travel.hpp"

namespace rehearse::cli {
namespace {
namespace po = boost::program_options;

// The run from here on, with a patch and without it.
Result<pb::Branch> branch_at(Context& context, const sim::Scenario& scenario, Nanos from) {
  const auto text = context.get<std::string>("branch");
  const bool assignment = text.find('=') != std::string::npos && text.find(": ") == text.npos;
  RH_TRY(const pb::Patch patch,
         assignment ? sim::parse_assignment(text) : sim::parse_patch(text, "--branch"));
  RH_TRY(const sim::Scenario branch, sim::branch_of(scenario, patch, from));
  if (auto same = sim::check_past(scenario, branch, from, context.reporter()); !same) {
    return tl::unexpected(std::move(same).error());
  }
  RH_TRY(const faults::Rules rules, faults::Rules::load_shipped());
  pb::Branch out;
  out.add_patches(branch.applied.back());
  RH_TRY(*out.mutable_without(), sim::simulate(scenario, context.reporter()));
  RH_TRY(*out.mutable_outcome(), sim::simulate(branch, context.reporter()));
  faults::observe(scenario, rules, nullptr, *out.mutable_without());
  faults::observe(branch, rules, &out.without().step_time_ns(), *out.mutable_outcome());
  return out;
}

Result<int> run_at(Context& context) {
  sim::Travel travel;
  RH_TRY(travel.to, sim::parse_moment(context.inputs()[0]));
  if (context.has("step")) {
    RH_TRY(travel.moments, context.number("step", -1'000'000, 1'000'000));
  }
  RH_TRY(const Subject subject, load_subject(context, context.inputs()[1]));
  RH_TRY(pb::Snapshot snapshot, sim::state_at(subject.scenario, travel, context.reporter()));
  if (subject.outcome && subject.outcome->end_ns() != snapshot.end_ns()) {
    context.reporter().note(fmt::format(
        "the run ends at {}, in the outcome it ended at {}: the scenario or the program "
        "changed since",
        format_duration(snapshot.end_ns()), format_duration(subject.outcome->end_ns())));
  }
  if (context.has("branch")) {
    RH_TRY(*snapshot.mutable_branch(), branch_at(context, subject.scenario, snapshot.time_ns()));
  }
  return exit_code(context.json() ? context.print(to_json(snapshot))
                                  : context.print(std::string_view(
                                        snapshot_text(snapshot, context.terminal()))));
}

}  // namespace

Verb at_verb() {
  Verb verb;
  verb.name = "at";
  verb.summary = "time travel: the state of every rank at a moment of a run";
  verb.details =
      "TIME is a simulated time (1.5s), `step 2` (when that step begins, from 0) or last-progress. "
      "The run is "
      "replayed up to there and shown: where each lane is, open calls with who has come and who "
      "has not, flows "
      "with their rates, timers, memory. --branch goes on from there with a change, as a fresh run "
      "with the patch "
      "limited to the time from TIME on would.";
  verb.positionals = {{"TIME", "1.5s, `step 2` or last-progress", Count::kOne, {}},
                      {"SCENARIO|OUTCOME", "a scenario, or an outcome (.json)", Count::kOne, {}}};
  verb.options = [](po::options_description& options) {
    add_scenario_options(options);
    auto add = options.add_options();
    add("branch", po::value<std::string>()->value_name("PATCH"),
        "go on from there with a change: YAML as for --patch, or PATH=VALUE");
    add("step", po::value<std::string>()->value_name("N"),
        "N moments further at which a rank comes to a call, leaves one or moves data; --step=-N "
        "goes back");
  };
  verb.writes = Writes::kFile;
  verb.examples = {
      {"./rehearse at last-progress ddp-16 --patch 'skip-collective: {rank: 3, nth: 5}'",
       "a hang at the moment it began: who is in which call, who is missing"},
      {"./rehearse at 'step 1' ddp-16 --step 3", "the first three moments of a step"},
      {"./rehearse at 60ms ddp-16 --branch 'slow-rank: {rank: 6, slowdown: 2}'",
       "what if a GPU became slow after 60 ms"},
      {"./rehearse run ddp-16 --fault F21 --json -o hang.json", "an outcome to travel in"},
      {"./rehearse at last-progress hang.json --json", "the same as JSON, from the outcome"}};
  verb.run = run_at;
  return verb;
}

}  // namespace rehearse::cli
