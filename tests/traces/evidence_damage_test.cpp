// SPDX-License-Identifier: Apache-2.0
// Damaged evidence: cut at every 1 % and with single bits flipped, each file is read with findings
// or refused with a reason; what is read can be stored.
#include <fstream>
#include <sstream>

#include "tests/project.hpp"
#include "tests/skip.hpp"
#include "tests/traces/evidence_samples.hpp"
#include "tests/traces/import_samples.hpp"
#include "traces/model/rtrace.hpp"

namespace rehearse::evidence_damage_test {
using namespace rehearse;
using namespace rehearse::traces;
using samples::read_bytes;

namespace {

void check_answer(const std::string& bytes, const std::string& name) {
  const auto got = read_bytes(bytes, name);
  if (!got) {
    CHECK_FALSE(got.error().what.empty());
    CHECK_FALSE(got.error().fix.empty());
    return;
  }
  for (const pb::Evidence& e : got->evidence) CHECK(complaint_about(e).empty());
}

void damage(const std::string& whole, const std::string& name, int flips) {
  INFO(name);
  for (size_t percent = 0; percent < 100; ++percent) {
    check_answer(whole.substr(0, whole.size() * percent / 100), name);
  }
  uint64_t state = 7;
  for (int i = 0; i < flips; ++i) {
    std::string bytes = whole;
    state = state * 6364136223846793005u + 1442695040888963407u;
    bytes[(state >> 20) % bytes.size()] ^= static_cast<char>(1 << ((state >> 60) & 7));
    check_answer(bytes, name);
  }
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

}  // namespace

TEST_CASE("damaged evidence is read in part or refused", "[evidence][damage]") {
  damage(samples::kTwoRanks, "log.txt", 300);
  damage(samples::kTable, "all_reduce.txt", 300);
  damage(samples::kInspector, "inspector.jsonl", 300);
  damage(samples::kRecorder, "rank1.json", 300);
}

TEST_CASE("damaged seeds of the fuzz targets are read in part or refused", "[evidence][damage]") {
  size_t files = 0;
  for (const char* reader : {"flight_recorder", "inspector", "nccl_log", "nccl_tests_csv",
                             "nccl_tests_json", "pickle"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(tests::project() / "tests/corpus" / reader)) {
      const std::string whole = text_of(entry.path());
      if (whole.size() > 20'000) continue;  // a log of a whole run takes long
      damage(whole, entry.path().filename().string(), 100);
      ++files;
    }
  }
  CHECK(files >= 15);
}

TEST_CASE("damaged real evidence is read in part or refused", "[evidence][damage][real]") {
  const auto data = rehearse::tests::real_data();
  if (!data) return;
  for (const char* file :
       {"flight_recorder/gpu_error_1st/pickle/_dump_12",
        "flight_recorder/lock_gil_1st/json/rank09.json", "nccl/logs/h100_nvswitch_auto_algo.txt",
        "nccl/tests/superbenchmark_a100/nccl_reduce.log"}) {
    if (!std::filesystem::exists(*data / file)) continue;
    damage(text_of(*data / file), file, 40);
  }
}

TEST_CASE("evidence attaches to a trace, stands alone and is added to a .rtrace",
          "[evidence][import]") {
  const samples::TempFolder folder;
  const auto log = folder.write("nccl.log", samples::kTwoRanks);
  const auto table = folder.write("all_reduce.txt", samples::kTable);
  const auto profile = folder.write(
      "rank0.json",
      samples::document(R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":2,)"
                        R"("args":{"stream":7,"correlation":1}})"));
  SilentReporter silent;
  const auto alone = import_files({log}, {}, silent);
  REQUIRE(alone);
  CHECK(alone->trace.ranks.empty());
  CHECK(alone->trace.evidence.size() == 1);
  CHECK(alone->trace.header.nccl_version() == "2.21.5");
  const auto both = import_files({profile, log}, {}, silent);
  REQUIRE(both);
  CHECK(both->trace.ranks.size() == 1);
  CHECK(both->trace.evidence.size() == 1);
  const auto stored = folder.path() / "job.rtrace";
  REQUIRE(write_rtrace(both->trace, stored, Overwrite::kReplace));
  const auto added = import_files({stored, table}, {}, silent);
  REQUIRE(added);
  CHECK(added->trace.ranks.size() == 1);
  REQUIRE(added->trace.evidence.size() == 2);
  CHECK(added->trace.evidence[0].SerializeAsString() ==
        both->trace.evidence[0].SerializeAsString());
  CHECK(added->trace.header.inputs_size() == 3);
  CHECK_FALSE(import_files({stored, profile}, {}, silent));
}

}  // namespace rehearse::evidence_damage_test
