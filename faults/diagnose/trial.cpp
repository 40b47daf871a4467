// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/trial.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse::faults {
namespace {

constexpr int kFitRounds = 4;
// Step times closer than this (in logarithm) need no better fit.
constexpr double kCloseEnough = 0.005;

const pb::Parameter* strength_of(const pb::Fault& fault) {
  for (const pb::Parameter& p : fault.parameters()) {
    if (p.strength()) return &p;
  }
  return nullptr;
}

}  // namespace

Result<Trial> Laboratory::once(const FaultUse& use) {
  if (exhausted()) return fail(Code::kLimit, "no simulation left");
  ++simulations_;
  RH_TRY(const auto patches, patches_of(use, healthy_.document));
  sim::Scenario scenario = healthy_;
  for (const pb::Patch& patch : patches) {
    if (auto applied = world_.apply(scenario, patch); !applied)
      return tl::unexpected(applied.error());
  }
  RH_TRY(const pb::Outcome outcome, world_.simulate(scenario));
  return Trial{
      .use = use,
      .likeness = likeness(evidence_, outcome),
      .step = outcome.verdict() == evidence_.verdict() ? outcome.step_time_ns().mean() : 0};
}

Trial Laboratory::fit(Trial start, const pb::Parameter& strength) {
  const double target = std::log(static_cast<double>(evidence_.step_time_ns().mean()));
  struct Point {
    double x = 0, y = 0;  // logarithms of strength and step time
  };
  const auto logged = [&](const std::string& text) {
    const auto value = parse_value(strength, text);
    return std::log(std::max(value ? *value : 0.0, 1e-12));
  };
  const auto at = [&](const Trial& trial) {
    return Point{logged(trial.use.values.at(strength.name())),
                 std::log(static_cast<double>(trial.step))};
  };
  Trial best = start;
  const auto try_at = [&](double x) -> std::optional<Point> {
    const double low = std::exp(logged(strength.at_least())),
                 high = std::exp(logged(strength.at_most()));
    auto use = with_value(start.use, strength.name(),
                          format_value(strength, std::clamp(std::exp(x), low, high)));
    if (!use) return std::nullopt;
    auto trial = once(*use);
    if (!trial || trial->step <= 0) return std::nullopt;
    if (trial->likeness.score > best.likeness.score) best = *trial;
    return at(*trial);
  };
  Point inner = at(start);
  if (std::abs(inner.y - target) < kCloseEnough) return best;
  // The bound at which the step moves towards the evidence.
  Point outer = inner;
  for (const std::string* bound : {&strength.at_least(), &strength.at_most()}) {
    const Point end = try_at(logged(*bound)).value_or(inner);
    if ((end.y - inner.y) * (target - inner.y) <= 0) continue;
    outer = end;
    break;
  }
  for (int round = 0; round < kFitRounds && (outer.y - target) * (inner.y - target) < 0; ++round) {
    // Between halving and the straight line: the effect is often flat at one end.
    const double straight =
        inner.x + (outer.x - inner.x) * (target - inner.y) / (outer.y - inner.y);
    const double x = 0.5 * straight + 0.25 * (inner.x + outer.x);
    const auto point = try_at(x);
    if (!point || std::abs(point->y - target) < kCloseEnough) break;
    ((point->y - target) * (outer.y - target) > 0 ? outer : inner) = *point;
  }
  return best;
}

Result<Trial> Laboratory::best_fit(const FaultUse& use) {
  RH_TRY(Trial trial, once(use));
  const pb::Parameter* strength = strength_of(use.fault());
  const bool fits = strength && trial.step > 0 && evidence_.step_time_ns().mean() > 0;
  return fits ? fit(std::move(trial), *strength) : std::move(trial);
}

}  // namespace rehearse::faults
