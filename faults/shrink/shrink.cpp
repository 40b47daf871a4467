// SPDX-License-Identifier: Apache-2.0
#include "faults/shrink/shrink.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "faults/world.hpp"
#include "sim/shrink/script.hpp"

namespace rehearse::faults {
namespace {

using sim::Job;
using sim::Part;
using Kind = Part::Kind;

// The order in which kinds are tried: those that take most with them first.
constexpr Kind kKinds[] = {Kind::kRank,       Kind::kNode,      Kind::kStep,
                           Kind::kCollective, Kind::kOperation, Kind::kAllocation,
                           Kind::kPatch,      Kind::kSetting,   Kind::kVariable};

Renumbering numbers_of(const Job& job) {
  const auto at = [](const auto& list, uint32_t number) {
    return number < list.size() ? list[number] : UINT32_MAX;
  };
  std::vector<uint32_t> ranks;
  for (const sim::JobRank& rank : job.ranks) ranks.push_back(rank.rank);
  return {[ranks, at](uint32_t rank) { return at(ranks, rank); },
          [nodes = job.nodes, at](uint32_t node) { return at(nodes, node); }};
}

Result<pb::Outcome> observed(const sim::Scenario& scenario, const Rules& rules,
                             Reporter& reporter) {
  RH_TRY(pb::Outcome outcome, sim::simulate(scenario, reporter));
  observe(scenario, rules, nullptr, outcome);
  return outcome;
}

class Shrinker {
 public:
  Shrinker(const ShrinkOptions& options, const Rules& rules, Reporter& reporter)
      : options_(options), rules_(rules), reporter_(reporter) {}

  Result<Shrunk> shrink(const sim::Scenario& scenario) {
    RH_TRY(const pb::Outcome whole, observed(scenario, rules_, reporter_));
    const std::string& symptom = whole.symptom().id();
    if (symptom == "healthy" || (!options_.symptom.empty() && symptom != options_.symptom)) {
      return fail(
          Code::kBadInput,
          fmt::format("the scenario shows {} ({}), not {}", symptom, whole.symptom().label(),
                      options_.symptom.empty() ? "a failure" : options_.symptom),
          scenario.document.name(),
          symptom == "healthy" ? "inject a fault with --fault or --patch"
                               : "leave --symptom out, or name " + symptom);
    }
    const auto same = [](uint32_t number) { return number; };
    cause_ = cause_of(whole, {same, same});
    if (auto begun = begin(scenario); !begun) return tl::unexpected(begun.error());
    guess(whole);
    for (bool smaller = true; smaller && !error_ && !exhausted();) {
      smaller = false;
      for (const Kind kind : kKinds) smaller |= reduce(kind);
    }
    if (error_) return tl::unexpected(*error_);
    return finish();
  }

 private:
  [[nodiscard]] bool exhausted() const { return runs_ >= options_.max_runs; }

  // The job as calls alone where that fails too, else with everything.
  Result<void> begin(const sim::Scenario& scenario) {
    for (const sim::Kept kept : {sim::Kept::kCalls, sim::Kept::kEverything}) {
      RH_TRY(Job job, sim::take_apart(scenario, kept));
      job.document.set_name(scenario.document.name() + "-small");
      job.document.set_description("shrunk from " + scenario.document.name());
      before_ = sim::size_of(job);
      if (kept == sim::Kept::kCalls) before_.operations = scenario.trace->operations();
      if (!fails(job)) continue;
      job_ = std::move(job);
      tell(kept == sim::Kept::kCalls ? "calls alone, without kernels, host work and allocations"
                                     : "taken apart");
      return {};
    }
    if (error_) return tl::unexpected(*error_);
    return fail(
        Code::kBadInput, "the failure is not there any more once the scenario is taken apart",
        scenario.document.name(), "it hangs on exact times; shrink a run with fewer patches");
  }

  // One rank that is to blame and one or two that wait often do.
  void guess(const pb::Outcome& whole) {
    std::vector<uint32_t> culprits, others;
    for (const pb::Culprit& culprit : whole.culprits()) {
      if (culprit.has_rank()) culprits.push_back(culprit.rank());
    }
    for (const pb::Wait& wait : whole.waits()) others.push_back(wait.rank());
    for (const sim::JobRank& rank : job_.ranks) others.push_back(rank.rank);
    for (const size_t n : {2u, 3u, 4u, 8u}) {
      std::set<uint32_t> kept;
      if (!culprits.empty()) kept.insert(culprits.front());
      for (const uint32_t rank : others) {
        if (kept.size() < n) kept.insert(rank);
      }
      if (kept.size() >= job_.ranks.size()) return;
      std::vector<Part> rest;
      for (Part& part : sim::parts_of(job_, Kind::kRank)) {
        if (kept.count(part.id) == 0) rest.push_back(std::move(part));
      }
      if (attempt(rest)) return tell_parts(Kind::kRank, kept.size() + rest.size(), kept.size());
    }
  }

  // Leaves out groups of parts, halves first, then smaller ones, until no single one can go.
  bool reduce(Kind kind) {
    const size_t before = sim::parts_of(job_, kind).size();
    size_t group = std::max<size_t>(1, before / 2);
    while (!error_ && !exhausted()) {
      bool smaller = false;
      std::vector<Part> parts = sim::parts_of(job_, kind);
      // From the back: what comes later often hangs on what comes before.
      for (size_t past = parts.size(); past > 0;) {
        const size_t first = past > group ? past - group : 0;
        const std::span<const Part> some(parts.data() + first, past - first);
        if (attempt(some)) {
          smaller = true;
          parts = sim::parts_of(job_, kind);
          past = std::min(first, parts.size());
        } else {
          past = first;
        }
      }
      if (group == 1 && !smaller) break;
      group = std::max<size_t>(1, group / 2);
    }
    const size_t after = sim::parts_of(job_, kind).size();
    if (after < before) tell_parts(kind, before, after);
    return after < before;
  }

  bool attempt(std::span<const Part> parts) {
    if (parts.empty() || error_ || exhausted()) return false;
    reporter_.progress("runs", runs_, options_.max_runs);
    std::optional<Job> candidate = sim::without(job_, parts);
    if (!candidate || !fails(*candidate)) return false;
    job_ = std::move(*candidate);
    return true;
  }

  // Times of patches name moments of a run that is shorter now: where the failure is gone, a rank stops earlier, from
  // the start on or after one of its first calls.
  bool fails(Job& job) {
    if (fails_as_it_is(job)) return true;
    for (size_t p = 0; p < job.patches.size(); ++p) {
      if (!job.patches[p].has_stop_rank() || !job.patches[p].stop_rank().has_rank()) continue;
      const auto at = std::find_if(
          job.ranks.begin(), job.ranks.end(),
          [&](const sim::JobRank& rank) { return rank.rank == job.patches[p].stop_rank().rank(); });
      const auto moments =
          sim::call_ends(job, static_cast<size_t>(at - job.ranks.begin()), reporter_);
      if (!moments) return false;
      std::vector<Nanos> tries = {0};
      for (size_t i = 0; i < std::min<size_t>(2, moments->size()); ++i) {
        tries.push_back((*moments)[i] + 1);
      }
      for (const Nanos when : tries) {
        if (when >= job.patches[p].stop_rank().at()) continue;
        Job earlier = job;
        earlier.patches[p].mutable_stop_rank()->set_at(when);
        if (!fails_as_it_is(earlier)) continue;
        job = std::move(earlier);
        return true;
      }
    }
    return false;
  }

  bool fails_as_it_is(const Job& job) {
    ++runs_;
    const auto scenario = sim::assemble(sim::render(job));
    if (!scenario) return false;  // not a scenario at all
    const auto outcome = observed(*scenario, rules_, reporter_);
    if (!outcome) {
      const bool ours =
          outcome.error().code == Code::kInterrupted || outcome.error().code == Code::kInternal;
      if (ours && !error_) error_ = outcome.error();
      return false;
    }
    return same_cause(cause_, cause_of(*outcome, numbers_of(job)));
  }

  void tell_parts(Kind kind, size_t before, size_t after) {
    tell(fmt::format("{}s {} -> {}", kind == Kind::kPatch ? "patche" : sim::name_of(kind), before,
                     after));
  }

  void tell(const std::string& what) {
    if (options_.told) options_.told({what, sim::size_of(job_), runs_});
  }

  Result<Shrunk> finish() {
    Shrunk out;
    out.rendered = sim::render(job_);
    RH_TRY(const sim::Scenario scenario, sim::assemble(out.rendered));
    RH_TRY(out.outcome, observed(scenario, rules_, reporter_));
    out.before = before_;
    out.after = sim::size_of(job_);
    out.cause = cause_of(out.outcome, numbers_of(job_));
    out.runs = runs_;
    out.minimal = !exhausted();
    out.job = std::move(job_);
    return out;
  }

  const ShrinkOptions& options_;
  const Rules& rules_;
  Reporter& reporter_;
  FailureCause cause_;
  Job job_;
  sim::JobSize before_;
  uint32_t runs_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<Shrunk> shrink(const sim::Scenario& scenario, const ShrinkOptions& options,
                      Reporter& reporter) {
  RH_TRY(const Rules rules, Rules::load_shipped());
  return Shrinker(options, rules, reporter).shrink(scenario);
}

Result<bool> still_fails(const Job& job, const FailureCause& cause, Reporter& reporter) {
  RH_TRY(const Rules rules, Rules::load_shipped());
  const auto scenario = sim::assemble(sim::render(job));
  if (!scenario) return false;
  const auto outcome = observed(*scenario, rules, reporter);
  return outcome && same_cause(cause, cause_of(*outcome, numbers_of(job)));
}

}  // namespace rehearse::faults
