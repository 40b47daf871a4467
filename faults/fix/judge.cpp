// SPDX-License-Identifier: Apache-2.0
#include "faults/fix/judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/units.hpp"
#include "faults/symptoms/classifier.hpp"

namespace rehearse::faults {
namespace {

constexpr double kSameWork = 0.98;  // rounding of buckets and clones aside

int64_t mean_step(const pb::Outcome& outcome) { return outcome.step_time_ns().mean(); }

struct Work {
  int64_t calls = 0, bytes = 0;
};

Work work_of(const pb::Outcome& outcome) {
  Work out;
  for (const pb::CommunicatorUse& use : outcome.communicators()) {
    out.calls += use.calls();
    out.bytes += use.bytes();
  }
  return out;
}

bool less(double now, double should_be) { return now < kSameWork * should_be; }

std::string does_less(const pb::Outcome& fixed, const pb::Outcome& baseline) {
  if (fixed.ranks() > 0 && fixed.ranks() < baseline.ranks()) {
    return fmt::format("{} of {} ranks take part", fixed.ranks(), baseline.ranks());
  }
  const int steps = fixed.step_time_ns().each_size(), all = baseline.step_time_ns().each_size();
  if (steps > 0 && steps < all) return fmt::format("only {} of {} steps are made", steps, all);
  const Work now = work_of(fixed), should = work_of(baseline);
  if (less(static_cast<double>(now.bytes), static_cast<double>(should.bytes))) {
    return fmt::format(
        "collectives carry {} of the {} that the job as it should be exchanges: "
        "data is left out",
        format_bytes(now.bytes), format_bytes(should.bytes));
  }
  if (less(static_cast<double>(now.calls), static_cast<double>(should.calls))) {
    return fmt::format("{} collectives are made where the job as it should be makes {}", now.calls,
                       should.calls);
  }
  return {};
}

bool is_patience(std::string path) {
  std::transform(path.begin(), path.end(), path.begin(), [](unsigned char c) {
    return c == '-' ? '_' : static_cast<char>(std::tolower(c));
  });
  const auto has = [&](const char* word) { return path.find(word) != std::string::npos; };
  return has("timeout") || has("retry_cnt") || has("heartbeat") || has("watchdog") ||
         has("stall_check") || has("stall_shutdown") || has("async_error_handling");
}

// Does it change nothing but how long somebody waits?
bool only_patience(std::span<const pb::Patch> patches) {
  bool any = false;
  for (const pb::Patch& patch : patches) {
    if (patch.transform_case() != pb::Patch::TRANSFORM_NOT_SET) return false;
    for (const auto& [path, value] : patch.set()) {
      if (!is_patience(path)) return false;
      any = true;
    }
  }
  return any;
}

}  // namespace

std::string false_fix(const FixRuns& runs, std::span<const pb::Patch> patches) {
  const pb::Outcome& fixed = runs.fixed;
  if (fixed.verdict() == pb::WRONG_SEMANTICS) return "the run ends, but its data is wrong";
  const bool ends = fixed.verdict() == pb::COMPLETED;
  if (only_patience(patches)) {
    if (!ends) return "it only waits longer: what is waited for never comes";
    const int64_t step = fixed.step_time_ns().max(), usual = mean_step(runs.baseline);
    if (usual > 0 &&
        static_cast<double>(step) > static_cast<double>(usual) * (1 + kRestoredWithin)) {
      return fmt::format("it only waits longer: the slowest step still takes {} where {} is usual",
                         format_duration(step), format_duration(usual));
    }
    return {};
  }
  return ends ? does_less(fixed, runs.baseline) : std::string();
}

void judge_fix(const FixRuns& runs, std::span<const pb::Patch> patches, pb::FixTrial& trial) {
  pb::Outcome outcome = runs.fixed;
  *outcome.mutable_baseline_step_time_ns() = runs.baseline.step_time_ns();
  trial.set_verdict(outcome.verdict());
  *trial.mutable_symptom() = classify(outcome);
  trial.set_false_fix(false_fix(runs, patches));
  const int64_t step = mean_step(outcome), broken = mean_step(runs.broken);
  if (outcome.verdict() != pb::COMPLETED || step <= 0) return;
  trial.set_step_time_ns(step);
  if (runs.broken.verdict() == pb::COMPLETED && broken > 0) trial.set_recovered_ns(broken - step);
  const int64_t baseline = mean_step(runs.baseline);
  const double off =
      baseline > 0 ? static_cast<double>(step) / static_cast<double>(baseline) - 1 : 0;
  trial.set_restores(trial.symptom().id() == kHealthy && off <= kRestoredWithin &&
                     trial.false_fix().empty());
}

}  // namespace rehearse::faults
