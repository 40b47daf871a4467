// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

#include "base/install.hpp"
#include "faults/diagnose/observable.hpp"
#include "validation/blind/campaign.hpp"
#include "validation/blind/draw.hpp"
#include "validation/blind/hidden_world.hpp"

namespace rehearse::blind_test {
using namespace rehearse;
using namespace rehearse::validation;

namespace {

const faults::FaultCatalogue& catalogue() {
  static const auto loaded = faults::FaultCatalogue::load_shipped();
  REQUIRE(loaded);
  return *loaded;
}

pb::Outcome outcome_of(uint32_t ranks) {
  pb::Outcome out;
  out.set_verdict(pb::COMPLETED);
  out.set_ranks(ranks);
  for (int i = 0; i < 4; ++i) out.mutable_step_time_ns()->add_each(100'000'000);
  out.mutable_step_time_ns()->set_mean(100'000'000);
  for (uint32_t r = 0; r < ranks; ++r) {
    pb::RankBreakdown& rank = *out.add_breakdown();
    rank.set_rank(r);
    rank.set_step(100'000'000);
    rank.set_compute(80'000'000);
    rank.set_communication(15'000'000);
    rank.set_wait(5'000'000);
  }
  return out;
}

}  // namespace

TEST_CASE("every parameter of every fault is drawn within what it accepts", "[validation][blind]") {
  SilentReporter reporter;
  const auto job = sim::load_scenario("dlrm-8", reporter);
  REQUIRE(job);
  const DrawFrom from{.document = job->document, .duration = 1'000'000'000};
  for (const auto& entry : catalogue().entries()) {
    INFO(entry->fault.id());
    Random random(7, "draw"), again(7, "draw");
    const auto use = draw_use(entry, from, random);
    CHECK(use.text() == draw_use(entry, from, again).text());
    CHECK(faults::parse_fault(use.text(), catalogue()));
    std::set<std::string> texts;
    for (int i = 0; i < 12; ++i) texts.insert(draw_use(entry, from, random).text());
    const bool free = std::any_of(
        entry->fault.parameters().begin(), entry->fault.parameters().end(), [](const auto& p) {
          return p.kind() == pb::Parameter::RANK || p.kind() == pb::Parameter::MOMENT ||
                 !p.usual_from().empty();
        });
    CHECK((texts.size() > 1 || !free));
  }
}

TEST_CASE("faults outside the catalogue can be read and have no id of the catalogue",
          "[validation][blind]") {
  const auto folder = shipped("validation/blind/unknown");
  REQUIRE(folder);
  const std::filesystem::path folders[] = {*folder};
  const auto outside = faults::FaultCatalogue::load(folders);
  REQUIRE(outside);
  CHECK(outside->entries().size() >= 8);
  for (const auto& entry : outside->entries()) CHECK_FALSE(catalogue().find(entry->fault.id()));
}

TEST_CASE("measurements are noisy, deterministic for a seed and lose ranks",
          "[validation][blind]") {
  const pb::Outcome truth = outcome_of(64);
  Random one(3, "measurement"), same(3, "measurement"), other(4, "measurement");
  const pb::Outcome seen = measured(truth, {}, one);
  CHECK(seen.SerializeAsString() == measured(truth, {}, same).SerializeAsString());
  CHECK(seen.SerializeAsString() != measured(truth, {}, other).SerializeAsString());
  CHECK(seen.breakdown_size() < 64);
  CHECK(seen.breakdown_size() > 48);
  CHECK(seen.step_time_ns().mean() != 100'000'000);
  CHECK(static_cast<double>(seen.step_time_ns().mean()) == Approx(1e8).epsilon(0.03));
  for (const pb::RankBreakdown& rank : seen.breakdown()) {
    CHECK(rank.step() ==
          rank.compute() + rank.communication() + rank.wait() + rank.host() + rank.idle());
  }
}

TEST_CASE("the hidden machine is not the one of the model", "[validation][blind]") {
  SilentReporter reporter;
  const auto job = sim::load_scenario("dlrm-8", reporter);
  REQUIRE(job);
  const auto one = hidden(*job, 1), same = hidden(*job, 1), other = hidden(*job, 2);
  REQUIRE(one);
  REQUIRE(other);
  CHECK(one->document.SerializeAsString() == same->document.SerializeAsString());
  CHECK(one->document.platform().efficiency().SerializeAsString() !=
        other->document.platform().efficiency().SerializeAsString());
  CHECK(one->document.fidelity() == pb::STEP);
  CHECK(one->document.platform().nodes(0).gpus(0).speed() != 1);
}

TEST_CASE("figures of a campaign count each kind of run for what it shows", "[validation][blind]") {
  std::vector<pb::CampaignRun> runs(7);
  runs[0].set_fault("F60");
  runs[0].set_symptom_right(true);
  runs[0].set_place(1);
  runs[0].set_culprit_right(true);
  runs[0].set_fix_restores(true);
  runs[0].set_redrawn(2);
  runs[1].set_fault("F12");
  runs[1].set_by_rule(true);
  runs[1].set_unlisted(true);
  runs[1].set_refused(1);
  runs[1].set_place(3);
  runs[1].set_fix_restores(false);
  runs[2].set_truth(pb::CampaignRun::UNKNOWN);
  runs[2].set_called_unknown(true);
  runs[3].set_truth(pb::CampaignRun::HEALTHY);
  runs[3].set_seen_symptom("healthy");
  runs[4].set_truth(pb::CampaignRun::HEALTHY);
  runs[4].set_seen_symptom("D2.2");
  runs[5].set_fault("F62");
  runs[5].set_failed("no draw shows it");
  // Nothing shows where it is: neither right nor wrong, and counted apart.
  runs[6].set_fault("F79");
  runs[6].set_symptom_right(true);
  runs[6].set_place(1);
  runs[6].set_place_not_known(true);
  runs[6].set_fix_restores(true);
  const CampaignFigures figures = figures_of(runs);
  CHECK(figures.runs == 7);
  CHECK(figures.counted == 3);
  CHECK(figures.culprits == 1);
  CHECK(figures.not_known == 1);
  CHECK(figures.failed == 1);
  CHECK(figures.symptom == Approx(2.0 / 3));
  CHECK(figures.top1 == Approx(2.0 / 3));
  CHECK(figures.top3 == Approx(1));
  CHECK(figures.culprit == Approx(1));
  CHECK(figures.fix == Approx(2.0 / 3));
  CHECK(figures.false_alarms == Approx(0.5));
  CHECK(figures.unknown == Approx(1));
  CHECK(figures.unlisted == 1);
  CHECK(figures.redrawn == 2);
  CHECK(figures.refused == 1);
  const auto [simulated, by_rule] = by_grade(runs);
  CHECK(figures_of(simulated).counted == 2);
  CHECK(figures_of(simulated).top1 == Approx(1));
  CHECK(figures_of(by_rule).counted == 1);
  CHECK(figures_of(by_rule).top3 == Approx(1));
  CHECK(figures_of(by_rule).symptom == Approx(0));
}

}  // namespace rehearse::blind_test
