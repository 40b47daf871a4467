// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/lessons.hpp"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "base/document.hpp"
#include "faults/lessons/assess.hpp"
#include "faults/lessons/changes.hpp"
#include "faults/lessons/folder.hpp"
#include "faults/lessons/placement.hpp"
#include "faults/lessons/play.hpp"
#include "faults/lessons/progress.hpp"
#include "faults/lessons/remarks.hpp"
#include "faults/symptoms/categories.hpp"
#include "sim/scenario/transforms.hpp"
#include "tests/temporary_folder.hpp"

namespace rehearse::lessons_test {
using namespace rehearse;
using namespace rehearse::faults;
using rehearse::faults::testing::job_of;
using rehearse::faults::testing::shipped_labs;

namespace {

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

const FaultCatalogue& fault_files() {
  static const auto loaded = FaultCatalogue::load_shipped();
  REQUIRE(loaded);
  return *loaded;
}

// A lab like the shipped L07, with the text exchanged.
Result<LabEntry> edited(const std::string& from, const std::string& to) {
  const auto lab = shipped_labs().find("L07");
  REQUIRE(lab);
  std::string text = text_of((*lab)->file);
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  return read_lab(text, "labs/L07.yaml", fault_files());
}

bool has_remark(const pb::LabCheck& check, std::string_view id) {
  return std::any_of(check.remarks().begin(), check.remarks().end(),
                     [&](const pb::LabRemark& remark) { return remark.id() == id; });
}

}  // namespace

TEST_CASE("the shipped labs cover every symptom category", "[faults][lessons]") {
  std::set<std::string> categories;
  for (const auto& entry : shipped_labs().entries()) categories.insert(entry->lab.category());
  CHECK(shipped_labs().entries().size() >= 30);
  const auto table = Categories::load_shipped();
  REQUIRE(table);
  std::vector<std::string> missing;
  for (const pb::SymptomCategory& category : table->table().categories()) {
    if (categories.count(category.id()) == 0) missing.push_back(category.id());
  }
  CHECK(missing.empty());
}

TEST_CASE("every lab has sources, and the repairs that all labs offer are patches",
          "[faults][lessons]") {
  for (const auto& entry : shipped_labs().entries()) {
    INFO(entry->lab.id());
    CHECK((entry->lab.sources_size() > 0 || entry->fault->fault.sources_size() > 0));
  }
  const auto repairs = shipped_repairs();
  REQUIRE(repairs);
  for (const pb::Repair& repair : repairs->repairs()) {
    std::string line = repair.write();
    for (const char* word : {"RANK", "NODE", "NIC"}) {
      for (size_t at = line.find(word); at != line.npos; at = line.find(word)) {
        line.replace(at, std::string_view(word).size(), "1");
      }
    }
    INFO(line);
    const auto patch = sim::parse_patch(line, "repairs.yaml");
    REQUIRE(patch);
    if (!patch->has_undo()) continue;
    const sim::Transform* undone = sim::find_transform(patch->undo().transform());
    REQUIRE(undone != nullptr);
    CHECK(undone->acts_on != sim::ActsOn::kDocument);
  }
}

TEST_CASE("a lab that breaks the schema is refused where it does", "[faults][lessons]") {
  struct Case {
    std::string from, to, where, what;
  };
  const Case cases[] = {
      {"category: D2.2", "category: D9.9", "labs/L07.yaml:4:1", "no symptom category"},
      {"minutes: 20", "minutes: many", "labs/L07.yaml:6:10", ""},
      {"title:", "titel:", "labs/L07.yaml:3:1", ""},
      {"fault: F60", "fault: F06O", "labs/L07.yaml:", "no fault"},
      {"parameter: factor", "parameter: speed", "labs/L07.yaml:", "no parameter"},
      {"remark: unneeded", "remark: wrong", "labs/L07.yaml:", "no remark"},
      {"id: L07", "id: L70", "labs/L07.yaml:2:1", "in a file named"},
      {"{rank.gpu}", "{rank.disk}", "labs/L07.yaml:", ""}};
  for (const Case& each : cases) {
    INFO(each.to);
    const auto lab = edited(each.from, each.to);
    REQUIRE_FALSE(lab);
    CHECK(lab.error().code == Code::kBadInput);
    CHECK(lab.error().where.rfind(each.where, 0) == 0);
    CHECK(lab.error().what.find(each.what) != std::string::npos);
  }
}

TEST_CASE("the skeleton of a new lab can be read", "[faults][lessons]") {
  const auto lab = read_lab(lab_skeleton("L90"), "mine/L90.yaml", fault_files());
  if (!lab) FAIL(lab.error().message());
  CHECK(lab->lab.id() == "L90");
}

TEST_CASE("another seed puts the fault elsewhere, the same seed at the same place",
          "[faults][lessons]") {
  const auto lab = shipped_labs().find("L07");
  REQUIRE(lab);
  std::set<std::string> ranks;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const auto once = place_fault(**lab, seed), again = place_fault(**lab, seed);
    REQUIRE(once);
    REQUIRE(again);
    CHECK(once->text() == again->text());
    ranks.insert(once->values.at("rank"));
  }
  CHECK(ranks.size() >= 10);
  CHECK(ranks.count("0") == 0);
}

TEST_CASE("the files of a working folder say what the job is, and hide what no file says",
          "[faults][lessons]") {
  SilentReporter reporter;
  for (const char* id : {"L06", "L07"}) {
    INFO(id);
    const LabJob job = job_of(id, 3);
    tests::TemporaryFolder folder;
    REQUIRE(start_lab(job, folder.path, Overwrite::kRefuse, reporter));
    const auto written = read_job(folder.path);
    if (!written) FAIL(written.error().message());
    CHECK(google::protobuf::util::MessageDifferencer::Equals(*written, job.written));
    const std::string text = text_of(folder.path / "job.yaml");
    CHECK(text.find("slow") == std::string::npos);
    CHECK(text.find(job.use.fault().id()) == std::string::npos);
    CHECK(std::filesystem::exists(folder.path / "evidence/screen.txt"));
    CHECK(std::filesystem::exists(folder.path / "evidence/nccl/rank-0.log"));
    CHECK_FALSE(start_lab(job, folder.path, Overwrite::kRefuse, reporter));
    // What `rehearse run` shows of it names nobody.
    const auto loaded = sim::load_scenario((folder.path / "job.yaml").string(), reporter);
    REQUIRE(loaded);
    const auto outcome = observe_job(*loaded, nullptr, reporter);
    REQUIRE(outcome);
    CHECK(outcome->patches().empty());
    CHECK(outcome->culprits().empty());
    CHECK(outcome->findings().empty());
    CHECK(outcome->symptom().reasons().empty());
  }
}

TEST_CASE("a lab is never written over other files", "[faults][lessons]") {
  SilentReporter reporter;
  const LabJob job = job_of("L01", 1);
  tests::TemporaryFolder folder;
  std::ofstream(folder.path / "README.md") << "mine\n";
  for (const Overwrite overwrite : {Overwrite::kRefuse, Overwrite::kReplace}) {
    const auto started = start_lab(job, folder.path, overwrite, reporter);
    REQUIRE_FALSE(started);
    CHECK(started.error().code == Code::kUsage);
  }
  CHECK(text_of(folder.path / "README.md") == "mine\n");
}

TEST_CASE("removing what is sealed does not repair a job", "[faults][lessons]") {
  SilentReporter reporter;
  const LabJob job = job_of("L07", 5);
  pb::Scenario written = job.written;
  written.clear_sealed();
  const auto check = assess(job, written, reporter);
  REQUIRE(check);
  CHECK_FALSE(check->passed());
  CHECK(has_remark(*check, remark::kNothingChanged));
  CHECK(has_remark(*check, remark::kStillThere));
}

TEST_CASE("emptying the environment is no repair of one variable", "[faults][lessons]") {
  SilentReporter reporter;
  const LabJob job = job_of("L06", 5);
  pb::Scenario written = job.written;
  for (pb::NodeLaunch& node : *written.mutable_launch()->mutable_nodes()) node.clear_env();
  const auto emptied = assess(job, written, reporter);
  REQUIRE(emptied);
  CHECK_FALSE(emptied->passed());
  CHECK(has_remark(*emptied, remark::kTooBroad));
  // One that was in order may go.
  written = job.written;
  for (pb::NodeLaunch& node : *written.mutable_launch()->mutable_nodes()) {
    node.mutable_env()->erase("NCCL_IB_DISABLE");
    node.mutable_env()->erase("NCCL_DEBUG");
  }
  const auto repaired = assess(job, written, reporter);
  REQUIRE(repaired);
  CHECK(repaired->passed());
}

TEST_CASE("two labs played through: what is promised comes out", "[faults][lessons]") {
  SilentReporter reporter;
  for (const char* id : {"L01", "L07"}) {
    const auto played = play_lab(job_of(id, 1), reporter);
    if (!played) FAIL(id << ": " << played.error().message());
    for (const Played& each : *played) {
      INFO(id << ", " << each.what << ": " << each.said);
      CHECK(each.as_promised);
    }
  }
}

TEST_CASE("points: hints cost, looking at the solution costs all", "[faults][lessons]") {
  pb::LabScript script;
  for (const uint32_t cost : {10u, 20u, 80u}) script.add_hints()->set_cost(cost);
  pb::LabState state;
  CHECK(score_of(script, state) == 0);
  state.set_passed(true);
  CHECK(score_of(script, state) == 100);
  state.set_hints(2);
  CHECK(score_of(script, state) == 70);
  state.set_hints(3);
  CHECK(score_of(script, state) == 0);
  state.set_hints(0);
  state.set_gave_up(true);
  CHECK(score_of(script, state) == 0);
}

}  // namespace rehearse::lessons_test
