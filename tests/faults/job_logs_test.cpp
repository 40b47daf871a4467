// SPDX-License-Identifier: Apache-2.0
// What logs and dumps tell of a run, and causes found from them alone.
#include "faults/diagnose/job_logs.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "base/install.hpp"
#include "faults/diagnose/error_texts.hpp"
#include "faults/diagnose/from_logs.hpp"
#include "faults/diagnose/logs.hpp"
#include "faults/diagnose/observable.hpp"
#include "faults/symptoms/classifier.hpp"
#include "tests/temporary_folder.hpp"

namespace rehearse::job_logs_test {
using namespace rehearse;
using namespace rehearse::faults;

namespace {

const FaultCatalogue& catalogue() {
  static const auto loaded = FaultCatalogue::load_shipped();
  REQUIRE(loaded);
  return *loaded;
}

struct Job {
  SilentReporter reporter;
  World world = simulated_world(reporter);
  sim::Scenario healthy;
  pb::Outcome baseline;

  explicit Job(const char* name, const sim::Assignments& written = {}) {
    auto loaded = sim::load_scenario(name, written, reporter);
    REQUIRE(loaded);
    healthy = std::move(*loaded);
    auto run = world.simulate(healthy);
    REQUIRE(run);
    baseline = std::move(*run);
  }

  [[nodiscard]] LogFiles files_of(const char* fault) const {
    sim::Scenario broken = healthy;
    const auto patches = patches_of(*parse_fault(fault, catalogue()), broken.document);
    REQUIRE(patches);
    for (const pb::Patch& patch : *patches) REQUIRE(world.apply(broken, patch));
    const auto outcome = world.simulate(broken);
    REQUIRE(outcome);
    const auto files = log_files(broken, *outcome);
    REQUIRE(files);
    return *files;
  }
};

// Few faults are enough where only these matter.
FaultCatalogue some_of(std::initializer_list<std::string> ids, const tests::TemporaryFolder& into) {
  const auto all = shipped("faults/catalogue");
  REQUIRE(all);
  for (const std::string& id : ids) {
    std::filesystem::copy_file(*all / (id + ".yaml"), into.path / (id + ".yaml"));
  }
  const std::filesystem::path folders[] = {into.path};
  auto few = FaultCatalogue::load(folders);
  REQUIRE(few);
  return std::move(*few);
}

}  // namespace

TEST_CASE("errors that ranks printed are told from other lines", "[faults][logs]") {
  const auto errors = printed_errors(
      "step 3 loss 2.1\n"
      "[rank5]: RuntimeError: CUDA error: an illegal memory access was encountered\n"
      "7: torch.distributed.DistBackendError: NCCL error in: x.cpp\r\n"
      "[1,2]<stderr>:Segmentation fault (core dumped)\n"
      "node0:1000:1000 [0] NCCL WARN Call to connect failed\n"
      "ValueError: host not found\n"
      "ValueError: host not found\n",
      11u);
  REQUIRE(errors.size() == 4);
  CHECK(errors[0].rank == 5u);
  CHECK(errors[0].text.starts_with("RuntimeError"));
  CHECK(errors[1].rank == 7u);
  CHECK(errors[1].text.ends_with("x.cpp"));
  CHECK(errors[2].rank == 2u);
  CHECK(errors[3].rank == 11u);
  CHECK(printed_errors("", {}).empty());
  CHECK_FALSE(printed_errors("RuntimeError", {})[0].rank);
}

TEST_CASE("logs of a healthy job tell nothing", "[faults][logs]") {
  const Job job("ddp-16");
  auto files = log_files(job.healthy, job.baseline);
  REQUIRE(files);
  const auto symptom = [&] {
    const JobLogs logs = read_logs(*files);
    CHECK(logs.printed.empty());
    const auto diagnosis = diagnose_from_logs(
        {.logs = logs, .healthy = job.healthy, .simulated = job.baseline}, catalogue(), job.world);
    REQUIRE(diagnosis);
    return diagnosis->symptom().id();
  };
  CHECK(symptom() == kHealthy);
  // NCCL's lines alone, as NCCL_DEBUG_FILE has them: nobody knows how many steps there were.
  std::string& first = files->at("rank-0.log");
  first.erase(0, first.find('\n') + 1);
  first.erase(first.find("Train Epoch"));
  CHECK(symptom() == kHealthy);
  // Neither where the script tells of its steps in its own way.
  const std::string of_nccl = first;
  first += "schritt 1 fertig\n";
  CHECK(symptom() == kHealthy);
  for (int step = 2; step < 20; ++step) first += "schritt " + std::to_string(step) + " fertig\n";
  CHECK(symptom() == kHealthy);
  // Or tells of every hundredth.
  first = of_nccl;
  for (const char* step : {"100", "200"}) {
    first += std::string("iter ") + step + ": loss 5.4321, time 412.00ms, mfu 31.20%\n";
  }
  CHECK(symptom() == kHealthy);
}

TEST_CASE("a job that stops without a word is seen by the steps that are not there",
          "[faults][logs][engine]") {
  const Job job("ddp-16");
  const JobLogs logs = read_logs(job.files_of("F26:rank=6,at=100ms"));
  CHECK(logs.printed.empty());
  const auto diagnosis = diagnose_from_logs(
      {.logs = logs, .healthy = job.healthy, .simulated = job.baseline}, catalogue(), job.world);
  REQUIRE(diagnosis);
  CHECK(diagnosis->symptom().id() == "D2.1");
  REQUIRE(diagnosis->causes_size() > 0);
  CHECK(diagnosis->causes(0).fault() == "F26");
}

TEST_CASE("the whole run of the cause tells the symptom that its logs do not",
          "[faults][logs][engine]") {
  const Job job("ddp-16");
  // Uneven inputs look like any hang; a refused connection is given up after a minute, not at once.
  for (const auto& [fault, symptom] :
       {std::pair{"F20:rank=3,steps=2", "C6"}, std::pair{"F07:node=1,interface=lo", "B2"}}) {
    INFO(fault);
    const JobLogs logs = read_logs(job.files_of(fault));
    const auto diagnosis = diagnose_from_logs(
        {.logs = logs, .healthy = job.healthy, .simulated = job.baseline}, catalogue(), job.world);
    REQUIRE(diagnosis);
    CHECK(diagnosis->symptom().id() == symptom);
  }
}

TEST_CASE("a process that was never started is told by its silence", "[faults][logs]") {
  const Job job("ddp-16");
  LogFiles files = job.files_of("F05");
  CHECK(outcome_in(read_logs(files), job.healthy.document).findings_size() == 1);  // no step
  files.at("rank-5.log").clear();
  const pb::Outcome seen = outcome_in(read_logs(files), job.healthy.document);
  CHECK(steps_told(seen) == 0u);
  REQUIRE(seen.findings_size() == 2);
  CHECK(seen.findings(1).first() == "rank 5 prints nothing");
}

TEST_CASE("what a job without NCCL prints on one rank is enough", "[faults][logs]") {
  Job job("ddp-16");
  pb::Patch gloo;
  (*gloo.mutable_set())["launch.backend"] = "gloo";
  REQUIRE(job.world.apply(job.healthy, gloo));
  const auto run = job.world.simulate(job.healthy);
  REQUIRE(run);
  const auto files = log_files(job.healthy, *run);
  REQUIRE(files);
  const std::string& first = files->at("rank-0.log");
  REQUIRE(std::count_if(files->begin(), files->end(),
                        [](const auto& file) { return !file.second.empty(); }) == 1);
  // All files, that of rank 0, the output of all together, and the file of each of which others have words too.
  LogFiles spoken = *files;
  for (auto& [name, text] : spoken) text += "loading\n";
  for (const LogFiles& kept :
       {*files, LogFiles{{"rank-0.log", first}}, LogFiles{{"train.log", first}}, spoken}) {
    const auto diagnosis =
        diagnose_from_logs({.logs = read_logs(kept), .healthy = job.healthy, .simulated = *run},
                           catalogue(), job.world);
    REQUIRE(diagnosis);
    CHECK(diagnosis->symptom().id() == kHealthy);
  }
}

TEST_CASE("processes that work alone are told by NCCL's words, not by steps on every rank",
          "[faults][logs]") {
  const Job job("ddp-16");
  const auto alone = [&](const LogFiles& files) {
    const pb::Outcome seen = outcome_in(read_logs(files), job.healthy.document);
    return std::any_of(seen.findings().begin(), seen.findings().end(), [](const auto& finding) {
      return finding.first() == "several processes train, without a communicator";
    });
  };
  LogFiles files = job.files_of("F14");
  CHECK(alone(files));
  for (auto& [name, text] : files) text.erase(0, text.find("Train Epoch"));
  CHECK_FALSE(alone(files));
}

TEST_CASE("a dump without the rank's output says nothing of what it printed", "[faults][logs]") {
  const Job job("ddp-16");
  LogFiles files = job.files_of("F21:rank=3");
  std::erase_if(files, [](const auto& file) {
    return file.first.ends_with(".log") && file.first != "rank-0.log";
  });
  REQUIRE(files.size() > 2);
  const pb::Outcome seen = outcome_in(read_logs(files), job.healthy.document);
  for (const pb::OutcomeFinding& finding : seen.findings()) {
    CHECK(finding.first().find("prints nothing") == std::string::npos);
  }
}

TEST_CASE("causes are found from logs and dumps alone", "[faults][logs][engine]") {
  const Job job("ddp-16");
  for (const char* fault : {"F16:node=1", "F21:rank=5,nth=3", "F05", "F37:node=0", "F34"}) {
    INFO(fault);
    LogFiles files = job.files_of(fault);
    // One rank's output got lost.
    files.erase("rank-7.log");
    files.erase("nccl_trace_rank_7.json");
    const JobLogs logs = read_logs(files);
    const auto diagnosis = diagnose_from_logs(
        {.logs = logs, .healthy = job.healthy, .simulated = job.baseline}, catalogue(), job.world);
    REQUIRE(diagnosis);
    REQUIRE(diagnosis->causes_size() > 0);
    const auto use = parse_fault(fault, catalogue());
    CHECK(diagnosis->causes(0).fault() == use->fault().id());
    CHECK(diagnosis->causes(0).simulated());
    for (const char* place : {"node", "rank"}) {
      if (!use->values.count(place)) continue;
      const auto found = parse_fault(diagnosis->causes(0).use(), catalogue());
      REQUIRE(found);
      if (found->values.count(place)) CHECK(found->values.at(place) == use->values.at(place));
    }
  }
}

TEST_CASE("of a slot and an adapter that leave the same logs neither is named alone",
          "[faults][logs][engine]") {
  const Job job("moe-16");
  const LogFiles files = job.files_of("F66:node=1,gpu=2");
  REQUIRE(files == job.files_of("F65:node=1,nic=2,bandwidth=5Gbps"));
  const tests::TemporaryFolder folder;
  const FaultCatalogue few = some_of({"F60", "F65", "F66", "F68"}, folder);
  const JobLogs logs = read_logs(files);
  const auto diagnosis = diagnose_from_logs(
      {.logs = logs, .healthy = job.healthy, .simulated = job.baseline}, few, job.world);
  REQUIRE(diagnosis);
  REQUIRE(diagnosis->causes_size() > 1);
  const pb::Cause& first = diagnosis->causes(0);
  CHECK(first.score() > 0.99);
  REQUIRE(first.alike_size() == 1);
  CHECK(first.alike(0) == (first.fault() == "F65" ? "F66" : "F65"));
  CHECK(first.culprits().empty());
  std::vector<std::string> uses(first.elsewhere().begin(), first.elsewhere().end());
  uses.push_back(first.use());
  const auto holds = [&](const char* place) {
    return std::any_of(uses.begin(), uses.end(),
                       [&](const std::string& use) { return use.starts_with(place); });
  };
  CHECK(holds("F65:node=1,nic=2"));
  CHECK(holds("F66:node=1,gpu=2"));
  CHECK_FALSE(holds("F66:node=0"));
}

TEST_CASE("a place is known where only other values of the cause leave the same logs",
          "[faults][logs][engine]") {
  const Job job("ddp-16");
  // Any long task ends the job alike, any device of the node is taken twice; the rank that is there twice stands in the text.
  for (const auto& [fault, place] :
       {std::pair{"F25:rank=7,task=2000s,timeout=300s", "rank=7"},
        std::pair{"F09:node=1,device=3", "node=1"}, std::pair{"F06:rank=5,as=7", "as=7"}}) {
    INFO(fault);
    const JobLogs logs = read_logs(job.files_of(fault));
    const auto diagnosis = diagnose_from_logs(
        {.logs = logs, .healthy = job.healthy, .simulated = job.baseline}, catalogue(), job.world);
    REQUIRE(diagnosis);
    REQUIRE(diagnosis->causes_size() > 0);
    const pb::Cause& first = diagnosis->causes(0);
    CHECK(first.fault() == parse_fault(fault, catalogue())->fault().id());
    CHECK(first.use().find(place) != std::string::npos);
    const auto here = places_of(*parse_fault(first.use(), catalogue()), job.healthy.document);
    for (const std::string& other : first.elsewhere()) {
      INFO(other);
      CHECK(places_of(*parse_fault(other, catalogue()), job.healthy.document) != here);
      CHECK(other.find(place) != std::string::npos);
    }
    const bool twice =
        first.fault() == "F06";  // which process takes itself for rank 7 nothing tells
    CHECK(first.elsewhere().empty() != twice);
  }
}

TEST_CASE("ranks that error texts name are read", "[faults][logs]") {
  using Ranks = std::set<uint32_t>;
  CHECK(ranks_named_in("rank 9 and rank 8 both on CUDA device 7000") == Ranks{8, 9});
  CHECK(ranks_named_in("waiting for remainder of ranks [missing ranks: 3, 11]") == Ranks{3, 11});
  CHECK(ranks_named_in("ranks: , rank x, rank ") == Ranks{});
  CHECK(ranks_named_in("rank 99999999999").empty());
}

TEST_CASE("Horovod's stall check tells who is missing", "[faults][logs][engine]") {
  const Job job("horovod-16");
  const tests::TemporaryFolder folder;
  const FaultCatalogue few = some_of({"F20", "F24", "F26", "F71"}, folder);
  const JobLogs logs = read_logs(job.files_of("F24:rank=11,at=100ms,silent=true"));
  REQUIRE(logs.printed.size() == 1);
  const auto diagnosis = diagnose_from_logs(
      {.logs = logs, .healthy = job.healthy, .simulated = job.baseline}, few, job.world);
  REQUIRE(diagnosis);
  // Whether it stands still or had fewer inputs nothing tells.
  REQUIRE(diagnosis->causes_size() > 0);
  REQUIRE(diagnosis->causes(0).culprits_size() == 1);
  CHECK(diagnosis->causes(0).culprits(0).rank() == 11);
}

TEST_CASE("a GPU is found that logs do not point at", "[faults][logs][engine]") {
  const Job job("moe-16");
  const JobLogs logs = read_logs(job.files_of("F68:node=1,gpu=3"));
  const auto diagnosis = diagnose_from_logs(
      {.logs = logs, .healthy = job.healthy, .simulated = job.baseline}, catalogue(), job.world);
  REQUIRE(diagnosis);
  REQUIRE(diagnosis->causes_size() > 0);
  CHECK(diagnosis->causes(0).fault() == "F68");
  CHECK(diagnosis->causes(0).use().starts_with("F68:node=1,gpu=3"));
  CHECK_FALSE(diagnosis->unknown());
}

TEST_CASE("a GPU is found whose fault is stronger than usual ones, though others took the trials",
          "[faults][logs][engine]") {
  // Of 32 GPUs, with so few links left that there are other channels.
  const Job job("moe-16", {{"platform.scale", "4"}, {"trace.synth.dp", "32"}});
  const LogFiles files = job.files_of("F68:node=2,gpu=3,links=1");
  const tests::TemporaryFolder folder;
  const FaultCatalogue few = some_of({"F60", "F65", "F66", "F68"}, folder);
  const JobLogs logs = read_logs(files);
  const auto diagnosis = diagnose_from_logs(
      {.logs = logs, .healthy = job.healthy, .simulated = job.baseline, .max_simulations = 20}, few,
      job.world);
  REQUIRE(diagnosis);
  REQUIRE(diagnosis->causes_size() > 0);
  CHECK(diagnosis->causes(0).use() == "F68:node=2,gpu=3,links=1");
  CHECK(diagnosis->causes(0).together().empty());
}

TEST_CASE("dumps, NCCL's log and printed errors are judged together without a scenario",
          "[faults][logs]") {
  const Job job("ddp-16");
  const JobLogs logs = read_logs(job.files_of("F21:rank=5,nth=3"));
  REQUIRE_FALSE(logs.recorders.empty());
  REQUIRE_FALSE(logs.printed.empty());
  const pb::Diagnosis diagnosis = diagnose_by_rules(logs, catalogue());
  CHECK(diagnosis.symptom().id() == "D2.1");
  REQUIRE(diagnosis.causes_size() > 0);
  REQUIRE(diagnosis.causes(0).culprits_size() == 1);
  CHECK(diagnosis.causes(0).culprits(0).rank() == 5);
  const pb::Diagnosis nothing = diagnose_by_rules({}, catalogue());
  CHECK(nothing.symptom().id() == kHealthy);
}

}  // namespace rehearse::job_logs_test
