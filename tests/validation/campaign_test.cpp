// SPDX-License-Identifier: Apache-2.0
// Campaigns through the real engine; labelled slow.
#include "validation/blind/campaign.hpp"

#include <catch2/catch.hpp>

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
  request.faults = {"U99"};
  CHECK_FALSE(run_campaign(request, *catalogue, reporter));
}

}  // namespace rehearse::campaign_test
