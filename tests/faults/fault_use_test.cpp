// SPDX-License-Identifier: Apache-2.0
#include "faults/fault_use.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "faults/placeholders.hpp"
#include "sim/scenario/places.hpp"
#include "sim/scenario/transforms.hpp"
#include "sim/scenario/undo.hpp"
#include "tests/faults/small_world.hpp"

namespace rehearse::fault_use_test {
using namespace rehearse;
using namespace rehearse::faults;

namespace {

const FaultCatalogue& catalogue() {
  static const auto loaded = FaultCatalogue::load_shipped();
  REQUIRE(loaded);
  return *loaded;
}

Error refusal(const std::string& text) {
  const auto use = parse_fault(text, catalogue());
  REQUIRE_FALSE(use);
  return use.error();
}

}  // namespace

TEST_CASE("a fault without parameters uses its defaults", "[faults]") {
  const auto use = parse_fault("F60", catalogue());
  REQUIRE(use);
  CHECK(use->text() == "F60:rank=3,factor=1.5");
  const auto other = parse_fault("F60:factor=3,rank=7", catalogue());
  REQUIRE(other);
  CHECK(other->text() == "F60:rank=7,factor=3");
  CHECK(parse_fault(other->text(), catalogue())->text() == other->text());
}

TEST_CASE("a fault of another framework is refused with what breaks the same there", "[faults]") {
  sim::Scenario scenario = testing::small_scenario();
  scenario.document.mutable_launch()->set_framework(pb::PYTORCH);
  CHECK(parse_fault("F01", catalogue(), scenario.document));
  scenario.document.mutable_launch()->set_framework(pb::HOROVOD);
  for (const char* id : {"F01", "F02"}) {
    const auto use = parse_fault(id, catalogue(), scenario.document);
    REQUIRE_FALSE(use);
    CHECK(use.error().code == Code::kUsage);
    CHECK_THAT(use.error().what, Catch::Contains("has no effect on a job of horovod"));
    CHECK_FALSE(use.error().fix.empty());
  }
}

TEST_CASE("every fault can be written down for a job on one node", "[faults]") {
  SilentReporter silent;
  const auto scenario = sim::load_scenario("dlrm-8", silent);
  REQUIRE(scenario);
  REQUIRE(scenario->document.platform().nodes_size() == 1);
  size_t written = 0;
  for (const auto& entry : catalogue().entries()) {
    const std::string& id = entry->fault.id();
    INFO(id);
    const auto use = parse_fault(id, catalogue(), scenario->document);
    if (!use) {
      CHECK(use.error().code == Code::kUsage);
      continue;
    }
    const auto patches = patches_of(*use, scenario->document);
    INFO((patches ? "" : patches.error().message()));
    CHECK((patches || patches.error().code == Code::kUsage));
    const auto fixes = fixes_of(*use, scenario->document);
    INFO((fixes ? "" : fixes.error().message()));
    CHECK((fixes || fixes.error().code == Code::kUsage));
    if (patches && fixes) ++written;
  }
  CHECK(written > 60);
}

TEST_CASE("places that are not stated are in the scenario", "[faults]") {
  sim::Scenario scenario = testing::small_scenario();
  CHECK(parse_fault("F09", catalogue(), scenario.document)->text() == "F09:node=1,device=0");
  scenario.document.mutable_platform()->mutable_nodes()->DeleteSubrange(1, 1);
  CHECK(parse_fault("F09", catalogue(), scenario.document)->text() == "F09:node=0,device=0");
  CHECK(parse_fault("F09:device=3", catalogue(), scenario.document)->text() ==
        "F09:node=0,device=3");
  const auto stated = parse_fault("F09:node=1", catalogue(), scenario.document);
  REQUIRE(stated);
  CHECK_FALSE(patches_of(*stated, scenario.document));
}

TEST_CASE("parameters become numbers of the patch", "[faults]") {
  const sim::Scenario scenario = testing::small_scenario();
  const auto use = parse_fault("F60:rank=7,factor=2.5", catalogue());
  REQUIRE(use);
  const auto patches = patches_of(*use, scenario.document);
  REQUIRE(patches);
  REQUIRE(patches->size() == 1);
  CHECK(patches->at(0).slow_rank().rank() == 7);
  CHECK(patches->at(0).slow_rank().slowdown() == 2.5);
}

TEST_CASE("parameters become parts of a path", "[faults]") {
  const sim::Scenario scenario = testing::small_scenario();
  const auto patches = patches_of(*parse_fault("F16:node=0", catalogue()), scenario.document);
  REQUIRE(patches);
  CHECK(patches->at(0).set().count("launch.ranks[node=0].env.NCCL_IB_DISABLE") == 1);
}

TEST_CASE("a rank's node and GPU and the rate of equal parts come from the scenario", "[faults]") {
  sim::Scenario scenario = testing::small_scenario();
  const auto slow = fixes_of(*parse_fault("F60:rank=13", catalogue()), scenario.document);
  REQUIRE(slow);
  CHECK(slow->at(0).patch(1).set().count("platform.nodes[1].gpus[5].speed") == 1);
  CHECK(slow->at(0).change().find("node 1, GPU 5") != std::string::npos);

  const auto use = parse_fault("F65:node=1,nic=2,bandwidth=50Gbps", catalogue());
  REQUIRE(use);
  const World world = testing::small_world();
  const auto patches = patches_of(*use, scenario.document);
  REQUIRE(patches);
  REQUIRE(world.apply(scenario, patches->at(0)));
  CHECK(scenario.document.platform().nodes(1).nics(2).bandwidth() == 6.25e9);
  const auto fixes = fixes_of(*use, scenario.document);
  REQUIRE(fixes);
  REQUIRE(world.apply(scenario, fixes->at(0).patch(0)));
  CHECK(scenario.document.platform().nodes(1).nics(2).bandwidth() == 25e9);
}

TEST_CASE("a fix undoes what its fault injects and nothing else", "[faults]") {
  // A fault, how many of its transforms are there, and one that does another thing with the same transform.
  struct Row {
    const char* fault;
    size_t transforms;
    const char* other;
  };
  const Row rows[] = {{"F40:ranks=0-7", 1, "F60:rank=3"},
                      {"F40:ranks=0-7", 1, "F40:ranks=8-15"},
                      {"F43", 3, "F25:rank=5"},
                      {"F44", 1, "F43"},
                      {"F71:node=1", 1, "F71:node=0"},
                      {"F71:node=1", 1, "F24:rank=9"},
                      {"F76:node=0,other=1", 4, "F76:node=1,other=0"}};
  for (const Row& row : rows) {
    INFO(row.fault << " and " << row.other);
    sim::Scenario scenario = testing::small_scenario();
    const auto left_by_fix = [&](const char* injected) {
      scenario.transforms.clear();
      const auto patches = patches_of(*parse_fault(injected, catalogue()), scenario.document);
      REQUIRE(patches);
      for (const pb::Patch& patch : *patches) {
        if (sim::transform_of(patch) != nullptr) scenario.transforms.push_back(patch);
      }
      const size_t before = scenario.transforms.size();
      const auto fixes = fixes_of(*parse_fault(row.fault, catalogue()), scenario.document);
      REQUIRE(fixes);
      for (const pb::Patch& patch : fixes->at(0).patch()) {
        if (patch.has_undo()) CHECK(sim::undo(scenario, patch.undo()));
      }
      return std::pair(before, scenario.transforms.size());
    };
    CHECK(left_by_fix(row.fault) == std::pair(row.transforms, size_t{0}));
    const auto [before, after] = left_by_fix(row.other);
    CHECK(before > 0);
    CHECK(after == before);
  }
  const sim::Scenario scenario = testing::small_scenario();
  const auto layout = fixes_of(*parse_fault("F41", catalogue()), scenario.document);
  const auto bucket = patches_of(*parse_fault("F30", catalogue()), scenario.document);
  REQUIRE((layout && bucket));
  REQUIRE(layout->at(0).patch(0).undo().like_size() == 1);
  CHECK_FALSE(sim::alike(layout->at(0).patch(0).undo().like(0), bucket->at(0)));
}

TEST_CASE("parameter errors say what would be right", "[faults]") {
  CHECK(refusal("F16:nod=1").fix.find("'node'") != std::string::npos);
  CHECK(refusal("F16:nod=1").code == Code::kUsage);
  CHECK(refusal("F16:nod=1").where == "F16:nod=1");
  CHECK(refusal("F16:node").what.find("key=value") != std::string::npos);
  CHECK(refusal("F16:node=-1").what.find("whole number") != std::string::npos);
  CHECK(refusal("F16:node=1.5").what.find("whole number") != std::string::npos);
  CHECK(refusal("F16:node=99999999999").code == Code::kUsage);
  CHECK(refusal("F60:factor=0.5").fix.find("1 to 20") != std::string::npos);
  CHECK(refusal("F60:factor=nan").code == Code::kUsage);
  CHECK(refusal("F65:bandwidth=fast").code == Code::kUsage);
  CHECK(refusal("F65:bandwidth=-5Gbps").code == Code::kUsage);
  CHECK(refusal("F33:proto=LL12").fix.find("LL128") != std::string::npos);
  CHECK(refusal("F99").code == Code::kUsage);
  CHECK(refusal("").code == Code::kUsage);
}

TEST_CASE("a place that the scenario does not have is refused", "[faults]") {
  const sim::Scenario scenario = testing::small_scenario();
  for (const char* text : {"F60:rank=16", "F16:node=2", "F63:nic=8", "F66:gpu=8"}) {
    INFO(text);
    const auto patches = patches_of(*parse_fault(text, catalogue()), scenario.document);
    REQUIRE_FALSE(patches);
    CHECK(patches.error().code == Code::kUsage);
    CHECK(patches.error().fix.starts_with("choose one "));
  }
}

TEST_CASE("ranks are known by their numbers, not by how many there are", "[faults]") {
  sim::Scenario scenario = testing::small_scenario();
  auto& ranks = *scenario.document.mutable_launch()->mutable_ranks();
  ranks.DeleteSubrange(1, 7);
  ranks.DeleteSubrange(2, 7);  // 0 and 8 are left
  CHECK(patches_of(*parse_fault("F60:rank=8", catalogue()), scenario.document));
  const auto refused = patches_of(*parse_fault("F60:rank=1", catalogue()), scenario.document);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().fix == "choose one of 0,8");
  const auto usual = parse_fault("F60", catalogue(), scenario.document);
  REQUIRE(usual);
  CHECK(patches_of(*usual, scenario.document));
}

TEST_CASE("text values cannot break out of the document", "[faults]") {
  pb::Parameter text;
  text.set_kind(pb::Parameter::TEXT);
  CHECK(parse_value(text, "mlx5_0:1"));
  for (const char* bad : {"a\"b", "a'b", "a\nb", "a\\b", "{node}"})
    CHECK_FALSE(parse_value(text, bad));
}

TEST_CASE("quantities survive being written and read", "[faults]") {
  pb::Parameter p;
  for (const auto kind : {pb::Parameter::BANDWIDTH, pb::Parameter::BYTES, pb::Parameter::DURATION,
                          pb::Parameter::NUMBER, pb::Parameter::COUNT}) {
    p.set_kind(kind);
    const auto value = parse_value(p, format_value(p, 1234));
    REQUIRE(value);
    CHECK(*value == 1234);
  }
}

TEST_CASE("placeholders leave YAML braces alone and name their place", "[faults]") {
  const Placeholders names{.values = {{"node", "1"}}, .document = nullptr};
  CHECK(substitute("a: {b: 1, c: \"{node}\"} {} {x y}", "f", names).value() ==
        "a: {b: 1, c: \"1\"} {} {x y}");
  CHECK(substitute("{max a.b[*].c}", "f", names).value() == "1");
  const auto unknown = substitute("a: 1\nb: {nodes}", "f.yaml", names);
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().where == "f.yaml:2:4");
  CHECK(unknown.error().fix.find("node") != std::string::npos);
}

TEST_CASE("the largest number is looked up by path and refuses wrong paths", "[faults]") {
  const sim::Scenario scenario = testing::small_scenario();
  const auto& document = scenario.document;
  CHECK(largest_at(document, "platform.nodes[*].nics[*].bandwidth").value() == "25000000000B/s");
  CHECK(largest_at(document, "platform.nodes[1].gpus[0].nvlink.links").value() == "12");
  for (const char* bad :
       {"", "platform", "platform.nodes[9].acs", "platform.nods[*].acs", "platform.nodes[x].acs",
        "platform.nodes[*", "platform.name", "launch.env.X", "seed.x"}) {
    INFO(bad);
    CHECK_FALSE(largest_at(document, bad));
  }
}

}  // namespace rehearse::fault_use_test
