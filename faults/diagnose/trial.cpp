// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/trial.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "faults/diagnose/observable.hpp"
#include "faults/symptoms/classifier.hpp"

namespace rehearse::faults {
namespace {

constexpr int kFitRounds = 4, kRoughRounds = 2, kTimedRounds = 3;
// Moments closer than this part of a step are the same.
constexpr double kSameMoment = 0.01;
// Magnitudes further apart than this (in logarithm) say little about the shape, of faults that have any of it.
constexpr double kFarOff = 0.7, kWorthFitting = 0.25;
// Magnitudes closer than this (in logarithm) need no better fit.
constexpr double kCloseEnough = 0.03;
// First and largest step of the search, in logarithms of the strength.
constexpr double kFirstStep = 0.3, kLargestStep = 2;
// Faults that are not seen at this strength are searched from here.
constexpr double kTiny = 1e-4;
// A likeness that no other strength betters.
constexpr double kSurely = 0.99;

// In steps, with fractions: how far a run came that did not complete, and when it failed.
std::optional<double> steps_until(const char* what, const Changes& changes) {
  const auto when = changes.find(Aspect::kWhen);
  if (when == changes.end()) return std::nullopt;
  const auto found = when->second.find(what);
  if (found == when->second.end()) return std::nullopt;
  return std::expm1(found->second.value);
}

}  // namespace

const pb::Parameter* strength_of(const pb::Fault& fault) {
  for (const pb::Parameter& p : fault.parameters()) {
    if (p.strength()) return &p;
  }
  return nullptr;
}

Result<Trial> Laboratory::once(const FaultUse& use) {
  return beside_ ? both(*beside_, use) : simulate({&use, 1}, use);
}

Result<Trial> Laboratory::both(const FaultUse& first, const FaultUse& second) {
  const bool in_order = first.fault().id() <= second.fault().id();
  const FaultUse uses[] = {in_order ? first : second, in_order ? second : first};
  return simulate(uses, second);
}

Result<Trial> Laboratory::simulate(std::span<const FaultUse> uses, const FaultUse& use) {
  std::string key;
  for (const FaultUse& each : uses) key += each.text() + " ";
  if (const auto found = done_.find(key); found != done_.end()) {
    Trial again = found->second;
    again.use = use;
    return again;
  }
  if (interrupted_) return tl::unexpected(*interrupted_);
  if (exhausted()) return fail(Code::kLimit, "no simulation left");
  ++simulations_;
  sim::Scenario scenario = healthy_;
  for (const FaultUse& each : uses) {
    RH_TRY(const auto patches, patches_of(each, healthy_.document));
    for (const pb::Patch& patch : patches) {
      if (auto applied = world_.apply(scenario, patch); !applied)
        return tl::unexpected(applied.error());
    }
  }
  auto simulated = world_.simulate(scenario);
  if (!simulated && simulated.error().code == Code::kInterrupted) interrupted_ = simulated.error();
  RH_TRY(pb::Outcome outcome, std::move(simulated));
  // Through the same eye: what nobody recorded of the evidence is not looked at here either.
  *outcome.mutable_not_recorded() = evidence_.outcome.not_recorded();
  *outcome.mutable_not_heard() = evidence_.outcome.not_heard();
  if (evidence_.outcome.flight_records().empty()) outcome.clear_flight_records();
  pb::Outcome seen = observable(outcome);
  if (!steps_told(evidence_.outcome)) {
    google::protobuf::RepeatedPtrField<pb::OutcomeFinding> others;
    for (pb::OutcomeFinding& finding : *seen.mutable_findings()) {
      if (finding.id() != kStepsTold) *others.Add() = std::move(finding);
    }
    *seen.mutable_findings() = std::move(others);
  }
  Trial trial{.use = use,
              .verdict = seen.verdict(),
              .changes = changes_of(seen, baseline_),
              .likeness = {},
              .symptom = outcome.symptom()};
  trial.size = magnitude(trial.changes);
  if (seen.verdict() != evidence_.outcome.verdict()) {
    trial.likeness.different.emplace_back("the simulated run ends in another way");
  } else {
    trial.likeness = likeness(evidence_.changes, trial.changes);
    const double wanted = magnitude(evidence_.changes);
    const bool scales = strength_of(use.fault()) && trial.size > kTiny && wanted > kTiny;
    trial.shape = scales ? likeness(evidence_.changes, trial.changes, wanted / trial.size).score
                         : trial.likeness.score;
  }
  done_.emplace(key, trial);
  return trial;
}

Trial Laboratory::fit(const Trial& start, int rounds) {
  const pb::Parameter* strength = strength_of(start.use.fault());
  const double wanted = magnitude(evidence_.changes);
  if (!strength || wanted <= kTiny) return start;
  struct Point {
    double x = 0, y = 0;  // logarithms of strength and magnitude
  };
  const auto logged = [&](const std::string& text) {
    const auto value = parse_value(*strength, text);
    return std::log(std::max(value ? *value : 0.0, 1e-12));
  };
  const auto at = [&](const Trial& trial) {
    return Point{logged(trial.use.values.at(strength->name())),
                 std::log(std::max(trial.size, kTiny))};
  };
  const double target = std::log(wanted);
  const double low = logged(strength->at_least()), high = logged(strength->at_most());
  Trial best = start;
  Point last = at(start), now = last;
  // Towards more: where the bound further from 1 (or from what is healthy) lies is found out by trying.
  double x = std::clamp(last.x + kFirstStep, low, high);
  for (int round = 0; round < rounds && std::abs(now.y - target) > kCloseEnough; ++round) {
    auto use = with_value(start.use, strength->name(), format_value(*strength, std::exp(x)));
    if (!use || use->text() == start.use.text()) break;
    const auto trial = once(*use);
    if (!trial) break;
    if (trial->likeness.score > best.likeness.score) best = *trial;
    last = now;
    now = at(*trial);
    if (now.x == last.x) break;
    const double slope = (now.y - last.y) / (now.x - last.x);
    // A flat stretch says nothing of the way; go on as before.
    const double step = std::abs(slope) > 0.02 ? (target - now.y) / slope : kFirstStep;
    x = std::clamp(now.x + std::clamp(step, -kLargestStep, kLargestStep), low, high);
  }
  return best;
}

Trial Laboratory::at_either_end(const Trial& start) {
  const pb::Parameter* strength = strength_of(start.use.fault());
  if (!strength || magnitude(evidence_.changes) > kTiny || start.likeness.score > kSurely) {
    return start;
  }
  Trial best = start;
  for (const std::string& end : {strength->usual_from(), strength->usual_to()}) {
    const auto use =
        end.empty() ? Result<FaultUse>(start.use) : with_value(start.use, strength->name(), end);
    const auto trial = use ? once(*use) : Result<Trial>(start);
    if (trial && trial->likeness.score > best.likeness.score) best = *trial;
  }
  return best;
}

Trial Laboratory::ending_alike(const Trial& start) {
  const pb::Parameter* strength = strength_of(start.use.fault());
  if (!strength || start.verdict == evidence_.outcome.verdict()) return start;
  for (const std::string& end : {strength->usual_from(), strength->usual_to()}) {
    if (end.empty()) continue;
    const auto use = with_value(start.use, strength->name(), end);
    const auto trial = use ? once(*use) : Result<Trial>(start);
    if (trial && trial->verdict == evidence_.outcome.verdict()) return *trial;
  }
  return start;
}

Trial Laboratory::timed(const Trial& start) {
  const auto& parameters = start.use.fault().parameters();
  const auto moment =
      std::find_if(parameters.begin(), parameters.end(),
                   [](const pb::Parameter& p) { return p.kind() == pb::Parameter::MOMENT; });
  const auto wanted = steps_until("last progress", evidence_.changes);
  if (moment == parameters.end() || !wanted || evidence_.outcome.verdict() == pb::COMPLETED)
    return start;
  // Logs tell no step time: moments are then compared as they are.
  const double step = std::max(1.0, static_cast<double>(baseline_.step_time_ns().mean()));
  Trial best = start, now = start;
  for (int round = 0; round < kTimedRounds; ++round) {
    const auto made = steps_until("last progress", now.changes);
    const auto failed = steps_until("first error", now.changes);
    const auto at = parse_value(*moment, now.use.values.at(moment->name()));
    if (!made || !failed || !at) break;
    double moved = *at + (*wanted - *made) * step;
    if (evidence_.outcome.verdict() == pb::CRASH) {
      // Peers go on for a while; how long it takes until somebody notices does not depend on how fast the job is.
      const double noticed = *failed * step - *at;
      moved = evidence_.pace * (static_cast<double>(evidence_.failed_ns) - noticed);
    }
    moved = std::max(0.0, moved);
    if (std::abs(moved - *at) < kSameMoment * step) break;
    auto use = with_value(now.use, moment->name(), format_value(*moment, moved));
    if (!use) break;
    const auto trial = once(*use);
    if (!trial) break;
    if (trial->likeness.score > best.likeness.score) best = *trial;
    now = *trial;
  }
  return best;
}

Trial Laboratory::fitted(const Trial& start) {
  return timed(at_either_end(fit(start, kFitRounds)));
}

Trial Laboratory::roughly_fitted(const Trial& start) {
  const double wanted = magnitude(evidence_.changes);
  if (wanted <= kTiny || start.shape < kWorthFitting) return start;
  const double off = std::abs(std::log(std::max(start.size, kTiny) / wanted));
  return off > kFarOff ? fit(start, kRoughRounds) : start;
}

}  // namespace rehearse::faults
