// SPDX-License-Identifier: Apache-2.0
#include "validation/certainty/band.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/random.hpp"
#include "sim/pool.hpp"
#include "sim/simulate.hpp"
#include "validation/calibrate/overlay.hpp"
#include "validation/statistics.hpp"

namespace rehearse::validation {
namespace {

constexpr double kHelps = 1.001;  // less is nothing anybody would call help

// Mean over ranks, per step.
double exposed_communication(const pb::Outcome& outcome) {
  double sum = 0;
  for (const pb::RankBreakdown& rank : outcome.breakdown()) {
    sum += static_cast<double>(rank.communication());
  }
  return outcome.breakdown().empty() ? 0 : sum / static_cast<double>(outcome.breakdown_size());
}

bool acts_on_step(Change change) { return change == Change::kLayout || change == Change::kCompute; }

std::string packed(const DrawnStep& step) {
  return {reinterpret_cast<const char*>(&step), sizeof step};
}

std::vector<double> completed(const std::vector<std::optional<double>>& steps) {
  std::vector<double> out;
  for (const auto& step : steps) {
    if (step) out.push_back(*step);
  }
  std::sort(out.begin(), out.end());
  return out;
}

// 5th and 95th percentile of what completed; nothing where nothing did.
std::optional<pb::Band> band_of(const std::vector<std::optional<double>>& steps) {
  const std::vector<double> times = completed(steps);
  if (times.empty()) return std::nullopt;
  pb::Band band;
  band.set_low(std::llround(quantile(times, .05)));
  band.set_high(std::llround(quantile(times, .95)));
  band.set_draws(static_cast<uint32_t>(times.size()));
  return band;
}

std::string described(const std::set<Change>& changes) {
  std::string out;
  for (const Change change : changes)
    out += (out.empty() ? "" : ", ") + std::string(name_of(change));
  return out;
}

Result<sim::Scenario> repaired(const sim::Scenario& broken, const pb::FixTrial& fix) {
  sim::Scenario out = broken;
  for (const std::string& text : fix.patches()) {
    RH_TRY(const pb::Patch patch, sim::parse_patch(text, fix.name()));
    if (auto done = sim::apply(out, patch); !done) return tl::unexpected(done.error());
  }
  return out;
}

// How many times faster a step is after the fix, by draw, and how often that is any help.
pb::FixCertainty certainty_of(const DrawnSteps& before,
                              const std::vector<std::optional<double>>& after) {
  pb::FixCertainty out;
  std::vector<double> ratios;
  size_t helps = 0;
  for (size_t k = 0; k < after.size(); ++k) {
    if (!after[k]) continue;
    if (!before[k]) {
      ++helps;  // it did not run at all
      continue;
    }
    ratios.push_back(before[k]->step / *after[k]);
    helps += ratios.back() > kHelps ? 1 : 0;
  }
  out.set_draws(static_cast<uint32_t>(after.size()));
  out.set_helps(after.empty() ? 0 : static_cast<double>(helps) / static_cast<double>(after.size()));
  if (!ratios.empty()) {
    out.set_low(quantile_of(ratios, .05));
    out.set_high(quantile_of(ratios, .95));
  }
  return out;
}

std::string text_of(const pb::FixCertainty& certainty) {
  std::string out =
      fmt::format("helps in {:.0f} % of {} draws", 100 * certainty.helps(), certainty.draws());
  if (certainty.has_low())
    out += fmt::format("; {:.2f}-{:.2f}x", certainty.low(), certainty.high());
  return certainty.held_out() > 0 ? out : out + "; unvalidated";
}

}  // namespace

Result<Drawing> drawing_of(const pb::Calibration* calibration, const pb::Scenario& scenario,
                           uint32_t count) {
  Drawing out;
  out.seed = scenario.seed();
  out.jobs = sim::cores();
  if (calibration == nullptr) {
    out.patches = prior_draws(scenario.platform().efficiency(), scenario.seed(), count);
    out.from = "priors";
    out.note = "nothing is calibrated";
    return out;
  }
  RH_TRY(out.patches, draws_of(*calibration, count));
  out.from = calibration->platform();
  out.note = fmt::format("collectives calibrated on {} calls", calibration->observations());
  return out;
}

Result<DrawnSteps> drawn_steps(const sim::Scenario& scenario, const Drawing& drawing,
                               Reporter& reporter) {
  const auto piece = [&](size_t k) -> Result<std::string> {
    SilentReporter silent;
    sim::Scenario drawn = scenario;
    if (auto done = sim::apply(drawn, drawing.patches[k]); !done) {
      return tl::unexpected(std::move(done).error());
    }
    RH_TRY(const pb::Outcome outcome, sim::simulate_here(drawn, sim::Detail::kFigures, silent));
    if (outcome.verdict() != pb::COMPLETED || outcome.step_time_ns().mean() <= 0) {
      return std::string();
    }
    return packed(
        {static_cast<double>(outcome.step_time_ns().mean()), exposed_communication(outcome)});
  };
  RH_TRY(const auto answers,
         sim::in_children(drawing.patches.size(), drawing.jobs, piece, reporter));
  DrawnSteps out;
  for (const Result<std::string>& answer : answers) {
    if (!answer) return tl::unexpected(answer.error());
    auto& step = out.emplace_back();
    if (answer->size() == sizeof(DrawnStep)) {
      std::memcpy(&step.emplace(), answer->data(), sizeof(DrawnStep));
    }
  }
  return out;
}

std::vector<std::optional<double>> with_error(const DrawnSteps& steps, const Drawing& drawing,
                                              const ChangeError* error) {
  std::vector<std::optional<double>> out;
  for (size_t k = 0; k < steps.size(); ++k) {
    auto& one = out.emplace_back();
    if (!steps[k]) continue;
    one = steps[k]->step;
    if (error == nullptr) continue;
    const double part = acts_on_step(error->change) ? steps[k]->step : steps[k]->communication;
    const double share = Random(drawing.seed, "held-out error", k).uniform();
    *one += part * (std::exp(error->at(share)) - 1);
  }
  return out;
}

Result<pb::Band> step_time_band(const sim::Scenario& base, const sim::Scenario& changed,
                                const Drawing& drawing, Reporter& reporter) {
  RH_TRY(const ChangeErrors errors, ChangeErrors::load_shipped());
  const std::set<Change> changes = changes_between(base, changed);
  const ChangeError* error = errors.find(changes);
  RH_TRY(const DrawnSteps steps, drawn_steps(changed, drawing, reporter));
  std::optional<pb::Band> band = band_of(with_error(steps, drawing, error));
  if (!band) {
    return fail(Code::kBadInput, "no run of the draws completes: it has no step time", "--draws",
                "leave out --draws");
  }
  band->set_from(drawing.from);
  band->set_note(drawing.note);
  if (error != nullptr) {
    band->set_note(fmt::format("{}; with the error of {} measured changes of {}", drawing.note,
                               error->rows, name_of(error->change)));
  } else if (!changes.empty() || drawing.from == "priors") {
    band->set_note(drawing.note + ": unvalidated");
  }
  return *std::move(band);
}

Result<void> add_certainty(const sim::Scenario& broken, const Drawing& drawing, int most,
                           Reporter& reporter, pb::FixReport& report) {
  RH_TRY(const ChangeErrors errors, ChangeErrors::load_shipped());
  std::optional<DrawnSteps> before;
  for (pb::FixTrial& fix : *report.mutable_fixes()) {
    if (most == 0) break;
    if (!fix.refused().empty() || (!fix.restores() && fix.recovered_ns() <= 0)) continue;
    --most;
    if (!before) {
      RH_TRY(before, drawn_steps(broken, drawing, reporter));
      if (const auto band = band_of(with_error(*before, drawing, nullptr))) {
        *report.mutable_broken_step_time_band_ns() = *band;
        report.mutable_broken_step_time_band_ns()->set_from(drawing.from);
      }
    }
    RH_TRY(const sim::Scenario after, repaired(broken, fix));
    const std::set<Change> changes = changes_between(broken, after);
    const ChangeError* error = errors.find(changes);
    RH_TRY(const DrawnSteps steps, drawn_steps(after, drawing, reporter));
    const auto after_steps = with_error(steps, drawing, error);
    pb::FixCertainty& certainty = *fix.mutable_certainty();
    certainty = certainty_of(*before, after_steps);
    if (const auto band = band_of(after_steps)) {
      *certainty.mutable_step_time_band_ns() = *band;
      certainty.mutable_step_time_band_ns()->set_from(drawing.from);
    }
    certainty.set_from(drawing.from);
    certainty.set_change(described(changes));
    certainty.set_held_out(error == nullptr ? 0 : static_cast<uint32_t>(error->rows));
    fix.set_band(text_of(certainty));
  }
  return {};
}

}  // namespace rehearse::validation
