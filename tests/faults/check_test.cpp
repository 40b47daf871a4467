// SPDX-License-Identifier: Apache-2.0
#include "faults/check/check.hpp"

#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "base/atomic_file.hpp"
#include "base/document.hpp"
#include "base/install.hpp"
#include "faults/check/apply.hpp"
#include "sim/scenario/scenario.hpp"
#include "tests/faults/check_cases.pb.h"
#include "tests/temporary_folder.hpp"

namespace rehearse::check_test {
using namespace rehearse;
using namespace rehearse::faults;

namespace {

const Rules& rules() {
  static const auto loaded = Rules::load_shipped();
  if (!loaded) FAIL(loaded.error().message());
  return *loaded;
}

pb::Scenario document_of(const std::string& name) {
  SilentReporter reporter;
  const auto scenario = sim::load_scenario(name, reporter);
  if (!scenario) FAIL(scenario.error().message());
  return scenario->document;
}

std::string summary(const pb::CheckReport& report) {
  std::string out;
  for (const pb::CheckFinding& finding : report.findings()) {
    out += finding.severity() + " " + finding.rule() + " @ " + finding.where() + ": " +
           finding.what() + "\n";
  }
  return out;
}

}  // namespace

TEST_CASE("shipped rules load, are many and cover what cannot be simulated", "[faults][check]") {
  CHECK(rules().all().size() >= 60);
  std::set<std::string> categories;
  for (const Rule& rule : rules().all()) {
    categories.insert(rule.text.category());
    if (rule.text.severity() == pb::CheckRule::ERROR) {
      INFO(rule.text.id());
      CHECK_FALSE(rule.text.why().empty());
    }
  }
  for (const pb::Requirement& row : rules().tables().requirements()) {
    categories.insert(row.category());
    CHECK_FALSE(row.source().empty());
  }
  for (const char* id : {"A1", "A2", "C1", "C5", "D1.3", "D1.8", "D1.11", "D2.4", "D2.5"}) {
    INFO(id);
    CHECK(categories.count(id) == 1);
  }
}

TEST_CASE("healthy jobs of every framework raise neither errors nor warnings", "[faults][check]") {
  const auto shipped = sim::shipped_scenarios();
  REQUIRE(shipped);
  for (const sim::ShippedScenario& scenario : *shipped) {
    const pb::CheckReport report = check(document_of(scenario.name), rules(), scenario.name);
    INFO(scenario.name << "\n" << summary(report));
    for (const pb::CheckFinding& finding : report.findings()) CHECK(finding.severity() == "info");
  }
}

TEST_CASE("a broken configuration shows the right rule first, and its fix removes it",
          "[faults][check]") {
  pb::CheckCases table;
  const auto tests_folder = shipped("tests");
  REQUIRE(tests_folder);
  const auto read = read_document_file((*tests_folder / "faults/check_cases.yaml").string(), table);
  if (!read) FAIL(read.error().message());
  std::set<std::string> tried;
  for (const pb::CheckCase& row : table.cases()) tried.insert(row.rule());
  for (const Rule& rule : rules().all()) {
    INFO(rule.text.id() << " has no case");
    CHECK(tried.count(rule.text.id()) == 1);
  }
  std::map<std::string, pb::Scenario> healthy;
  for (const pb::CheckCase& row : table.cases()) {
    if (healthy.count(row.scenario()) == 0) healthy[row.scenario()] = document_of(row.scenario());
    pb::Scenario broken = healthy[row.scenario()];
    const std::map<std::string, std::string> sorted(row.set().begin(), row.set().end());
    for (const auto& [path, value] : sorted) {
      const auto done = set_path(broken, path, value);
      if (!done) FAIL(row.rule() << ": " << done.error().message());
    }
    const pb::CheckReport report = check(broken, rules(), row.scenario());
    INFO(row.rule() << "\n" << summary(report));
    REQUIRE(report.findings_size() > 0);
    CHECK(report.findings(0).rule() == row.rule());
    // A fix that is a change of configuration makes the finding go away.
    if (report.findings(0).set().empty()) continue;
    for (const auto& [path, value] : report.findings(0).set()) {
      const auto done = set_path(broken, path, value);
      if (!done) FAIL(row.rule() << " " << path << ": " << done.error().message());
    }
    const pb::CheckReport again = check(broken, rules(), row.scenario());
    INFO("after the fix:\n" << summary(again));
    for (const pb::CheckFinding& finding : again.findings()) {
      CHECK(finding.rule() + finding.where() + finding.what() !=
            report.findings(0).rule() + report.findings(0).where() + report.findings(0).what());
    }
  }
}

TEST_CASE("fixes are written into the scenario as one more patch", "[faults][check]") {
  const tests::TemporaryFolder folder;
  const auto file = (folder.path / "job.yaml").string();
  const std::string text =
      "name: job\n"
      "trace: ddp-16\n"
      "platform: {like: dgx-a100, scale: 2}\n"
      "patches:\n"
      "- set: {launch.env.NCCL_IB_DISABLE: \"1\"}\n"
      "seed: 3\n";
  REQUIRE(write_file(file, text, Overwrite::kRefuse));
  const pb::CheckReport before = check(document_of(file), rules(), "job");
  INFO(summary(before));
  REQUIRE(before.findings_size() > 0);
  CHECK(before.findings(0).rule() == "infiniband-disabled");
  const auto repaired = repaired_scenario(file, before);
  REQUIRE(repaired);
  REQUIRE(write_file(file, *repaired, Overwrite::kReplace));
  const pb::CheckReport after = check(document_of(file), rules(), "job");
  INFO(*repaired << summary(after));
  for (const pb::CheckFinding& finding : after.findings()) CHECK(finding.severity() == "info");
}

TEST_CASE("rules that make no sense are refused with their place", "[faults][check]") {
  struct Slip {
    std::string rule, says;
  };
  const std::string head =
      "rules:\n- id: x\n  severity: error\n  category: B1\n  what: w\n  fix: f\n";
  const Slip slips[] = {
      {head + "  when: ranks ==\n", "a name or value expected at the end"},
      {head + "  when: rnks == 2\n", "'rnks' is not a fact of job"},
      {head + "  when: olden(nccl_version, '2')\n", "did you mean older"},
      {head + "  when: older(nccl_version)\n", "older takes 2 values, not 1"},
      {head + "  when: NCCL_ALGO matches '('\n", "not a regular expression"},
      {head + "  when: set(NCCL_ALGO)\n  each: planet\n", "nothing called 'planet'"},
      {"rules:\n- id: x\n  severity: error\n  category: Z9\n  what: w\n  fix: f\n  when: 1 == 1\n",
       "no symptom category 'Z9'"},
      {head + "  when: (1 == 1\n", ") expected"},
      {head, "a rule has when, what and fix"},
  };
  for (const Slip& slip : slips) {
    Rules mine;
    const auto added = mine.add(slip.rule, "own.yaml");
    INFO(slip.rule);
    REQUIRE_FALSE(added);
    INFO(added.error().message());
    CHECK(added.error().message().find(slip.says) != std::string::npos);
    CHECK(added.error().where.find("own.yaml:2") == 0);
  }
}

}  // namespace rehearse::check_test
