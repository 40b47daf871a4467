// SPDX-License-Identifier: Apache-2.0
// How sure a prediction is: kinds of change, their held-out errors, draws.
#include <catch2/catch.hpp>
#include <cmath>

#include "validation/certainty/band.hpp"
#include "validation/certainty/change_checks.hpp"

namespace rehearse::certainty_test {
using namespace rehearse;
using namespace rehearse::validation;

namespace {

sim::Scenario ddp() {
  SilentReporter reporter;
  auto scenario = sim::load_scenario("ddp-16", reporter);
  REQUIRE(scenario);
  return *scenario;
}

sim::Scenario patched(sim::Scenario scenario, const std::string& text) {
  const auto patch = sim::parse_patch(text, "test");
  REQUIRE(patch);
  REQUIRE(sim::apply(scenario, *patch));
  return scenario;
}

ChangeError flat(Change change, double error) {
  return {change, 10, 3, std::vector<double>(19, error)};
}

}  // namespace

TEST_CASE("the kind of a change is what sets two scenarios apart", "[validation][certainty]") {
  const sim::Scenario base = ddp();
  using Kinds = std::set<Change>;
  const auto kinds = [&](const std::string& patch) {
    return changes_between(base, patched(base, patch));
  };
  CHECK(changes_between(base, base).empty());
  CHECK(kinds("set: {\"launch.env.NCCL_ALGO\": Tree}") == Kinds{Change::kAlgorithm});
  CHECK(kinds("set: {\"launch.env.NCCL_IB_DISABLE\": \"1\"}") == Kinds{Change::kTransport});
  CHECK(kinds("set: {\"launch.ranks[3].env.NCCL_MAX_NCHANNELS\": \"2\"}") ==
        Kinds{Change::kAlgorithm});
  CHECK(kinds("set: {\"launch.env.OMP_NUM_THREADS\": \"1\"}") == Kinds{Change::kEnvironment});
  CHECK(kinds("set: {\"platform.nodes[0].gpus[1].speed\": \"0.5\"}") == Kinds{Change::kCompute});
  CHECK(kinds("set: {\"platform.nodes[1].nics[*].bandwidth\": 100Gbps}") ==
        Kinds{Change::kBandwidth});
  CHECK(kinds("slow-rank: {rank: 3, slowdown: 2}") == Kinds{Change::kCompute});
  CHECK(kinds("skip-collective: {rank: 3, nth: 2}") == Kinds{Change::kProgram});
  CHECK(kinds("grow-data-parallel: 2") == Kinds{Change::kScale});
  // What a calibration states is no change.
  CHECK(kinds("set: {\"platform.efficiency.nvlink\": 0.7}").empty());
  // A fault and its fix leave nothing but the kinds of what was taken back.
  const sim::Scenario slow = patched(base, "slow-rank: {rank: 3, slowdown: 2}");
  CHECK(changes_between(slow, patched(slow, "undo: slow-rank")) == Kinds{Change::kCompute});
}

TEST_CASE("held-out errors are drawn between their quantiles", "[validation][certainty]") {
  ChangeError error{Change::kScale, 100, 5, {}};
  for (int k = 1; k < 20; ++k) error.quantiles.push_back(.01 * k);
  CHECK(error.at(.5) == Approx(.10));
  CHECK(error.at(.05) == Approx(.01));
  CHECK(error.at(.95) == Approx(.19));
  CHECK(error.at(.525) == Approx(.105));
  // Beyond what was seen nothing is made up.
  CHECK(error.at(0) == Approx(.01));
  CHECK(error.at(1) == Approx(.19));
}

TEST_CASE("of several changes the widest error counts, and none where one is unknown",
          "[validation][certainty]") {
  pb::ChangeErrors document;
  const auto add = [&](const char* name, double width) {
    pb::ChangeErrorEntry& entry = *document.add_changes();
    entry.set_change(name);
    entry.set_rows(10);
    for (int k = 0; k < 19; ++k) entry.add_quantiles(width * (k - 9) / 9);
  };
  add("algorithm", .1);
  add("scale", .3);
  const auto errors = ChangeErrors::read(document, "test");
  REQUIRE(errors);
  using Kinds = std::set<Change>;
  CHECK(errors->find(Kinds{}) == nullptr);
  CHECK(errors->find(Kinds{Change::kAlgorithm})->change == Change::kAlgorithm);
  CHECK(errors->find(Kinds{Change::kAlgorithm, Change::kScale})->change == Change::kScale);
  CHECK(errors->find(Kinds{Change::kAlgorithm, Change::kProgram}) == nullptr);
  add("weather", .1);
  CHECK_FALSE(ChangeErrors::read(document, "test"));
}

TEST_CASE("the error acts on communication, or on the whole step", "[validation][certainty]") {
  Drawing drawing;
  drawing.patches.resize(2);
  const DrawnSteps steps = {DrawnStep{100, 40}, std::nullopt};
  const double up = std::log(1.5);
  const auto of = [&](Change change) {
    const ChangeError error = flat(change, up);
    const auto moved = with_error(steps, drawing, &error);
    REQUIRE(moved.size() == 2);
    CHECK_FALSE(moved[1]);
    return *moved[0];
  };
  CHECK(of(Change::kTransport) == Approx(120));
  CHECK(of(Change::kCompute) == Approx(150));
  CHECK(*with_error(steps, drawing, nullptr)[0] == Approx(100));
}

TEST_CASE("what is shipped of held-out errors can be read", "[validation][certainty]") {
  const auto errors = ChangeErrors::load_shipped();
  REQUIRE(errors);
  const ChangeError* algorithm = errors->find(Change::kAlgorithm);
  REQUIRE(algorithm != nullptr);
  CHECK(algorithm->rows >= 5);
  // No public tables of one machine with and without a transport: nothing is claimed of it.
  CHECK(errors->find(Change::kTransport) == nullptr);
  CHECK(errors->find(Change::kProgram) == nullptr);
}

TEST_CASE("changes are collected from the rows of all checks", "[validation][certainty]") {
  Check check;
  check.id = "pairs";
  CheckRow row;
  row.predicted = 2;
  row.measured = 2 * std::exp(.1);
  row.change = "algorithm";
  check.rows = {row, row, row, row, row};
  row.change = "";
  check.rows.push_back(row);
  row.change = "compute";  // a single one says nothing
  check.rows.push_back(row);
  const std::string text = change_errors_document({check});
  CHECK(text.find("change: algorithm") != std::string::npos);
  CHECK(text.find("rows: 5") != std::string::npos);
  CHECK(text.find("0.1") != std::string::npos);
  CHECK(text.find("compute") == std::string::npos);
}

TEST_CASE("which of two machines is the new one does not matter", "[validation][certainty]") {
  Check check;
  check.id = "links";
  CheckRow row;
  row.predicted = 2;
  row.measured = 2 * std::exp(.2);
  row.change = "bandwidth";
  check.rows = {row, row, row, row, row};
  const std::string text = change_errors_document({check});
  CHECK(text.find("rows: 5") != std::string::npos);
  CHECK(text.find("[-0.2, -0.2") != std::string::npos);
  CHECK(text.find("0.2, 0.2]") != std::string::npos);
}

TEST_CASE("a change of links is the same call on GPUs of one generation",
          "[validation][certainty]") {
  const auto hardware = [](const char* name, uint32_t generation, double us) {
    Observed one;
    one.first.hardware = name;
    one.first.collective = "all_reduce";
    one.first.nodes = 1;
    one.first.gpus = 8;
    one.first.bytes = Bytes{1} << 24;
    one.generation = generation;
    one.nccl_version = "2.19.3";
    one.observation.bytes = one.first.bytes;
    one.observation.group = name;
    one.observation.measured_us = us;
    return ObservedHardware{name, {}, {one}};
  };
  const Check check = collective_changes(
      {hardware("bridged", 80, 400), hardware("switched", 80, 100), hardware("newer", 90, 50)});
  REQUIRE(check.rows.size() == 1);
  CHECK(check.rows[0].change == "bandwidth");
  CHECK(check.rows[0].measured == Approx(.25));
  CHECK(check.rows[0].what.find("bridged -> switched") != std::string::npos);
}

TEST_CASE("changes do not depend on the order of the rows they are made of",
          "[validation][certainty]") {
  const auto call = [](uint32_t gpus, const char* options, double us) {
    Observed one;
    one.first.hardware = "card";
    one.first.collective = "all_reduce";
    one.first.nodes = 1;
    one.first.gpus = gpus;
    one.first.bytes = Bytes{1} << 24;
    one.first.options = options;
    one.observation.bytes = one.first.bytes;
    one.observation.measured_us = us;
    return one;
  };
  const std::vector<Observed> calls = {call(4, "-R 2", 50), call(4, "", 100), call(8, "", 200)};
  const std::vector<Observed> turned(calls.rbegin(), calls.rend());
  for (const auto& order : {calls, turned}) {
    const Check check = collective_changes({{"card", {}, order}});
    REQUIRE(check.rows.size() == 1);
    CHECK(check.rows[0].measured == Approx(2));  // plain calls with plain ones
  }
}

TEST_CASE("draws give a range, the same for any number of jobs", "[validation][certainty]") {
  SilentReporter reporter;
  const sim::Scenario base = ddp();
  const sim::Scenario slow = patched(base, "set: {\"launch.env.NCCL_ALGO\": Tree}");
  auto drawing = drawing_of(nullptr, base.document, 4);
  REQUIRE(drawing);
  CHECK(drawing->patches.size() == 4);
  drawing->jobs = 1;
  const auto one = step_time_band(base, slow, *drawing, reporter);
  drawing->jobs = 2;
  const auto two = step_time_band(base, slow, *drawing, reporter);
  REQUIRE(one);
  REQUIRE(two);
  CHECK(one->SerializeAsString() == two->SerializeAsString());
  CHECK(one->low() > 0);
  CHECK(one->low() < one->high());
  CHECK(one->note().find("measured changes of algorithm") != std::string::npos);
  CHECK(one->from() == "priors");
}

TEST_CASE("a fix that helps says how often and how much", "[validation][certainty]") {
  SilentReporter reporter;
  const sim::Scenario broken = patched(ddp(), "slow-rank: {rank: 3, slowdown: 2}");
  const auto drawing = drawing_of(nullptr, broken.document, 3);
  REQUIRE(drawing);
  pb::FixReport report;
  pb::FixTrial& fix = *report.add_fixes();
  fix.set_restores(true);
  fix.add_patches("undo: slow-rank");
  pb::FixTrial& useless = *report.add_fixes();
  useless.set_band("unvalidated");
  REQUIRE(add_certainty(broken, *drawing, 3, reporter, report));
  CHECK(report.fixes(0).certainty().helps() == 1);
  CHECK(report.fixes(0).certainty().draws() == 3);
  CHECK(report.fixes(0).certainty().low() > 1.2);
  CHECK(report.fixes(0).certainty().change() == "compute");
  const pb::Band& after = report.fixes(0).certainty().step_time_band_ns();
  CHECK(after.draws() == 3);
  CHECK(after.low() > 0);
  CHECK(after.low() <= after.high());
  CHECK(report.broken_step_time_band_ns().low() > after.low());
  CHECK(report.fixes(0).band().find("helps in 100 % of 3 draws") == 0);
  CHECK_FALSE(report.fixes(1).has_certainty());
}

}  // namespace rehearse::certainty_test
