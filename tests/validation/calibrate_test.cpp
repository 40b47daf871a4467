// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "base/document.hpp"
#include "sim/efficiency.hpp"
#include "validation/calibrate/observations.hpp"
#include "validation/calibrate/overlay.hpp"

namespace rehearse::validation::calibrate_test {
namespace {

size_t at(std::string_view path) {
  for (size_t i = 0; i < parameters().size(); ++i) {
    if (path == parameters()[i].path) return i;
  }
  FAIL("no parameter " << path);
  return 0;
}

NcclTestRow row(const char* collective, uint32_t gpus, Bytes bytes) {
  NcclTestRow out;
  out.where = "table";
  out.collective = collective;
  out.hardware = "NVIDIA H100 80GB HBM3";
  out.nodes = 1;
  out.gpus = gpus;
  out.nccl_version = "2.28.9";
  out.bytes = bytes;
  out.time_us = 1;
  return out;
}

// What a machine with the parameters of `truth` would print.
std::vector<Observation> measured_at(const std::vector<NcclTestRow>& rows, const Point& truth,
                                     const TestMachineOptions& options = {}) {
  auto machines = TestMachines::create(options);
  REQUIRE(machines);
  Findings findings;
  const auto hardware = observe(rows, *machines, findings);
  REQUIRE(hardware.size() == 1);
  std::vector<Observation> out = hardware.front().observations();
  for (Observation& o : out) o.measured_us = predicted_us(o, truth);
  return out;
}

std::vector<Observation> measured(const std::vector<Bytes>& sizes, const Point& truth) {
  std::vector<NcclTestRow> rows;
  for (const char* collective : {"all_reduce", "all_gather"}) {
    for (const uint32_t gpus : {2U, 4U, 8U}) {
      for (const Bytes bytes : sizes) rows.push_back(row(collective, gpus, bytes));
    }
  }
  return measured_at(rows, truth);
}

std::vector<Bytes> many_sizes() {
  std::vector<Bytes> out;
  for (int shift = 10; shift <= 32; ++shift) out.push_back(Bytes{1} << shift);
  return out;
}

Point point(std::initializer_list<std::pair<const char*, double>> values) {
  Point out(parameters().size(), 0);
  for (const auto& [path, value] : values) {
    out[at(path)] = std::log(value / parameters()[at(path)].prior);
  }
  return out;
}

// Every 4th row, beginning at `first`, 20 to 50 times too long.
std::vector<Observation> with_gross_errors(std::vector<Observation> observations, size_t first) {
  for (size_t i = first; i < observations.size(); i += 4) {
    observations[i].measured_us *= 20 + static_cast<double>(i * 7 % 31);
  }
  return observations;
}

}  // namespace

TEST_CASE("a fit finds the parameters that made the measurements", "[validation][calibrate]") {
  const Point truth = point({{"nvlink", 0.70}, {"launch", 12}, {"nvlink_hop.ll", 2}});
  const Fit found = fit(measured(many_sizes(), truth));
  CHECK(value_at(found.point, at("nvlink")) == Approx(0.70).epsilon(0.02));
  CHECK(value_at(found.point, at("launch")) == Approx(12).epsilon(0.1));
  CHECK(value_at(found.point, at("nvlink_hop.ll")) == Approx(2).epsilon(0.15));
  CHECK(found.parameters[at("nvlink")].standing == Standing::kFitted);
}

TEST_CASE("a few wild rows do not move a fit", "[validation][calibrate]") {
  const Point truth = point({{"nvlink", 0.70}});
  auto observations = measured(many_sizes(), truth);
  for (size_t i = 0; i < observations.size(); i += 9) observations[i].measured_us *= 20;
  CHECK(value_at(fit(observations).point, at("nvlink")) == Approx(0.70).epsilon(0.04));
}

TEST_CASE("a quarter of grossly wrong rows does not move what the others determine",
          "[validation][calibrate]") {
  const std::vector<std::pair<const char*, Point>> machines = {
      {"launch", point({{"nvlink", 0.70}, {"launch", 12}})},
      {"issue", point({{"nvlink", 0.70}, {"issue", 40}})}};
  for (const auto& [late, truth] : machines) {
    const auto clean = measured(many_sizes(), truth);
    for (size_t first = 0; first < 4; ++first) {
      const Fit found = fit(with_gross_errors(clean, first));
      INFO("late by " << late << ", errors from row " << first);
      CHECK(found.let_go == (clean.size() + 3 - first) / 4);
      CHECK(found.scatter == kLeastScatter);
      for (const char* path : {"nvlink", late}) {
        CHECK(value_at(found.point, at(path)) == Approx(value_at(truth, at(path))).epsilon(.05));
        CHECK(found.parameters[at(path)].standing == Standing::kFitted);
      }
      // Launch and issue do not trade places.
      const size_t other = at(late == std::string("launch") ? "issue" : "launch");
      CHECK(value_at(found.point, other) == Approx(parameters()[other].prior).epsilon(.15));
      for (const FittedParameter& one : found.parameters) {
        if (one.standing != Standing::kFitted || one.parameter == at("channel_start")) continue;
        INFO(parameters()[one.parameter].path);
        CHECK(one.low / 1.05 <= value_at(truth, one.parameter));
        CHECK(one.high * 1.05 >= value_at(truth, one.parameter));
      }
    }
  }
}

TEST_CASE("one message size cannot tell latency from bandwidth", "[validation][calibrate]") {
  const Point truth = point({{"nvlink", 0.70}, {"launch", 12}});
  std::vector<Observation> one;
  for (const Observation& o : measured({Bytes{4} << 20}, truth)) {
    if (one.empty()) one.push_back(o);
  }
  const Fit found = fit(one);
  CHECK(found.parameters[at("launch")].standing == Standing::kUndetermined);
  CHECK(found.point[at("launch")] == 0);
  // Nor can the last parameter that is left: it would take the blame of all. Small calls and large ones.
  for (const Bytes bytes : {Bytes{4} << 10, Bytes{1} << 20, Bytes{1} << 30}) {
    const Fit none = fit(measured({bytes}, truth));
    for (const FittedParameter& each : none.parameters) {
      CHECK((each.standing == Standing::kUndetermined || each.standing == Standing::kUnused));
    }
  }
}

TEST_CASE("hops over sockets are fitted where bytes go over them", "[validation][calibrate]") {
  std::vector<NcclTestRow> rows;
  for (const Bytes bytes : many_sizes()) {
    rows.push_back(row("all_reduce", 16, bytes));
    rows.back().nodes = 2;
  }
  TestMachineOptions options;
  options.env = {{"NCCL_IB_DISABLE", "1"}};
  const Fit found =
      fit(measured_at(rows, point({{"socket_hop.simple", 3}, {"socket_hop.ll", 3}}), options));
  const FittedParameter& hop = found.parameters[at("socket_hop.simple")];
  CHECK(hop.standing == Standing::kFitted);
  CHECK(hop.value == Approx(3).epsilon(.2));
  CHECK(found.parameters[at("network_hop.simple")].standing == Standing::kUnused);
}

TEST_CASE("parameters that no measurement feels are left alone", "[validation][calibrate]") {
  const Fit found = fit(measured(many_sizes(), point({})));
  CHECK(found.parameters[at("socket")].standing == Standing::kUnused);
  const pb::Patch patch = overlay(found, {"dgx-h100", {"table.txt"}, 0, 4});
  for (const auto& [path, value] : patch.set()) CHECK(path != "platform.efficiency.socket");
}

TEST_CASE("an overlay states what was fitted, can be read back and drawn from",
          "[validation][calibrate]") {
  const Fit found = fit(measured(many_sizes(), point({{"nvlink", 0.70}})));
  const pb::Patch patch = overlay(found, {"dgx-h100", {"table.txt"}, 7, 8});
  CHECK(patch.calibration().evidence(0) == "table.txt");
  CHECK(patch.set().count("platform.efficiency.nvlink") == 1);
  pb::Patch again;
  REQUIRE(read_document(write_document(patch), "overlay.yaml", again));
  CHECK(write_document(again) == write_document(patch));

  const auto draws = draws_of(patch.calibration(), 8);
  REQUIRE(draws);
  CHECK(draws->size() == 8);
  pb::Scenario document;
  for (const auto& [path, value] : draws->front().set()) CHECK(set_path(document, path, value));
  CHECK_FALSE(draws_of(patch.calibration(), 9));
  CHECK(write_document(overlay(found, {"dgx-h100", {"table.txt"}, 7, 8})) == write_document(patch));
}

TEST_CASE("draws of a fit lie around it and differ less than the prior's",
          "[validation][calibrate]") {
  const Fit found = fit(measured(many_sizes(), point({{"nvlink", 0.70}})));
  double low = 1, high = 0;
  for (uint64_t k = 0; k < 100; ++k) {
    const double value = value_at(draw(found, 0, k), at("nvlink"));
    low = std::min(low, value);
    high = std::max(high, value);
  }
  CHECK(low > 0.6);
  CHECK(high < 0.8);
  CHECK(low < high);
}

TEST_CASE("draws keep to the data where it does not tell parameters apart",
          "[validation][calibrate]") {
  // In-switch reduction alone: of the shares of NVLink and of NVLS only the product is known.
  std::vector<NcclTestRow> rows;
  for (const Bytes bytes : many_sizes()) rows.push_back(row("all_reduce", 8, bytes));
  const auto observations = measured_at(rows, point({{"nvls", 0.68}}));
  const Observation& largest = observations.back();
  const Fit found = fit(observations);
  REQUIRE(found.parameters[at("nvlink")].standing == Standing::kUndetermined);
  CHECK(found.parameters[at("nvls")].standing == Standing::kConditional);
  size_t near = 0;
  std::set<double> shares;
  for (uint64_t k = 0; k < 100; ++k) {
    const Point drawn = draw(found, 0, k);
    shares.insert(value_at(drawn, at("nvlink")));
    near += std::abs(predicted_us(largest, drawn) / largest.measured_us - 1) < .05 ? 1 : 0;
  }
  CHECK(near >= 90);
  CHECK(*shares.rbegin() / *shares.begin() > 1.2);
}

TEST_CASE("the closed form of a call agrees with the model", "[validation][calibrate]") {
  auto machines = TestMachines::create({});
  REQUIRE(machines);
  for (const char* collective :
       {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "sendrecv"}) {
    for (const uint32_t gpus : {2U, 8U}) {
      for (const Bytes bytes : {Bytes{1} << 12, Bytes{1} << 22, Bytes{1} << 30}) {
        const auto call = machines->place(row(collective, gpus, bytes));
        REQUIRE(call);
        const auto alone = sim::time_alone(call->testbed->context(), call->traffic);
        REQUIRE(alone);
        Observation o;
        o.terms = sim::terms_of(call->testbed->context(), call->traffic);
        INFO(collective << " " << gpus << " " << bytes);
        CHECK(predicted_us(o, Point(parameters().size(), 0)) ==
              Approx(static_cast<double>(alone->total()) / 1000).epsilon(0.01));
      }
    }
  }
}

}  // namespace rehearse::validation::calibrate_test
