// SPDX-License-Identifier: Apache-2.0
#include "faults/fix/fix.hpp"

#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "tests/faults/small_world.hpp"

namespace rehearse::fix_test {
using namespace rehearse;
using namespace rehearse::faults;

namespace {

// Uses of faults that a second look finds.
using Seen = std::function<std::vector<std::string>(const sim::Scenario&, const pb::Outcome&)>;

// The fixes of `tried` against a job broken by all of `injected`.
pb::FixReport fixes_for(const std::vector<std::string>& injected,
                        const std::vector<std::string>& tried, const std::vector<OwnFix>& own = {},
                        const Seen& seen = {}) {
  const auto catalogue = FaultCatalogue::load_shipped();
  const auto categories = Categories::load_shipped();
  REQUIRE(catalogue);
  REQUIRE(categories);
  const World world = testing::small_world();
  const sim::Scenario healthy = testing::small_scenario();
  sim::Scenario broken = healthy;
  for (const std::string& text : injected) {
    const auto patches = patches_of(*parse_fault(text, *catalogue), broken.document);
    REQUIRE(patches);
    for (const pb::Patch& patch : *patches) REQUIRE(world.apply(broken, patch));
  }
  std::vector<FaultUse> uses;
  for (const std::string& text : tried) uses.push_back(*parse_fault(text, *catalogue));
  const pb::Outcome outcome = *world.simulate(broken), baseline = *world.simulate(healthy);
  LookAgain again;
  if (seen) {
    again = [&](const sim::Scenario& repaired,
                const pb::Outcome& left) -> Result<std::vector<FaultUse>> {
      std::vector<FaultUse> out;
      for (const std::string& text : seen(repaired, left)) {
        out.push_back(*parse_fault(text, *catalogue));
      }
      return out;
    };
  }
  const auto report = try_fixes({.broken = broken,
                                 .outcome = outcome,
                                 .baseline = baseline,
                                 .candidates = uses,
                                 .categories = *categories,
                                 .own = own,
                                 .look_again = again},
                                world);
  REQUIRE(report);
  return *report;
}

}  // namespace

TEST_CASE("the fix of the injected fault restores the baseline and comes first", "[faults][fix]") {
  const pb::FixReport report = fixes_for({"F16:node=1"}, {"F37:node=1", "F16:node=1"});
  REQUIRE(report.fixes_size() == 2);
  const pb::FixTrial& best = report.fixes(0);
  CHECK(best.fault() == "F16");
  CHECK(best.restores());
  CHECK(best.symptom().id() == "healthy");
  CHECK(best.step_time_ns() == 120'000'000);
  CHECK(best.recovered_ns() == 140'000'000);
  CHECK(best.paper_count() == 1);
  CHECK(best.band() == "unvalidated");
  CHECK(best.change().find("NCCL_IB_DISABLE") != std::string::npos);
  CHECK_FALSE(report.fixes(1).restores());
  CHECK(report.fixes(1).recovered_ns() == 0);
}

TEST_CASE("the right fix at the wrong place does not restore", "[faults][fix]") {
  const pb::FixReport report = fixes_for({"F16:node=1"}, {"F16:node=0"});
  REQUIRE(report.fixes_size() == 1);
  CHECK_FALSE(report.fixes(0).restores());
}

TEST_CASE("a balanced stage does not repair one slow rank of it", "[faults][fix]") {
  const pb::FixReport report =
      fixes_for({"F60:rank=3,factor=3"}, {"F40:ranks=0-7", "F60:rank=3,factor=3"});
  REQUIRE(report.fixes_size() == 2);
  CHECK(report.fixes(0).fault() == "F60");
  CHECK(report.fixes(0).restores());
  CHECK_FALSE(report.fixes(1).restores());
}

TEST_CASE("a hang is repaired by taking the program's slip back", "[faults][fix]") {
  const pb::FixReport report =
      fixes_for({"F21:rank=5,nth=3"}, {"F21:rank=4,nth=3", "F21:rank=5,nth=3"});
  REQUIRE(report.fixes_size() == 2);
  CHECK(report.fixes(0).use() == "F21:rank=5,nth=3");
  CHECK(report.fixes(0).restores());
  CHECK_FALSE(report.fixes(0).has_recovered_ns());
  CHECK(report.fixes(0).has_step_time_ns());
  CHECK_FALSE(report.fixes(1).restores());
  CHECK_FALSE(report.fixes(1).has_step_time_ns());
  CHECK_FALSE(report.has_broken_step_time_ns());
}

TEST_CASE("every fault that slows the small world is undone by its own fix", "[faults][fix]") {
  for (const char* fault : {"F16", "F37", "F60:rank=11,factor=3", "F62", "F65:node=0,nic=5"}) {
    INFO(fault);
    const pb::FixReport report = fixes_for({fault}, {fault});
    REQUIRE(report.fixes_size() >= 1);
    CHECK(report.fixes(0).restores());
    CHECK(report.fixes(0).recovered_ns() > 0);
  }
}

TEST_CASE("two faults at once need two fixes together", "[faults][fix]") {
  const std::vector<std::string> both = {"F16:node=1", "F60:rank=11,factor=3"};
  const pb::FixReport report = fixes_for(both, both);
  REQUIRE(report.fixes_size() >= 3);
  const pb::FixTrial& best = report.fixes(0);
  CHECK(best.fault() == "F16+F60");
  CHECK(best.use() == "F16:node=1 + F60:rank=11,factor=3");
  CHECK(best.restores());
  CHECK(best.change().find("NCCL_IB_DISABLE") != std::string::npos);
  CHECK(best.patches_size() >= 2);
  // What each alone gives back is said.
  REQUIRE(best.alone_size() == 2);
  CHECK(best.alone(0).find("F16:node=1) alone gives back 140") != std::string::npos);
  CHECK(best.alone(1).find("F60:rank=11,factor=3) alone gives back 200") != std::string::npos);
  for (int i = 1; i < report.fixes_size(); ++i) CHECK_FALSE(report.fixes(i).restores());
  CHECK(report.simulations() > 2);
}

TEST_CASE("what the best fix leaves is looked at again and repaired on top of it",
          "[faults][fix]") {
  const std::vector<std::string> both = {"F16:node=1", "F60:rank=11,factor=3"};
  // The diagnosis saw one of the two only.
  CHECK_FALSE(fixes_for(both, {"F16:node=1"}).fixes(0).restores());
  int looks = 0;
  const pb::FixReport report =
      fixes_for(both, {"F16:node=1"}, {}, [&](const sim::Scenario&, const pb::Outcome& left) {
        ++looks;
        // All-reduce is as fast as ever, and a rank computes three times as long.
        CHECK(left.step_time_ns().mean() == 320'000'000);
        return std::vector<std::string>{"F60:rank=11,factor=3"};
      });
  CHECK(looks == 1);
  const pb::FixTrial& best = report.fixes(0);
  CHECK(best.restores());
  CHECK(best.use() == "F16:node=1 + F60:rank=11,factor=3");
  REQUIRE(best.alone_size() == 2);
  CHECK(best.alone(0).find("F16:node=1) alone gives back 140") != std::string::npos);
  CHECK(best.alone(1).find("F60:rank=11,factor=3) is what the job shows after the first") !=
        std::string::npos);
  // Nobody looks again where the job is restored, nor after a fix that changes nothing.
  CHECK(fixes_for({"F16:node=1"}, {"F16:node=1"}, {},
                  [&](const auto&, const auto&) {
                    ++looks;
                    return std::vector<std::string>{};
                  })
            .fixes(0)
            .restores());
  CHECK_FALSE(fixes_for(both, {"F37:node=1"}, {},
                        [&](const auto&, const auto&) {
                          ++looks;
                          return std::vector<std::string>{};
                        })
                  .fixes(0)
                  .restores());
  CHECK(looks == 1);
}

TEST_CASE("a pair is not tried where one fix is enough", "[faults][fix]") {
  const pb::FixReport report = fixes_for({"F16:node=1"}, {"F37:node=1", "F16:node=1"});
  for (const pb::FixTrial& fix : report.fixes()) CHECK(fix.fault().find('+') == std::string::npos);
}

TEST_CASE("fixes that change the same are tried once", "[faults][fix]") {
  const pb::FixReport report = fixes_for({"F16:node=1"}, {"F16:node=1", "F16:node=1"});
  CHECK(report.fixes_size() == 1);
  CHECK(report.simulations() == 1);
}

TEST_CASE("a fix of one's own is checked as it is", "[faults][fix]") {
  pb::Patch right, wrong;
  (*right.mutable_set())["launch.ranks[node=1].env.NCCL_IB_DISABLE"] = "0";
  (*wrong.mutable_set())["launch.ranks[node=0].env.NCCL_IB_DISABLE"] = "0";
  const pb::FixReport good = fixes_for({"F16:node=1"}, {}, {{"NCCL_IB_DISABLE=0", {right}}});
  REQUIRE(good.fixes_size() == 1);
  CHECK(good.fixes(0).own());
  CHECK(good.fixes(0).change() == "NCCL_IB_DISABLE=0");
  CHECK(good.fixes(0).restores());
  CHECK_FALSE(fixes_for({"F16:node=1"}, {}, {{"elsewhere", {wrong}}}).fixes(0).restores());
}

TEST_CASE("a fix that cannot be tried is listed last with the reason", "[faults][fix]") {
  const auto catalogue = FaultCatalogue::load_shipped();
  const auto categories = Categories::load_shipped();
  REQUIRE(catalogue);
  REQUIRE(categories);
  World world = testing::small_world();
  const sim::Scenario healthy = testing::small_scenario();
  const pb::Outcome outcome = *world.simulate(healthy);
  const auto real = world.apply;
  world.apply = [real](sim::Scenario& scenario, const pb::Patch& patch) -> Result<void> {
    if (patch.set().count("launch.env.NCCL_ALGO")) return fail(Code::kBadInput, "not today");
    return real(scenario, patch);
  };
  const std::vector<FaultUse> uses{*parse_fault("F33", *catalogue),
                                   *parse_fault("F34", *catalogue)};
  const auto report = try_fixes({.broken = healthy,
                                 .outcome = outcome,
                                 .baseline = outcome,
                                 .candidates = uses,
                                 .categories = *categories},
                                world);
  REQUIRE(report);
  REQUIRE(report->fixes_size() == 2);
  CHECK(report->fixes(0).refused().empty());
  CHECK(report->fixes(1).fault() == "F33");
  CHECK(report->fixes(1).refused() == "not today");
}

}  // namespace rehearse::fix_test
