// SPDX-License-Identifier: Apache-2.0
#include "faults/coverage.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/document.hpp"
#include "base/install.hpp"
#include "faults/fault_use.hpp"
#include "faults/symptoms/classifier.hpp"

namespace rehearse::faults {
namespace {

constexpr const char* kUsualScenario = "ddp-16";

struct Healthy {
  sim::Scenario scenario;
  pb::Outcome outcome;
};

Result<pb::Outcome> run_fault(const Healthy& healthy, const FaultUse& use, const World& world) {
  sim::Scenario broken = healthy.scenario;
  RH_TRY(const auto patches, patches_of(use, broken.document));
  for (const pb::Patch& patch : patches) {
    if (auto applied = world.apply(broken, patch); !applied) return tl::unexpected(applied.error());
  }
  return world.simulate(broken);
}

// Higher is better simulated.
int grade_rank(const std::string& grade) {
  return grade == "full" ? 3 : grade == "partly" ? 2 : grade == "by-rule" ? 1 : 0;
}

std::string grade_word(pb::Fault::Grade grade) {
  return grade == pb::Fault::FULL ? "full" : grade == pb::Fault::PARTLY ? "partly" : "by-rule";
}

}  // namespace

Result<pb::FaultRuns> run_all(const FaultCatalogue& catalogue, const World& world,
                              Reporter& reporter) {
  pb::FaultRuns out;
  std::map<std::string, Healthy> healthy;
  uint64_t done = 0;
  for (const auto& entry : catalogue.entries()) {
    reporter.progress("faults", done++, catalogue.entries().size());
    if (reporter.interrupted()) return fail(Code::kInterrupted, "interrupted");
    const std::string name =
        entry->fault.scenario().empty() ? kUsualScenario : entry->fault.scenario();
    if (healthy.count(name) == 0) {
      RH_TRY(sim::Scenario scenario, sim::load_scenario(name, reporter));
      RH_TRY(pb::Outcome outcome, world.simulate(scenario));
      healthy[name] = {std::move(scenario), std::move(outcome)};
    }
    const Healthy& base = healthy[name];
    pb::FaultRun& run = *out.add_runs();
    run.set_fault(entry->fault.id());
    run.set_scenario(name);
    auto outcome = run_fault(base, with_defaults(entry), world);
    if (!outcome) {
      if (outcome.error().code == Code::kInterrupted) return tl::unexpected(outcome.error());
      run.set_refused(outcome.error().message());
      continue;
    }
    *outcome->mutable_baseline_step_time_ns() = base.outcome.step_time_ns();
    run.set_verdict(outcome->verdict());
    run.set_symptom(classify(*outcome).id());
    const int64_t before = base.outcome.step_time_ns().mean(),
                  after = outcome->step_time_ns().mean();
    if (outcome->verdict() == pb::COMPLETED && before > 0 && after > 0) {
      run.set_slowdown(
          std::round(1000.0 * static_cast<double>(after) / static_cast<double>(before)) / 1000.0);
    }
  }
  return out;
}

Result<pb::FaultRuns> shipped_runs() {
  RH_TRY(const auto path, shipped("faults/coverage.yaml"));
  pb::FaultRuns out;
  if (auto read = read_document_file(path.string(), out); !read)
    return tl::unexpected(read.error());
  return out;
}

pb::Coverage coverage(const pb::FaultRuns& runs, const FaultCatalogue& catalogue,
                      const Rules& rules, const Categories& categories) {
  pb::Coverage out;
  out.set_schema("rehearse.coverage/1");
  std::map<std::string, std::set<std::string>> warned;  // by category: rules
  for (const Rule& rule : rules.all()) {
    if (rule.text.category().find('{') == std::string::npos)
      warned[rule.text.category()].insert(rule.text.id());
  }
  for (const pb::Requirement& row : rules.tables().requirements())
    warned[row.category()].insert("requirement-not-met");
  for (const pb::SymptomCategory& category : categories.table().categories()) {
    pb::CategoryCoverage& row = *out.add_categories();
    row.set_id(category.id());
    row.set_label(category.label());
    row.set_count(category.count());
    for (const pb::FaultRun& run : runs.runs()) {
      if (run.symptom() != category.id()) continue;
      const auto entry = catalogue.find(run.fault());
      if (!entry) continue;
      *row.add_faults() = run;
      const std::string grade = grade_word((*entry)->fault.grade());
      if (grade_rank(grade) > grade_rank(row.grade())) row.set_grade(grade);
    }
    for (const std::string& rule : warned[category.id()]) row.add_rules(rule);
    if (row.grade().empty() && row.rules_size() > 0) row.set_grade("by-rule");
    row.set_reached(row.faults_size() > 0 || row.rules_size() > 0);
  }
  return out;
}

}  // namespace rehearse::faults
