// SPDX-License-Identifier: Apache-2.0
// A log that says what we decide is confirmed; one that contradicts is told so, fact by fact.
#include "validation/nccl_log.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "base/install.hpp"
#include "platforms/model/catalogue.hpp"
#include "tests/project.hpp"
#include "tests/skip.hpp"
#include "traces/evidence/evidence.hpp"

namespace rehearse::nccl_log_test {
using namespace rehearse;
using validation::check_log;
using validation::LogReport;

namespace {

pb::Platform machine(const char* id) {
  const auto folder = shipped("platforms/catalogue");
  REQUIRE(folder);
  auto found = platforms::PlatformCatalogue(*folder).platform(id);
  REQUIRE(found);
  return std::move(*found);
}

std::vector<pb::NcclLog> logs_of(const std::filesystem::path& file) {
  Findings findings;
  SilentReporter silent;
  const auto evidence = traces::read_evidence(file, findings, silent);
  if (!evidence) FAIL(evidence.error().message());
  std::vector<pb::NcclLog> out;
  for (const pb::Evidence& e : *evidence) {
    if (e.has_nccl_log()) out.push_back(e.nccl_log());
  }
  return out;
}

pb::NcclLog two_h100() {
  const auto logs = logs_of(tests::project() / "tests/corpus/nccl_log/h100-2gpu.log");
  REQUIRE(logs.size() == 1);
  return logs[0];
}

LogReport report_of(const pb::NcclLog& log, const char* platform,
                    const std::map<std::string, std::string>& env = {}) {
  const pb::Platform at = machine(platform);
  auto report = check_log(log, {at, env});
  if (!report) FAIL(report.error().message());
  return std::move(*report);
}

bool tells(const LogReport& report, const std::string& what) {
  return std::any_of(report.differences.begin(), report.differences.end(), [&](const auto& d) {
    return d.what.find(what) != std::string::npos && !d.why.empty();
  });
}

}  // namespace

TEST_CASE("a log of two H100 confirms channels, transports, rings and choices", "[validation]") {
  const LogReport report = report_of(two_h100(), "hgx-h100");
  CHECK(report.communicators == 1);
  CHECK(report.compared() >= 28);
  CHECK(report.mismatches() == 0);
}

TEST_CASE("a log that contradicts our decisions is told so with a reason", "[validation]") {
  pb::NcclLog log = two_h100();
  pb::NcclCommunicator& c = *log.mutable_communicators(0);
  c.set_coll_channels(8);
  c.mutable_connections(0)->set_transport("SHM");
  c.mutable_connections(0)->set_via("SHM/direct/direct");
  c.mutable_choices(0)->set_algorithm("Tree");
  c.mutable_choices(1)->set_channel_hi(7);
  pb::NcclTuningCell& cell = *c.add_tuning();
  cell.set_collective("all_reduce");
  cell.set_algorithm("Ring");
  cell.set_protocol("Simple");
  cell.set_latency_us(15.2);
  cell.set_bandwidth(36.0);
  const LogReport report = report_of(log, "hgx-h100");
  CHECK(tells(report, "collective channels"));
  CHECK(tells(report, "transport inside nodes"));
  CHECK(tells(report, "all_reduce of 268435456 bytes"));
  CHECK(tells(report, "all_reduce of 1073741824 bytes"));
  CHECK(tells(report, "all_reduce Ring/Simple"));
  CHECK(report.mismatches() == report.differences.size());
}

TEST_CASE("a ring whose line was cut is left out and said", "[validation]") {
  pb::NcclLog log = two_h100();
  REQUIRE(log.communicators(0).rings_size() > 1);
  log.mutable_communicators(0)->mutable_rings(1)->mutable_ranks()->RemoveLast();
  const LogReport report = report_of(log, "hgx-h100");
  CHECK(report.mismatches() == 0);
  CHECK(report.compared() == report_of(two_h100(), "hgx-h100").compared() - 1);
  CHECK(std::any_of(report.assumed.begin(), report.assumed.end(),
                    [](const std::string& each) { return each.find("cut") != each.npos; }));
}

TEST_CASE("another machine and another environment contradict the log", "[validation]") {
  CHECK(report_of(two_h100(), "dgx1-v100").mismatches() > 0);
  CHECK(tells(report_of(two_h100(), "hgx-h100", {{"NCCL_ALGO", "Tree"}}), "all_reduce of"));
}

TEST_CASE("an algorithm that the tuning table shows alone is taken as forced", "[validation]") {
  pb::NcclLog log = two_h100();
  pb::NcclCommunicator& c = *log.mutable_communicators(0);
  c.clear_choices();
  const auto cell = [&](const char* algorithm, double bandwidth) {
    pb::NcclTuningCell& out = *c.add_tuning();
    out.set_collective("all_reduce");
    out.set_algorithm(algorithm);
    out.set_protocol("Simple");
    out.set_latency_us(10);
    out.set_bandwidth(bandwidth);
  };
  cell("Tree", 0);
  cell("Ring", 0);
  cell("NVLS", 100);
  const LogReport report = report_of(log, "hgx-h100");
  CHECK(std::any_of(report.assumed.begin(), report.assumed.end(), [](const std::string& what) {
    return what.find("NCCL_ALGO=NVLS") != std::string::npos;
  }));
}

TEST_CASE("a log that does not fit the platform is refused", "[validation]") {
  pb::NcclLog log = two_h100();
  const pb::Platform at = machine("hgx-h100");
  log.mutable_communicators(0)->set_ranks_total(64);
  log.mutable_communicators(0)->set_nodes(1);
  const auto refused = check_log(log, {at, {}});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().fix.find("platform") != std::string::npos);
  log.mutable_communicators(0)->set_ranks_total(2'000'000'000);
  CHECK_FALSE(check_log(log, {at, {}}));
  CHECK_FALSE(check_log(pb::NcclLog{}, {at, {}}));
}

TEST_CASE("real logs are compared on their machines", "[validation][real]") {
  const auto logs = rehearse::tests::real_data("nccl/logs");
  if (!logs) return;
  for (const char* gpus : {"g2", "g4", "g6"}) {
    for (const char* algorithm : {"Ring", "NVLS", "auto"}) {
      const std::string name = std::string("h100_nvswitch_") + gpus + "_" + algorithm + ".log";
      INFO(name);
      const LogReport report = report_of(logs_of(*logs / name).at(0), "hgx-h100");
      CHECK(report.communicators == 1);
      CHECK(report.checks[0].mismatches == 0);  // channels
      CHECK(report.checks[1].mismatches == 0);  // transports
      CHECK(report.checks[4].n == 6);           // a choice per size
      CHECK(report.checks[4].mismatches == 0);
    }
  }
}

}  // namespace rehearse::nccl_log_test
