// SPDX-License-Identifier: Apache-2.0
// What must hold of a shrunk scenario, seen from outside: it fails for the cause of the whole one, also when it is read
// back from files, and without any single part it does not.
#pragma once

#include <catch2/catch.hpp>
#include <fstream>

#include "base/document.hpp"
#include "faults/shrink/shrink.hpp"
#include "faults/world.hpp"
#include "tests/temporary_folder.hpp"
#include "traces/model/rtrace.hpp"

namespace rehearse::tests {

inline pb::Outcome observe_run(const sim::Scenario& scenario) {
  SilentReporter silent;
  const auto rules = faults::Rules::load_shipped();
  if (!rules) FAIL(rules.error().message());
  auto outcome = sim::simulate(scenario, silent);
  if (!outcome) FAIL(outcome.error().message());
  faults::observe(scenario, *rules, nullptr, *outcome);
  return std::move(*outcome);
}

inline void check_shrunk(const sim::Scenario& scenario, const faults::Shrunk& shrunk) {
  using Kind = sim::Part::Kind;
  const auto same = [](uint32_t number) { return number; };
  const faults::FailureCause whole = faults::cause_of(observe_run(scenario), {same, same});
  CHECK(shrunk.minimal);
  CHECK(faults::same_cause(whole, shrunk.cause));
  SilentReporter silent;
  const TemporaryFolder folder;
  pb::Scenario document = shrunk.rendered.document;
  document.mutable_trace()->set_file("small.rtrace");
  REQUIRE(traces::write_rtrace(*shrunk.rendered.trace, folder.path / "small.rtrace",
                               Overwrite::kRefuse));
  std::ofstream(folder.path / "small.yaml") << write_document(document);
  const auto loaded = sim::load_scenario((folder.path / "small.yaml").string(), silent);
  if (!loaded) FAIL(loaded.error().message() + "\n" + write_document(document));
  const pb::Outcome again = observe_run(*loaded);
  CHECK(again.symptom().id() == shrunk.outcome.symptom().id());
  CHECK(again.verdict() == shrunk.outcome.verdict());
  CHECK(again.culprits_size() == shrunk.outcome.culprits_size());
  size_t tried = 0;
  for (const Kind kind :
       {Kind::kRank, Kind::kNode, Kind::kStep, Kind::kCollective, Kind::kOperation,
        Kind::kAllocation, Kind::kSetting, Kind::kVariable, Kind::kPatch}) {
    for (const sim::Part& part : sim::parts_of(shrunk.job, kind)) {
      const auto less = sim::without(shrunk.job, std::span(&part, 1));
      if (!less) continue;
      INFO("without " << name_of(kind) << " " << part.id << " " << part.name);
      const auto fails = faults::still_fails(*less, whole, silent);
      REQUIRE(fails);
      CHECK_FALSE(*fails);
      ++tried;
    }
  }
  CHECK(tried > 0);
}

}  // namespace rehearse::tests
