// SPDX-License-Identifier: Apache-2.0
#include "faults/fault_catalogue.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "base/atomic_file.hpp"
#include "faults/fault_use.hpp"
#include "faults/symptoms/categories.hpp"
#include "tests/faults/small_world.hpp"
#include "tests/temporary_folder.hpp"

namespace rehearse::fault_catalogue_test {
using namespace rehearse;
using namespace rehearse::faults;
namespace fs = std::filesystem;

namespace {

const std::string kHead =
    "id: X1\n"
    "name: slow\n"
    "cause: it is slow\n"
    "mechanism: plat\n"
    "grade: full\n"
    "symptoms: [D2.2]\n"
    "parameters:\n"
    "- {name: rank, kind: rank, default: 3}\n"
    "- {name: factor, kind: number, default: 2, at-least: 1, at-most: 10}\n";
const std::string kEdits =
    "---\n"
    "patch:\n"
    "- slow-rank: {rank: \"{rank}\", slowdown: \"{factor}\"}\n";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  REQUIRE(at != text.npos);
  return text.replace(at, from.size(), to);
}

struct Slip {
  std::string from, to, where, says;
};

}  // namespace

TEST_CASE("every shipped fault loads, is sourced and applies to a job of 2 x 8", "[faults]") {
  const auto catalogue = FaultCatalogue::load_shipped();
  REQUIRE(catalogue);
  const auto categories = Categories::load_shipped();
  REQUIRE(categories);
  CHECK(catalogue->entries().size() >= 52);
  for (const auto& entry : catalogue->entries()) {
    const pb::Fault& fault = entry->fault;
    INFO(fault.id());
    CHECK(fault.sources_size() > 0);
    CHECK(fault.evidence_size() > 0);
    CHECK(fault.placement_size() > 0);
    CHECK(fault.symptoms_size() > 0);
    CHECK(fault.fixes_size() > 0);
    CHECK_FALSE(fault.effect().empty());
    CHECK_FALSE(fault.in_traces().empty());
    CHECK_FALSE(fault.in_logs().empty());
    for (const pb::Parameter& p : fault.parameters()) CHECK_FALSE(p.meaning().empty());
    sim::Scenario scenario = testing::small_scenario();
    const World world = testing::small_world();
    const FaultUse use = with_defaults(entry);
    const auto patches = patches_of(use, scenario.document);
    REQUIRE(patches);
    REQUIRE_FALSE(patches->empty());
    const std::string healthy = scenario.document.SerializeAsString();
    for (const pb::Patch& patch : *patches) CHECK(world.apply(scenario, patch));
    CHECK((scenario.document.SerializeAsString() != healthy || !scenario.transforms.empty()));
    const auto fixes = fixes_of(use, scenario.document);
    REQUIRE(fixes);
    for (const pb::Fix& fix : *fixes) {
      INFO(fix.name());
      CHECK(fix.restores() != pb::Fix::RESTORES_UNSPECIFIED);
      CHECK(fix.change().find('{') == std::string::npos);
      bool known = false;
      for (const pb::SymptomCategory& c : categories->table().categories()) {
        known = known || categories->solved(c.id(), fix.pattern()) > 0;
      }
      CHECK(known);
      for (const pb::Patch& patch : fix.patch()) CHECK(world.apply(scenario, patch));
    }
    CHECK(scenario.transforms.empty());
  }
}

TEST_CASE("a fault file with a slip is refused at its line", "[faults]") {
  REQUIRE(read_fault(kHead + kEdits, "X1.yaml"));
  const Slip slips[] = {
      {"cause:", "couse:", "X1.yaml:3:", "cause"},
      {"mechanism: plat", "mechanism: plot", "X1.yaml:4:", "plat"},
      {"id: X1", "id: X2", "X1.yaml:1:", "file"},
      {"D2.2", "D9.9", "X1.yaml:6:", "D9.9"},
      {"kind: rank", "kind: rang", "X1.yaml:8:", "rank"},
      {"default: 2", "default: 20", "X1.yaml:9:", "out of range"},
      {"default: 2", "default: two", "X1.yaml:9:", "not a number"},
      {"at-most: 10", "at-most: high", "X1.yaml:9:", "bound"},
      {"name: factor", "name: rank", "X1.yaml:8:", "twice"},
      {"grade: full\n", "", "X1.yaml:1:", "grade"},
      {"{factor}", "{facter}", "X1.yaml:12:", "factor"},
      {"slow-rank", "slow-rnak", "X1.yaml:12:", "did you mean"},
      {"patch:", "patches:", "X1.yaml:11:", "patch"},
      {"slowdown: ", "slowness: ", "X1.yaml:12:", "slowdown"},
      {"---\n", "", "X1.yaml:", "second document"},
      {"grade: full\n", "grade: full\npatch: [{}]\n", "X1.yaml:6:", "second document"},
      {kEdits, "---\n", "X1.yaml:", "patch"},
      {kEdits, "", "X1.yaml:", "second document"},
  };
  for (const Slip& slip : slips) {
    INFO(slip.from << " -> " << slip.to);
    const auto read = read_fault(replaced(kHead + kEdits, slip.from, slip.to), "X1.yaml");
    REQUIRE_FALSE(read);
    INFO(read.error().message());
    CHECK(read.error().code == Code::kBadInput);
    CHECK(read.error().where.starts_with(slip.where));
    CHECK(read.error().message().find(slip.says) != std::string::npos);
  }
}

TEST_CASE("an own folder adds faults and cannot take an id twice", "[faults]") {
  const tests::TemporaryFolder temporary;
  const fs::path& folder = temporary.path;
  REQUIRE(write_file(folder / "X1.yaml", kHead + kEdits, Overwrite::kReplace));
  REQUIRE(write_file(folder / "notes.txt", "not a fault", Overwrite::kReplace));
  const fs::path extra[] = {folder};
  const auto both = FaultCatalogue::load_shipped(extra);
  REQUIRE(both);
  CHECK(both->find("X1"));
  CHECK(both->find("F16"));
  REQUIRE(
      write_file(folder / "F16.yaml", replaced(kHead, "X1", "F16") + kEdits, Overwrite::kReplace));
  const auto twice = FaultCatalogue::load_shipped(extra);
  REQUIRE_FALSE(twice);
  CHECK(twice.error().where.find("/F16.yaml:1:1") != std::string::npos);
  fs::remove_all(folder);
  const auto gone = FaultCatalogue::load_shipped(extra);
  REQUIRE_FALSE(gone);
  CHECK(gone.error().code == Code::kMissingInput);
}

TEST_CASE("faults are found by id and by words", "[faults]") {
  const auto catalogue = FaultCatalogue::load_shipped();
  REQUIRE(catalogue);
  const auto missing = catalogue->find("F166");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == Code::kUsage);
  CHECK(missing.error().fix.find("F16") != std::string::npos);
  const auto found = catalogue->search("InfiniBand SOCKETS");
  REQUIRE(found.size() == 1);
  CHECK(found[0]->fault.id() == "F16");
  CHECK(catalogue->search("sockets zebra").empty());
}

}  // namespace rehearse::fault_catalogue_test
