// SPDX-License-Identifier: Apache-2.0
// Tables of NCCL's own costs, made by our model of it on one machine, read against the description of another.
#include "validation/calibrate/machine.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "base/document.hpp"
#include "base/install.hpp"
#include "platforms/model/catalogue.hpp"
#include "sim/nccl/choice.hpp"
#include "sim/nccl/testbed.hpp"
#include "tests/skip.hpp"
#include "traces/evidence/evidence.hpp"

namespace rehearse::validation::machine_test {
namespace {

pb::Platform platform_of(const char* id) {
  const auto folder = shipped("platforms/catalogue");
  REQUIRE(folder);
  auto found = platforms::PlatformCatalogue(*folder).platform(id);
  REQUIRE(found);
  return std::move(*found);
}

struct Recording {
  const char* platform = "dgx-a100";
  uint32_t nodes = 2;
  std::string version = "2.28.9";
  std::string path = {};  // below the expanded platform
  std::string value = {};
  bool tell_version = true;
};

// What the tuner's recorder would have seen: every alternative of some sizes of all-reduce and all-gather.
pb::Evidence recorded(const Recording& how) {
  pb::Platform platform = platform_of(how.platform);
  platform.set_scale(how.nodes);
  REQUIRE(platforms::expand(platform, how.platform));
  if (!how.path.empty()) REQUIRE(set_path(platform, how.path, how.value));
  sim::TestbedOptions options;
  options.nodes = how.nodes;
  options.nccl_version = how.version;
  const auto testbed = sim::Testbed::make(platform, options, how.platform);
  REQUIRE(testbed);
  const auto world = (*testbed)->world();
  REQUIRE(world);
  const int ranks = world->nccl().shape.n_ranks;
  pb::Evidence out;
  out.set_source("rank0.capture");
  if (how.tell_version) out.mutable_tuner()->set_nccl_version(how.version);
  for (const sim::Function function : {sim::Function::kAllReduce, sim::Function::kAllGather}) {
    for (int shift = 12; shift <= 30; shift += 6) {
      sim::Call call;
      call.function = function;
      call.count = (int64_t{1} << shift) / 4 / (sim::is_gather(function) ? ranks : 1);
      const auto costs = sim::cost_table(world->nccl(), call);
      REQUIRE(costs);
      pb::TunerTable& table = *out.mutable_tuner()->add_tables();
      table.set_communicator("0xabc0");
      table.set_collective(function == sim::Function::kAllReduce ? "all_reduce" : "all_gather");
      table.set_bytes(uint64_t{1} << shift);
      table.set_ranks(static_cast<uint32_t>(ranks));
      table.set_nodes(how.nodes);
      for (const sim::Algorithm a : sim::kAlgorithms) {
        for (const sim::Protocol p : sim::kProtocols) {
          const float us = (*costs)[sim::index_of(a)][sim::index_of(p)];
          if (us < 0) continue;
          pb::TunerCost& cost = *table.add_costs();
          cost.set_algorithm(std::string(sim::environment_name_of(a)));
          cost.set_protocol(std::string(sim::name_of(p)));
          cost.set_us(us);
        }
      }
    }
  }
  return out;
}

MachineReading reading(const pb::Evidence& evidence, const char* platform) {
  size_t unplaced = 0;
  const auto costs = recorded_costs(evidence, unplaced);
  CHECK(unplaced == 0);
  const auto read = read_machine(costs, platform_of(platform), platform);
  if (!read) FAIL(read.error().what);
  return *read;
}

const MachineFigure* figure(const MachineReading& reading, const std::string& path) {
  const auto at = std::find_if(reading.figures.begin(), reading.figures.end(),
                               [&](const MachineFigure& f) { return f.path == path; });
  return at == reading.figures.end() ? nullptr : &*at;
}

}  // namespace

TEST_CASE("costs recorded on the machine as described confirm it", "[validation][calibrate]") {
  const MachineReading read = reading(recorded({}), "dgx-a100");
  CHECK(read.explained);
  CHECK(read.costs > 20);
  CHECK(read.agreed == read.costs);
  pb::Patch patch;
  add_machine(read, patch);
  CHECK(patch.set().empty());
  CHECK(patch.calibration().costs() == read.costs);
  const MachineFigure* rate = figure(read, "platform.nodes[*].nics[*].bandwidth");
  REQUIRE(rate != nullptr);
  CHECK(rate->value == rate->described);
  // PCIe of the fourth generation carries no more than 200 Gbit/s to a port.
  CHECK(rate->told == Told::kUndetermined);
  CHECK(std::find(rate->others.begin(), rate->others.end(), "400Gbps") != rate->others.end());
  CHECK(std::find(rate->others.begin(), rate->others.end(), "100Gbps") == rate->others.end());
}

TEST_CASE("costs of slower ports name the class that NCCL counted on", "[validation][calibrate]") {
  const MachineReading read =
      reading(recorded({.path = "nodes[*].nics[*].bandwidth", .value = "40Gbps"}), "dgx-a100");
  CHECK_FALSE(read.explained);
  CHECK(read.agreed < read.costs);
  CHECK_FALSE(read.first_difference.empty());
  const MachineFigure* rate = figure(read, "platform.nodes[*].nics[*].bandwidth");
  REQUIRE(rate != nullptr);
  const bool named = rate->value == "40Gbps" || std::find(rate->others.begin(), rate->others.end(),
                                                          "40Gbps") != rate->others.end();
  CHECK(named);
  pb::Patch patch;
  add_machine(read, patch);
  CHECK(patch.calibration().machine_size() == static_cast<int>(read.figures.size()));
  // It is assigned where nothing else would explain the table.
  CHECK(patch.set().contains("platform.nodes[*].nics[*].bandwidth") ==
        (rate->told == Told::kRecorded));
  pb::Patch again;
  REQUIRE(read_document(write_document(patch), "overlay.yaml", again));
  CHECK(write_document(again) == write_document(patch));
}

TEST_CASE("costs of one node say nothing of ports", "[validation][calibrate]") {
  const MachineReading read = reading(recorded({.platform = "dgx-h100", .nodes = 1}), "dgx-h100");
  CHECK(read.explained);
  CHECK(figure(read, "platform.nodes[*].nics[*].bandwidth") == nullptr);
  const MachineFigure* links = figure(read, "platform.nodes[*].gpus[*].nvlink.links");
  REQUIRE(links != nullptr);
  CHECK(links->value == links->described);
  // Half of the links would have been another class.
  CHECK(std::find(links->others.begin(), links->others.end(), "9") == links->others.end());
}

TEST_CASE("a lost half of the NVLinks is found in the costs of one node",
          "[validation][calibrate]") {
  const MachineReading read = reading(recorded({.platform = "dgx-h100",
                                                .nodes = 1,
                                                .path = "nodes[*].gpus[*].nvlink.links",
                                                .value = "9"}),
                                      "dgx-h100");
  CHECK_FALSE(read.explained);
  const MachineFigure* links = figure(read, "platform.nodes[*].gpus[*].nvlink.links");
  REQUIRE(links != nullptr);
  CHECK(links->told == Told::kRecorded);
  pb::Patch patch;
  add_machine(read, patch);
  CHECK(patch.set().at("platform.nodes[*].gpus[*].nvlink.links") == links->value);
}

TEST_CASE("the version is read off the costs where it was not recorded",
          "[validation][calibrate]") {
  const MachineReading read =
      reading(recorded({.version = "2.19.3", .tell_version = false}), "dgx-a100");
  CHECK_FALSE(read.explained);
  const MachineFigure* version = figure(read, "launch.nccl_version");
  REQUIRE(version != nullptr);
  CHECK(version->told == Told::kRecorded);
  const bool named =
      version->value == "2.19.3" ||
      std::find(version->others.begin(), version->others.end(), "2.19.3") != version->others.end();
  CHECK(named);
}

TEST_CASE("costs that no such machine has are not explained away", "[validation][calibrate]") {
  pb::Evidence evidence = recorded({});
  for (pb::TunerTable& table : *evidence.mutable_tuner()->mutable_tables()) {
    for (pb::TunerCost& cost : *table.mutable_costs()) cost.set_us(cost.us() * 1.37F);
  }
  const MachineReading read = reading(evidence, "dgx-a100");
  CHECK_FALSE(read.explained);
  CHECK(read.figures.empty());
  REQUIRE_FALSE(read.notes.empty());
  CHECK_THAT(read.notes.back(), Catch::Contains("no single figure"));
}

TEST_CASE("costs without the size of their communicator are counted, not used",
          "[validation][calibrate]") {
  pb::Evidence evidence = recorded({});
  for (pb::TunerTable& table : *evidence.mutable_tuner()->mutable_tables()) table.set_ranks(0);
  size_t unplaced = 0;
  CHECK(recorded_costs(evidence, unplaced).empty());
  CHECK(unplaced == static_cast<size_t>(evidence.tuner().tables_size()));
}

TEST_CASE("tables that real logs print are those of the machine", "[validation][calibrate][data]") {
  const auto file = tests::real_data("nccl/logs/h100_nvswitch_g4_auto.log");
  if (!file) return;
  Findings findings;
  SilentReporter silent;
  const auto evidence = traces::read_evidence(*file, findings, silent);
  REQUIRE(evidence);
  std::vector<RecordedCosts> costs;
  size_t unplaced = 0;
  for (const pb::Evidence& one : *evidence) {
    for (RecordedCosts& c : recorded_costs(one, unplaced)) costs.push_back(std::move(c));
  }
  REQUIRE_FALSE(costs.empty());
  const auto read = read_machine(costs, platform_of("hgx-h100"), "hgx-h100");
  REQUIRE(read);
  INFO(read->first_difference);
  CHECK(read->explained);
}

}  // namespace rehearse::validation::machine_test
