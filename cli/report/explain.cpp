// SPDX-License-Identifier: Apache-2.0
#include "cli/report/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/units.hpp"
#include "faults/fix/fix.hpp"
#include "faults/symptoms/classifier.hpp"
#include "validation/certainty/band.hpp"

namespace rehearse::cli {
namespace {

// Operations that all runs of a report may have together: some ten seconds of a core for a scenario, some four beside an
// outcome that is there already.
constexpr double kOperationsAsked = 60e6, kOperationsBeside = 24e6;
// Fewer runs than this find few causes.
constexpr double kFewestRuns = 20;
constexpr uint32_t kDraws = 20;     // as `fix` takes
constexpr uint32_t kSetsDrawn = 5;  // the job as it should be, as it is, and with three fixes

// Counts runs; what happens inside of one is not told.
class RunCounter final : public Reporter {
 public:
  RunCounter(Reporter& outer, uint64_t total) : outer_(outer), total_(total) {}
  void progress(std::string_view, uint64_t, uint64_t) override {}
  void note(std::string_view text) override { outer_.note(text); }
  [[nodiscard]] bool interrupted() const override { return outer_.interrupted(); }
  void count() {
    ++done_;
    outer_.progress("runs to find the cause", done_, std::max(done_, total_));
  }

 private:
  Reporter& outer_;
  uint64_t done_ = 0, total_;
};

// Ranges of the step time: as it should be, as it is, with the best fixes.
Result<void> add_ranges(const Case& what, uint32_t runs, Context& context, ReportRun& run) {
  uint32_t sets = std::min(runs / kDraws, kSetsDrawn);
  if (sets < 2 || !run.fixes) return {};
  RH_TRY(const validation::Drawing drawing,
         validation::drawing_of(what.calibration ? &*what.calibration : nullptr,
                                what.healthy.document, kDraws));
  if (sets > 2 && what.baseline.verdict() == pb::COMPLETED) {
    --sets;
    RH_TRY(run.baseline_band,
           validation::step_time_band(what.healthy, what.healthy, drawing, context.reporter()));
  }
  return validation::add_certainty(*what.broken, drawing, static_cast<int>(sets) - 1,
                                   context.reporter(), *run.fixes);
}

// Of the job that an outcome is of; one that never started has no pictures that tell.
Result<size_t> operations_of(const ReportRun& run, Reporter& reporter) {
  if (run.pictures.operations() > 0) return run.pictures.operations();
  const std::string folder = std::filesystem::path(run.file).parent_path().string();
  RH_TRY(const sim::Scenario scenario, sim::load_origin(run.outcome.origin(), folder, reporter));
  return scenario.trace->operations();
}

bool wants_causes(const ReportRun& run) {
  return !run.diagnosis && !run.fixes && !run.outcome.symptom().id().empty() &&
         run.outcome.symptom().id() != faults::kHealthy;
}

}  // namespace

ExplainBudget explain_budget(size_t operations, Explained how, double share) {
  const bool asked = how == Explained::kAsked;
  double runs = share * (asked ? kOperationsAsked : kOperationsBeside) /
                static_cast<double>(std::max<size_t>(operations, 1));
  if (runs < kFewestRuns && !asked) return {};
  runs = std::max(runs, kFewestRuns);
  ExplainBudget out;
  out.causes = static_cast<uint32_t>(std::min(runs, static_cast<double>(kMostRuns)));
  out.ranges = static_cast<uint32_t>(std::min(runs - out.causes, 1.0 * kSetsDrawn * kDraws));
  return out;
}

Result<void> explain(const Case& what, const ExplainBudget& budget, Context& context,
                     ReportRun& run) {
  RunCounter counter(context.reporter(), budget.causes);
  faults::World world = faults::simulated_world(counter);
  world.simulate = [simulate = world.simulate, &counter](const sim::Scenario& scenario) {
    counter.count();
    return simulate(scenario);
  };
  // Half of them for one cause, half for two.
  RH_TRY(run.diagnosis, diagnose(what, world, (budget.causes + 1) / 2));
  if (!what.broken) return {};
  RH_TRY(const auto categories, faults::Categories::load_shipped());
  RH_TRY(const auto groups, likely_causes(*run.diagnosis, what.catalogue));
  std::vector<faults::FaultUse> causes;
  for (const auto& group : groups) causes.insert(causes.end(), group.begin(), group.end());
  RH_TRY(run.fixes, faults::try_fixes({.broken = *what.broken,
                                       .outcome = what.evidence,
                                       .baseline = what.baseline,
                                       .candidates = causes,
                                       .categories = categories},
                                      world));
  return add_ranges(what, budget.ranges, context, run);
}

Result<void> explain_outcomes(Context& context, Report& report) {
  const auto wanted = std::ranges::count_if(report.runs, wants_causes);
  for (ReportRun& run : report.runs) {
    if (!wants_causes(run) || run.outcome.origin().scenario().empty()) continue;
    const double share = 1.0 / static_cast<double>(wanted);
    const auto operations = operations_of(run, context.reporter());
    if (!operations) {
      if (operations.error().code == Code::kInterrupted) return tl::unexpected(operations.error());
      run.unexplained = operations.error().what;
      continue;
    }
    const ExplainBudget budget = explain_budget(*operations, Explained::kBeside, share);
    if (budget.causes == 0) {
      run.unexplained = fmt::format(
          "a run of {} operations takes too long to be simulated again and again beside the report",
          format_count(*operations));
      continue;
    }
    const auto what = case_of(run.outcome, run.file, context);
    auto done = what ? explain(*what, budget, context, run) : tl::unexpected(what.error());
    if (done) continue;
    if (done.error().code == Code::kInterrupted) return done;
    // A report is of the outcome; what else can be said is a gift.
    run.unexplained = done.error().what;
    run.diagnosis.reset();
    run.fixes.reset();
  }
  return {};
}

}  // namespace rehearse::cli
