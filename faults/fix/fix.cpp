// SPDX-License-Identifier: Apache-2.0
#include "faults/fix/fix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "base/document.hpp"
#include "base/units.hpp"
#include "faults/fix/side_effects.hpp"
#include "faults/symptoms/classifier.hpp"

namespace rehearse::faults {
namespace {

constexpr size_t kPaired = 6;      // fixes that are tried two at a time
constexpr double kWorthIt = 0.02;  // of a step, that two must recover beyond the better one

// A fix to try, and what came of it.
struct Attempt {
  pb::FixTrial trial;
  std::vector<pb::Patch> patches;
};

auto rank_of(const pb::FixTrial& t) {
  return std::tuple(!t.refused().empty(), !t.false_fix().empty(), !t.restores(),
                    t.has_recovered_ns() ? -t.recovered_ns() : int64_t{0},
                    -static_cast<int64_t>(t.paper_count()));
}

// Whether the job is in another state than before, or steps are shorter by more than noise.
bool makes_progress(const pb::FixTrial& t, const pb::Symptom& before) {
  if (!t.refused().empty() || !t.false_fix().empty()) return false;
  if (t.symptom().id() != before.id()) return true;
  return t.has_recovered_ns() &&
         static_cast<double>(t.recovered_ns()) > kWorthIt * static_cast<double>(t.step_time_ns());
}

// "F16:node=1 alone gives back 30 ms of a step".
std::string in_words(const pb::FixTrial& t) {
  const std::string who = fmt::format("{} ({})", t.name(), t.own() ? "your fix" : t.use());
  if (!t.has_step_time_ns()) return who + " alone: the job still does not run";
  if (!t.has_recovered_ns()) {
    return fmt::format("{} alone: steps of {}", who, format_duration(t.step_time_ns()));
  }
  return fmt::format("{} alone gives back {} of a step", who, format_duration(t.recovered_ns()));
}

bool better(const Attempt& a, const Attempt& b) { return rank_of(a.trial) < rank_of(b.trial); }

class Trials {
 public:
  Trials(const FixRequest& request, const World& world, const pb::Symptom& symptom)
      : request_(request), world_(world), symptom_(symptom) {}

  [[nodiscard]] Result<void> own_fixes() {
    for (const OwnFix& own : request_.own) {
      Attempt attempt;
      attempt.patches = own.patches;
      attempt.trial.set_own(true);
      attempt.trial.set_name("your fix");
      attempt.trial.set_change(own.text);
      if (auto done = run(std::move(attempt)); !done) return done;
    }
    return {};
  }

  [[nodiscard]] Result<void> fixes_of_candidates() {
    for (const FaultUse& use : request_.candidates) {
      RH_TRY(const std::vector<pb::Fix> fixes, fixes_of(use, request_.broken.document));
      for (const pb::Fix& fix : fixes) {
        if (auto done = run(attempt_of(use, fix)); !done) return done;
      }
    }
    return {};
  }

  // Two of the best together, where none alone restores; kept when they do more than the better one.
  [[nodiscard]] Result<void> pairs() {
    std::stable_sort(attempts_.begin(), attempts_.end(), better);
    if (attempts_.empty() || attempts_.front().trial.restores()) return {};
    std::vector<Attempt> best;
    for (const Attempt& one : attempts_) {
      if (best.size() < kPaired && one.trial.refused().empty() && one.trial.false_fix().empty()) {
        best.push_back(one);
      }
    }
    for (size_t a = 0; a < best.size(); ++a) {
      for (size_t b = a + 1; b < best.size(); ++b) {
        if (best[a].trial.use() == best[b].trial.use() && !best[a].trial.own()) continue;
        // By id, whatever the diagnosis puts first.
        const bool in_order = best[a].trial.fault() <= best[b].trial.fault();
        if (auto done = run_pair(best[in_order ? a : b], best[in_order ? b : a]); !done)
          return done;
      }
    }
    return {};
  }

  // Where no fix restores: what the best one leaves is looked at anew, and fixes of that are tried on top of it.
  [[nodiscard]] Result<void> in_turn() {
    std::stable_sort(attempts_.begin(), attempts_.end(), better);
    if (!request_.look_again || attempts_.empty() || attempts_.front().trial.restores()) return {};
    const auto found =
        std::find_if(attempts_.begin(), attempts_.end(), [&](const Attempt& attempt) {
          return attempt.trial.alone().empty() && makes_progress(attempt.trial, symptom_);
        });
    if (found == attempts_.end()) return {};
    const Attempt first = *found;
    RH_TRY(const sim::Scenario repaired, with(first.patches));
    ++simulations_;
    RH_TRY(const pb::Outcome left, world_.simulate(repaired));
    RH_TRY(const std::vector<FaultUse> causes, request_.look_again(repaired, left));
    for (const FaultUse& use : causes) {
      RH_TRY(const std::vector<pb::Fix> fixes, fixes_of(use, repaired.document));
      for (const pb::Fix& fix : fixes) {
        const Attempt second = attempt_of(use, fix);
        if (auto done = run_pair(first, second, AloneKnown::kFirst); !done) return done;
      }
    }
    return {};
  }

  [[nodiscard]] std::vector<Attempt> take() {
    std::stable_sort(attempts_.begin(), attempts_.end(), better);
    return std::move(attempts_);
  }
  [[nodiscard]] uint32_t simulations() const { return simulations_; }

 private:
  // Of two fixes together which were tried alone.
  enum class AloneKnown : uint8_t { kBoth, kFirst };

  [[nodiscard]] Attempt attempt_of(const FaultUse& use, const pb::Fix& fix) const {
    Attempt attempt;
    attempt.patches = {fix.patch().begin(), fix.patch().end()};
    attempt.trial.set_fault(use.fault().id());
    attempt.trial.set_use(use.text());
    attempt.trial.set_name(fix.name());
    attempt.trial.set_change(fix.change());
    attempt.trial.set_pattern(fix.pattern());
    attempt.trial.set_paper_count(request_.categories.solved(symptom_.id(), fix.pattern()));
    return attempt;
  }

  [[nodiscard]] Result<void> run(Attempt attempt) {
    std::string key;
    for (const pb::Patch& patch : attempt.patches) {
      attempt.trial.add_patches(write_document(patch));
      key += attempt.trial.patches().rbegin()[0];
    }
    if (!attempt.trial.own() && !tried_.insert(key).second) return {};
    attempt.trial.set_band("unvalidated");
    auto outcome = simulate(attempt.patches);
    if (!outcome && outcome.error().code == Code::kInterrupted) {
      return tl::unexpected(outcome.error());
    }
    if (outcome) {
      const FixRuns runs{*outcome, request_.outcome, request_.baseline};
      judge_fix(runs, attempt.patches, attempt.trial);
      for (std::string& effect : side_effects(runs, attempt.patches)) {
        attempt.trial.add_side_effects(std::move(effect));
      }
    } else {
      attempt.trial.set_refused(outcome.error().message());
    }
    attempts_.push_back(std::move(attempt));
    return {};
  }

  [[nodiscard]] Result<void> run_pair(const Attempt& a, const Attempt& b,
                                      AloneKnown known = AloneKnown::kBoth) {
    Attempt both;
    both.patches = a.patches;
    both.patches.insert(both.patches.end(), b.patches.begin(), b.patches.end());
    both.trial.set_fault(a.trial.fault() + "+" + b.trial.fault());
    both.trial.set_use(a.trial.use() + " + " + b.trial.use());
    both.trial.set_name(a.trial.name() + ", " + b.trial.name());
    both.trial.set_change(a.trial.change() + "; and " + b.trial.change());
    both.trial.set_pattern(a.trial.pattern() + " & " + b.trial.pattern());
    both.trial.set_paper_count(request_.categories.solved(symptom_.id(), both.trial.pattern()));
    both.trial.add_alone(in_words(a.trial));
    both.trial.add_alone(known == AloneKnown::kBoth
                             ? in_words(b.trial)
                             : fmt::format("{} ({}) is what the job shows after the first",
                                           b.trial.name(), b.trial.use()));
    const size_t before = attempts_.size();
    if (auto done = run(std::move(both)); !done) return done;
    if (attempts_.size() > before && !worth_it(attempts_.back().trial, a.trial, b.trial)) {
      attempts_.pop_back();
    }
    return {};
  }

  [[nodiscard]] bool worth_it(const pb::FixTrial& both, const pb::FixTrial& a,
                              const pb::FixTrial& b) const {
    if (!both.refused().empty() || !both.false_fix().empty()) return false;
    if (both.restores()) return true;
    if (!both.has_step_time_ns()) return false;
    const int64_t alone = std::max(a.recovered_ns(), b.recovered_ns());
    const bool ran = a.has_step_time_ns() || b.has_step_time_ns();
    return !ran || static_cast<double>(both.recovered_ns() - alone) >
                       kWorthIt * static_cast<double>(both.step_time_ns());
  }

  [[nodiscard]] Result<sim::Scenario> with(const std::vector<pb::Patch>& patches) const {
    sim::Scenario scenario = request_.broken;
    for (const pb::Patch& patch : patches) {
      if (auto applied = world_.apply(scenario, patch); !applied) {
        return tl::unexpected(applied.error());
      }
    }
    return scenario;
  }

  [[nodiscard]] Result<pb::Outcome> simulate(const std::vector<pb::Patch>& patches) {
    RH_TRY(const sim::Scenario scenario, with(patches));
    ++simulations_;
    return world_.simulate(scenario);
  }

  const FixRequest& request_;
  const World& world_;
  const pb::Symptom& symptom_;
  std::vector<Attempt> attempts_;
  std::set<std::string> tried_;
  uint32_t simulations_ = 0;
};

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
  *report.mutable_symptom() = classify(broken);

  Trials trials(request, world, report.symptom());
  if (auto done = trials.own_fixes(); !done) return tl::unexpected(done.error());
  if (auto done = trials.fixes_of_candidates(); !done) return tl::unexpected(done.error());
  if (request.own.empty()) {
    if (auto done = trials.pairs(); !done) return tl::unexpected(done.error());
    if (auto done = trials.in_turn(); !done) return tl::unexpected(done.error());
  }
  for (Attempt& attempt : trials.take()) *report.add_fixes() = std::move(attempt.trial);
  report.set_simulations(trials.simulations());
  return report;
}

void add_fixes(pb::FixReport more, pb::FixReport& report) {
  std::vector<pb::FixTrial> all(report.fixes().begin(), report.fixes().end());
  all.insert(all.end(), more.fixes().begin(), more.fixes().end());
  const auto kind_of = [](const pb::FixTrial& t) {
    return std::tuple(!t.refused().empty(), !t.false_fix().empty(), !t.restores());
  };
  std::stable_sort(all.begin(), all.end(), [&](const pb::FixTrial& a, const pb::FixTrial& b) {
    return kind_of(a) < kind_of(b);
  });
  const uint32_t simulations = report.simulations() + more.simulations();
  if (report.schema().empty()) report = std::move(more);
  report.clear_fixes();
  for (pb::FixTrial& trial : all) *report.add_fixes() = std::move(trial);
  report.set_simulations(simulations);
}

}  // namespace rehearse::faults
