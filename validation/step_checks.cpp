// SPDX-License-Identifier: Apache-2.0
#include "validation/step_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "validation/certainty/change_checks.hpp"
#include "validation/step_time/fit.hpp"
#include "validation/step_time/replayed.hpp"
#include "validation/step_time/rows.hpp"

namespace rehearse::validation {
namespace {

namespace fs = std::filesystem;

constexpr double kStepTimeTarget = .15;
constexpr double kRankingTarget = .8;
constexpr size_t kFewestLayouts = 4;  // fewer make no ranking

// A published step, what a replay at common rates says beside its terms, and the replay at its own rates.
struct HeldOutStep {
  const PublishedStep* step = nullptr;
  std::string group;
  StepTerms terms;  // `fixed` as the replay has it
  Result<ReplayedStep> replayed = fail(Code::kInternal, "not replayed");
};

std::string gpu_id(const PublishedStep& step) { return step.gpu.substr(0, step.gpu.find(' ')); }

double gpu_seconds(const StepTerms& terms, const StepRates& rates) {
  return terms.gemm / rates.gemm + terms.attention / rates.attention + terms.pass * rates.passes;
}

// Rates of a kind of GPU from all rows that may be seen.
template <typename Seen>
StepRates rates_from(const std::vector<HeldOutStep>& all, const std::string& gpu,
                     const Seen& seen) {
  std::vector<MeasuredStep> rows;
  for (const HeldOutStep& one : all) {
    if (one.step->gpu == gpu && seen(one)) rows.push_back({one.terms, one.step->seconds});
  }
  return fit_rates(rows);
}

using RatesOf = std::function<StepRates(const HeldOutStep&)>;

Result<void> replay_all(std::vector<HeldOutStep>& steps, const RatesOf& rates, Reporter& reporter) {
  std::vector<ReplayedJob> jobs;
  jobs.reserve(steps.size());
  for (const HeldOutStep& one : steps) {
    jobs.push_back({one.step->job, gpu_id(*one.step), rates(one)});
  }
  RH_TRY(auto replayed, replayed_steps(jobs, reporter));
  for (size_t i = 0; i < steps.size(); ++i) steps[i].replayed = std::move(replayed[i]);
  return {};
}

// Rows of llm-foundry without their own model, those of torchtitan from all of llm-foundry. Twice: the first replay tells
// what is not work of kernels, then rates are fitted to the rest.
Result<void> replay_held_out(std::vector<HeldOutStep>& steps, Reporter& reporter) {
  const auto foundry = [](const HeldOutStep& one) { return one.step->family.empty(); };
  const RatesOf common = [&](const HeldOutStep& one) {
    return rates_from(steps, one.step->gpu, foundry);
  };
  if (auto done = replay_all(steps, common, reporter); !done) return done;
  const std::vector<HeldOutStep> first = steps;
  for (HeldOutStep& one : steps) {
    if (!one.replayed) continue;
    const StepRates rates = rates_from(first, one.step->gpu, foundry);
    one.terms.fixed = std::max(0.0, one.replayed->seconds - gpu_seconds(one.terms, rates));
  }
  std::map<std::pair<std::string, std::string>, StepRates> known;
  const RatesOf held_out = [&](const HeldOutStep& one) {
    const std::string model = foundry(one) ? one.step->model : "";
    const auto [at, fresh] = known.try_emplace({one.step->gpu, model});
    if (fresh) {
      at->second = rates_from(steps, one.step->gpu, [&](const HeldOutStep& other) {
        return foundry(other) && other.step->model != model;
      });
    }
    return at->second;
  };
  return replay_all(steps, held_out, reporter);
}

void note_rows(const char* name, const PublishedSteps& steps, Check& check) {
  std::string out = fmt::format("{}: {} rows", name, steps.steps.size());
  for (const auto& [why, n] : steps.left_out) out += fmt::format(", {} left out ({})", n, why);
  check.assumptions.push_back(out);
  for (const std::string& assumed : steps.assumptions) {
    check.assumptions.push_back(fmt::format("{}: {}", name, assumed));
  }
}

CheckRow row_of(const HeldOutStep& one) {
  const PublishedStep& step = *one.step;
  return {step.what,
          one.group,
          one.replayed->seconds,
          step.seconds,
          "s",
          step.source,
          synth_command({step.job, gpu_id(step), {}}),
          0,
          0};
}

// Rows that were replayed; the others with what stood in the way.
void add_rows(const std::vector<HeldOutStep>& steps, Check& check) {
  std::map<std::string, size_t> failed;
  for (const HeldOutStep& one : steps) {
    if (one.replayed) {
      check.rows.push_back(row_of(one));
    } else {
      ++failed[one.replayed.error().what];
    }
  }
  for (const auto& [why, n] : failed) {
    check.assumptions.push_back(fmt::format("{} rows are left out: {}", n, why));
  }
}

// Of what PyTorch's caching allocator reserves in jobs that compute activations again, the part that it cannot use: 15 % on
// average, up to 33 %, over eight language models on A100 (GMLake, ASPLOS 2024, https://arxiv.org/abs/2401.08156).
constexpr double kFragmented = .15;

// Memory where it is stated: what the allocator had reserved at its peak. There is no target for it.
void note_memory(const std::vector<HeldOutStep>& steps, Check& check) {
  std::vector<double> allocated, reserved;
  for (const HeldOutStep& one : steps) {
    if (one.replayed && one.step->memory > 0 && one.replayed->memory > 0) {
      allocated.push_back(one.replayed->memory / one.step->memory - 1);
      reserved.push_back(one.replayed->memory / (1 - kFragmented) / one.step->memory - 1);
    }
  }
  if (allocated.empty()) return;
  const ErrorSummary held = summarise(reserved);
  check.assumptions.push_back(fmt::format(
      "reserved memory is stated in {} rows of jobs that are generated whole: median error {:.0f} "
      "%, bias {:+.0f} % with {:.0f} % of it fragmented (GMLake, arXiv 2401.08156); "
      "allocated alone {:+.0f} %; not judged",
      reserved.size(), 100 * held.median, 100 * held.bias, 100 * kFragmented,
      100 * summarise(allocated).bias));
}

Check ranking_check(const PublishedSteps& megatron, Reporter& reporter) {
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
  std::vector<HeldOutStep> jobs;
  for (const auto& [family, layouts] : families) {
    if (layouts.size() < kFewestLayouts) continue;
    for (const auto& [layout, steps] : layouts) {
      jobs.push_back({steps.front(), family, terms_of(steps.front()->job)});
    }
  }
  const RatesOf priors = [](const HeldOutStep&) { return StepRates{}; };
  if (auto done = replay_all(jobs, priors, reporter); !done) {
    return skipped_check(check.id, check.what, done.error().what);
  }
  add_rows(jobs, check);
  double sum = 0, layouts_in_all = 0;
  std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> rankings;
  for (CheckRow& row : check.rows) {
    std::vector<double> times;
    for (const auto& [layout, steps] : families[row.group]) {
      if (steps.front()->what != row.what) continue;
      for (const PublishedStep* step : steps) times.push_back(step->seconds);
    }
    row.measured = quantile_of(times, .5);
    rankings[row.group].first.push_back(row.predicted);
    rankings[row.group].second.push_back(row.measured);
  }
  for (const auto& [family, both] : rankings) {
    const auto& [predicted, measured] = both;
    const double tau = kendall_tau(predicted, measured);
    check.assumptions.push_back(
        fmt::format("{}: tau {:.2f} over {} layouts", family, tau, predicted.size()));
    sum += tau * static_cast<double>(predicted.size());
    layouts_in_all += static_cast<double>(predicted.size());
  }
  check.value = layouts_in_all > 0 ? sum / layouts_in_all : 0;
  check.assumptions.push_back(
      "only the order is judged: these jobs are bound by a host whose speed is not stated (2 ms to "
      "issue a layer is assumed; a fifth more with context ranks, which the generator does not "
      "know)");
  judge_value(check);
  return check;
}

}  // namespace

std::vector<Check> step_checks(const fs::path& data, Reporter& reporter) {
  Check check;
  check.id = "step-times";
  check.what =
      "step time of stated layouts, generated and replayed: llm-foundry without the row's model, "
      "torchtitan";
  check.target = kStepTimeTarget;
  const auto foundry = llm_foundry_steps(data / "measured" / "llm_foundry_mpt.csv");
  if (!foundry) return {skipped_check(check.id, check.what, foundry.error().what)};
  note_rows("llm-foundry", *foundry, check);
  std::vector<HeldOutStep> steps;
  for (const PublishedStep& step : foundry->steps) {
    steps.push_back({&step, step.gpu + step.model, terms_of(step.job)});
  }
  const auto titan = torchtitan_steps(data / "measured" / "torchtitan.csv");
  if (titan) {
    note_rows("torchtitan", *titan, check);
    for (const PublishedStep& step : titan->steps) {
      steps.push_back({&step, "torchtitan " + step.model, terms_of(step.job)});
    }
  } else {
    check.assumptions.push_back("torchtitan: " + titan.error().what);
  }
  if (auto done = replay_held_out(steps, reporter); !done) {
    return {skipped_check(check.id, check.what, done.error().what)};
  }
  add_rows(steps, check);
  note_memory(steps, check);
  judge_median(check);
  std::vector<Check> out;
  out.push_back(std::move(check));
  out.push_back(layout_changes(out.front().rows));
  const auto megatron = megatron_steps(data / "measured" / "megatron_golden_iteration_times.csv");
  if (megatron) out.push_back(ranking_check(*megatron, reporter));
  return out;
}

}  // namespace rehearse::validation
