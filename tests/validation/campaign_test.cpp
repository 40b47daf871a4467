// SPDX-License-Identifier: Apache-2.0
// Campaigns through the real engine; labelled slow.
#include "validation/blind/campaign.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

namespace rehearse::campaign_test {
using namespace rehearse;
using namespace rehearse::validation;

TEST_CASE("a campaign gives the same rows on one core and on two, and finds its faults",
          "[validation][campaign]") {
  SilentReporter reporter;
  const auto catalogue = faults::FaultCatalogue::load_shipped();
  REQUIRE(catalogue);
  CampaignRequest request;
  request.faults = {"F40", "F41"};  // jobs with a pipeline only: few to prepare
  request.seeds = 1;
  const auto one = run_campaign(request, *catalogue, reporter);
  request.jobs = 2;
  const auto two = run_campaign(request, *catalogue, reporter);
  REQUIRE(one);
  REQUIRE(two);
  REQUIRE(one->size() == two->size());
  for (size_t i = 0; i < one->size(); ++i) {
    CHECK((*one)[i].SerializeAsString() == (*two)[i].SerializeAsString());
    INFO((*one)[i].use());
    CHECK((*one)[i].failed().empty());
    CHECK((*one)[i].place() >= 1);
    CHECK((*one)[i].place() <= 3);
  }
}

TEST_CASE("a campaign made in parts is the one made at once, and what is kept is not made again",
          "[validation][campaign]") {
  SilentReporter reporter;
  const auto catalogue = faults::FaultCatalogue::load_shipped();
  REQUIRE(catalogue);
  const auto folder = std::filesystem::temp_directory_path() / "rehearse-campaign-parts";
  std::filesystem::remove_all(folder);
  const auto kept = KeptRuns::open(folder, "this program");
  REQUIRE(kept);
  CampaignRequest request;
  request.faults = {"F40", "F41"};
  request.seeds = 2;
  const auto whole = run_campaign(request, *catalogue, reporter);
  REQUIRE(whole);
  REQUIRE(whole->size() == 4);

  request.kept = &*kept;
  request.parts = 2;
  const auto first = run_campaign(request, *catalogue, reporter);
  REQUIRE(first);
  CHECK(first->size() == 2);
  request.parts = 1;
  request.only_kept = true;
  const auto too_early = run_campaign(request, *catalogue, reporter);
  REQUIRE_FALSE(too_early);
  CHECK(too_early.error().code == Code::kMissingInput);
  CHECK(too_early.error().what == "2 of 4 runs have no result yet");

  request.only_kept = false;
  request.part = 1;
  request.parts = 2;
  REQUIRE(run_campaign(request, *catalogue, reporter));
  request.part = 0;
  request.parts = 1;
  request.only_kept = true;
  const auto merged = run_campaign(request, *catalogue, reporter);
  REQUIRE(merged);
  REQUIRE(merged->size() == whole->size());
  for (size_t k = 0; k < whole->size(); ++k) {
    CHECK((*merged)[k].SerializeAsString() == (*whole)[k].SerializeAsString());
  }
  // Another program's runs are not taken for this one's, and a damaged file is none.
  const auto others = KeptRuns::open(folder, "another program");
  REQUIRE(others);
  request.kept = &*others;
  CHECK_FALSE(run_campaign(request, *catalogue, reporter));
  request.kept = &*kept;
  for (const auto& file : std::filesystem::directory_iterator(folder / "runs")) {
    std::ofstream(file.path()) << "truth: [";
    break;
  }
  const auto damaged = run_campaign(request, *catalogue, reporter);
  REQUIRE_FALSE(damaged);
  CHECK(damaged.error().what == "1 of 4 runs have no result yet");
  std::filesystem::remove_all(folder);
}

TEST_CASE("two faults at once are both looked for", "[validation][campaign]") {
  SilentReporter reporter;
  const auto catalogue = faults::FaultCatalogue::load_shipped();
  REQUIRE(catalogue);
  CampaignRequest request;
  request.faults = {"F40", "F41"};
  request.compound = 2;
  const auto runs = run_campaign(request, *catalogue, reporter);
  REQUIRE(runs);
  REQUIRE(runs->size() == 2);
  CHECK((*runs)[0].fault() == "F40+F41");
  CHECK((*runs)[0].use().find(' ') != std::string::npos);
}

TEST_CASE("a fault outside the catalogue can be asked for by its id", "[validation][campaign]") {
  SilentReporter reporter;
  const auto catalogue = faults::FaultCatalogue::load_shipped();
  REQUIRE(catalogue);
  CampaignRequest request;
  request.faults = {"U06"};
  request.blind = true;
  const auto runs = run_campaign(request, *catalogue, reporter);
  REQUIRE(runs);
  REQUIRE(runs->size() == 1);
  CHECK((*runs)[0].fault() == "U06");
  CHECK((*runs)[0].truth() == pb::CampaignRun::UNKNOWN);
  CHECK((*runs)[0].called_unknown());
  // A setting that no cause has is not explained by two of them either.
  request.seeds = 4;
  request.seed = 20261119;
  const auto more = run_campaign(request, *catalogue, reporter);
  REQUIRE(more);
  CHECK(more->size() == 4);
  for (const pb::CampaignRun& run : *more) {
    INFO(run.use() << " on " << run.job());
    CHECK(run.called_unknown());
  }
  request.faults = {"U99"};
  CHECK_FALSE(run_campaign(request, *catalogue, reporter));
}

}  // namespace rehearse::campaign_test
