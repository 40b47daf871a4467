// SPDX-License-Identifier: Apache-2.0
#include "validation/step_checks.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

#include "validation/step_time/fit.hpp"
#include "validation/step_time/rows.hpp"

namespace rehearse::validation {
namespace {

namespace fs = std::filesystem;

constexpr double kStepTimeTarget = .15;
constexpr double kRankingTarget = .8;
constexpr size_t kFewestLayouts = 4;  // fewer make no ranking

constexpr const char* kStepCommand = "rehearse validate --only steps --rows";

// Rates of a kind of GPU from all rows but those of one model.
StepRates rates_without(const PublishedSteps& all, const std::string& gpu,
                        const std::string& model) {
  std::vector<MeasuredStep> rows;
  for (const PublishedStep& step : all.steps) {
    if (step.gpu == gpu && step.model != model) rows.push_back({terms_of(step.job), step.seconds});
  }
  return fit_rates(rows);
}

void note_rows(const char* name, const PublishedSteps& steps, Check& check) {
  std::string out = fmt::format("{}: {} rows", name, steps.steps.size());
  for (const auto& [why, n] : steps.left_out) out += fmt::format(", {} left out ({})", n, why);
  check.assumptions.push_back(out);
  for (const std::string& assumed : steps.assumptions) {
    check.assumptions.push_back(fmt::format("{}: {}", name, assumed));
  }
}

CheckRow row_of(const PublishedStep& step, const StepRates& rates, const std::string& group) {
  return {step.what,    group, step_seconds(terms_of(step.job), rates),
          step.seconds, "s",   step.source,
          kStepCommand, 0,     0};
}

Check ranking_check(const PublishedSteps& megatron) {
  Check check;
  check.id = "step-ranking";
  check.what = "order of layouts by step time within a family of Megatron-LM's tests";
  check.metric = "Kendall's tau";
  check.at_least = true;
  check.target = kRankingTarget;
  note_rows("Megatron-LM", megatron, check);
  std::map<std::string, std::map<std::string, std::vector<const PublishedStep*>>> families;
  for (const PublishedStep& step : megatron.steps) {
    families[step.family][step.model].push_back(&step);
  }
  double sum = 0, layouts_in_all = 0;
  for (const auto& [family, layouts] : families) {
    if (layouts.size() < kFewestLayouts) continue;
    std::vector<double> predicted, measured;
    for (const auto& [layout, steps] : layouts) {
      std::vector<double> times;
      for (const PublishedStep* step : steps) times.push_back(step->seconds);
      predicted.push_back(step_seconds(terms_of(steps.front()->job), StepRates{}));
      measured.push_back(quantile_of(times, .5));
      check.rows.push_back({steps.front()->what, family, predicted.back(), measured.back(), "s",
                            steps.front()->source, kStepCommand, 0, 0});
    }
    const double tau = kendall_tau(predicted, measured);
    check.assumptions.push_back(
        fmt::format("{}: tau {:.2f} over {} layouts", family, tau, layouts.size()));
    sum += tau * static_cast<double>(layouts.size());
    layouts_in_all += static_cast<double>(layouts.size());
  }
  check.value = layouts_in_all > 0 ? sum / layouts_in_all : 0;
  check.assumptions.push_back(
      "only the order is judged: these jobs are bound by a host whose speed is not stated; how "
      "many "
      "launches tensor, context and pipeline ranks add was chosen with these times in view");
  judge_value(check);
  return check;
}

}  // namespace

std::vector<Check> step_checks(const fs::path& data, Reporter&) {
  Check check;
  check.id = "step-times";
  check.what =
      "step time of stated layouts without a trace: llm-foundry without the row's model, "
      "torchtitan";
  check.target = kStepTimeTarget;
  const auto foundry = llm_foundry_steps(data / "measured" / "llm_foundry_mpt.csv");
  if (!foundry) return {skipped_check(check.id, check.what, foundry.error().what)};
  note_rows("llm-foundry", *foundry, check);
  std::map<std::pair<std::string, std::string>, StepRates> rates;
  for (const PublishedStep& step : foundry->steps) {
    const auto [at, fresh] = rates.try_emplace({step.gpu, step.model});
    if (fresh) at->second = rates_without(*foundry, step.gpu, step.model);
    check.rows.push_back(row_of(step, at->second, step.gpu + step.model));
  }
  std::vector<Check> out;
  if (const auto titan = torchtitan_steps(data / "measured" / "torchtitan.csv"); titan) {
    note_rows("torchtitan", *titan, check);
    for (const PublishedStep& step : titan->steps) {
      check.rows.push_back(
          row_of(step, rates_without(*foundry, step.gpu, ""), "torchtitan " + step.model));
    }
  } else {
    check.assumptions.push_back("torchtitan: " + titan.error().what);
  }
  judge_median(check);
  out.push_back(std::move(check));
  const auto megatron = megatron_steps(data / "measured" / "megatron_golden_iteration_times.csv");
  if (megatron) out.push_back(ranking_check(*megatron));
  return out;
}

}  // namespace rehearse::validation
