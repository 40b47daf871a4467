// SPDX-License-Identifier: Apache-2.0
#include "faults/fix/fix.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/document.hpp"
#include "faults/symptoms/classifier.hpp"

namespace rehearse::faults {
namespace {

// What the run with the fix shows, against the baseline.
void judge(const FixRequest& request, pb::Outcome outcome, pb::FixTrial& trial) {
  *outcome.mutable_baseline_step_time_ns() = request.baseline.step_time_ns();
  trial.set_verdict(outcome.verdict());
  *trial.mutable_symptom() = classify(outcome);
  const int64_t step = outcome.step_time_ns().mean();
  const int64_t baseline = request.baseline.step_time_ns().mean();
  const int64_t broken = request.outcome.step_time_ns().mean();
  if (outcome.verdict() != pb::COMPLETED || step <= 0) return;
  trial.set_step_time_ns(step);
  if (request.outcome.verdict() == pb::COMPLETED && broken > 0)
    trial.set_recovered_ns(broken - step);
  const double off =
      baseline > 0 ? static_cast<double>(step) / static_cast<double>(baseline) - 1 : 0;
  trial.set_restores(trial.symptom().id() == kHealthy && std::abs(off) <= kRestoredWithin);
}

Result<pb::Outcome> run_with(const FixRequest& request, const pb::Fix& fix, const World& world) {
  sim::Scenario scenario = request.broken;
  for (const pb::Patch& patch : fix.patch()) {
    if (auto applied = world.apply(scenario, patch); !applied)
      return tl::unexpected(applied.error());
  }
  return world.simulate(scenario);
}

}  // namespace

Result<pb::FixReport> try_fixes(const FixRequest& request, const World& world) {
  pb::FixReport report;
  report.set_schema("rehearse.fixes/1");
  report.set_scenario(request.outcome.scenario());
  const auto step = [](const pb::Outcome& outcome) { return outcome.step_time_ns().mean(); };
  if (request.outcome.verdict() == pb::COMPLETED && step(request.outcome) > 0) {
    report.set_broken_step_time_ns(step(request.outcome));
  }
  if (step(request.baseline) > 0) report.set_baseline_step_time_ns(step(request.baseline));

  pb::Outcome broken = request.outcome;
  *broken.mutable_baseline_step_time_ns() = request.baseline.step_time_ns();
  const pb::Symptom symptom = classify(broken);
  std::vector<pb::FixTrial> trials;
  for (const FaultUse& use : request.candidates) {
    RH_TRY(const std::vector<pb::Fix> fixes, fixes_of(use, request.broken.document));
    for (const pb::Fix& fix : fixes) {
      pb::FixTrial& trial = trials.emplace_back();
      trial.set_fault(use.fault().id());
      trial.set_use(use.text());
      trial.set_name(fix.name());
      trial.set_change(fix.change());
      trial.set_pattern(fix.pattern());
      trial.set_band("unvalidated");
      trial.set_paper_count(request.categories.solved(symptom.id(), fix.pattern()));
      for (const pb::Patch& patch : fix.patch()) trial.add_patches(write_document(patch));
      auto outcome = run_with(request, fix, world);
      if (!outcome && outcome.error().code == Code::kInterrupted)
        return tl::unexpected(outcome.error());
      if (outcome) {
        judge(request, std::move(*outcome), trial);
      } else {
        trial.set_refused(outcome.error().message());
      }
    }
  }
  const auto rank = [](const pb::FixTrial& t) {
    return std::tuple(!t.refused().empty(), !t.restores(), -t.recovered_ns(),
                      -static_cast<int64_t>(t.paper_count()));
  };
  std::stable_sort(trials.begin(), trials.end(),
                   [&](const pb::FixTrial& a, const pb::FixTrial& b) { return rank(a) < rank(b); });
  for (pb::FixTrial& trial : trials) *report.add_fixes() = std::move(trial);
  return report;
}

}  // namespace rehearse::faults
