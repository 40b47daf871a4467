// SPDX-License-Identifier: Apache-2.0
// Every variable of PyTorch, Gloo, torchrun, Horovod, Open MPI, Slurm and CUDA that is modelled changes what comes of a
// run. Those of NCCL are in variables_test.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <set>

#include "sim/simulate.hpp"
#include "tests/sim/job16.hpp"

namespace rehearse::launch_variables_test {
using namespace rehearse;
using namespace rehearse::sim;

namespace {

using Words = std::vector<std::string>;

constexpr const char* kHorovod =
    "trace:\n"
    "  synth: {model: resnet50, dp: 16, micro_batch: 64, steps: 2, gpu: v100-sxm2-32gb, dtype: "
    "fp16,"
    " gpus_per_node: 8, framework: horovod, fusion: 8MiB, seed: 6}\n"
    "platform: {like: dgx1-v100, scale: 2}\n"
    "launch: {framework: horovod, launcher: horovodrun, nccl_version: 2.14.3}\n";

Scenario load(const char* document) {
  static std::map<std::string, Scenario> known;
  const auto at = known.find(document);
  if (at != known.end()) return at->second;
  const tests::TemporaryFolder folder;
  std::ofstream(folder.path / "job.yaml") << document;
  SilentReporter silent;
  auto scenario = load_scenario((folder.path / "job.yaml").string(), silent);
  if (!scenario) FAIL(scenario.error().message());
  return known.emplace(document, std::move(*scenario)).first->second;
}

pb::Outcome run(const char* document, const Words& changes) {
  Scenario scenario = load(document);
  for (const std::string& text : changes) {
    INFO(text);
    const auto done = tests::change(scenario, text);
    if (!done) FAIL(done.error().message());
  }
  SilentReporter silent;
  auto outcome = simulate(scenario, Detail::kSummary | Detail::kRecords, silent);
  if (!outcome) FAIL(outcome.error().message());
  return *outcome;
}

// What came of it, and nothing of what was asked or said about it.
std::string picture(const pb::Outcome& outcome) {
  std::string out =
      fmt::format("{} {} {} {} {}", static_cast<int>(outcome.verdict()), outcome.end_ns(),
                  outcome.step_time_ns().mean(), outcome.first_failure().SerializeAsString(),
                  outcome.flight_records().size());
  for (const pb::ErrorText& text : outcome.error_text()) out += text.SerializeAsString();
  for (const pb::TimerEvent& timer : outcome.timers()) out += timer.SerializeAsString();
  for (const pb::Culprit& culprit : outcome.culprits()) out += culprit.SerializeAsString();
  return out;
}

struct Case {
  const char* name;
  const char* value;
  const char* job = tests::kJob16;
  Words beside = {};
  int rank = -1;  // that has it alone; negative: all
};

const std::string kMissing = "skip-collective: {rank: 5, nth: 1}";
const std::string kOther = "resize-collective: {rank: 5, nth: 1, factor: 0.5}";
const std::string kAbort = "launch.env.TORCH_NCCL_ASYNC_ERROR_HANDLING=1";
const std::string kMpirun = "launch.launcher=mpirun";
const std::string kSrun = "launch.launcher=srun";
const std::string kSlow = "platform.nodes[*].nics[*].bandwidth=1Gbps";  // collectives queue up
const std::string kOneCore = "launch.ranks[3].cpus=1";
const std::string kIgnores = "launch.env.NCCL_IGNORE_CPU_AFFINITY=1";
const std::string kByHand = "launch.launcher=plain";
const std::string kOfSixteen = "launch.env.HOROVOD_SIZE=16";
const std::string kNoCycle = "launch.env.HOROVOD_CYCLE_TIME=";

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "0", tests::kJob16, {kMissing}},
      {"TORCH_NCCL_BLOCKING_WAIT", "1", tests::kJob16, {kMissing}},
      {"TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", "100", tests::kJob16, {kMissing, kAbort}},
      {"TORCH_NCCL_ENABLE_MONITORING", "0", tests::kJob16, {kMissing, kAbort}},
      {"TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC", "1000", tests::kJob16, {kMissing, kAbort}},
      {"TORCH_NCCL_COORD_CHECK_MILSEC", "5000", tests::kJob16, {kMissing, kAbort}},
      {"TORCH_NCCL_DUMP_ON_TIMEOUT", "0", tests::kJob16, {kMissing, kAbort}},
      {"TORCH_NCCL_TRACE_BUFFER_SIZE", "0", tests::kJob16, {kMissing}},
      {"TORCH_NCCL_DESYNC_DEBUG", "1", tests::kJob16, {kMissing}, 0},
      {"TORCH_DISTRIBUTED_DEBUG", "DETAIL", tests::kJob16, {kOther}},
      {"GLOO_SOCKET_IFNAME", "wl0", tests::kJob16, {"launch.backend=gloo"}, 9},
      {"NCCL_SOCKET_IFNAME", "wl0", tests::kJob16, {}, 9},
      {"RANK", "3", tests::kJob16, {}, 9},
      {"WORLD_SIZE", "17"},
      {"LOCAL_RANK", "9", tests::kJob16, {}, 9},
      {"LOCAL_WORLD_SIZE", "4", tests::kJob16, {kByHand}},
      {"MASTER_ADDR", "nosuchhost", tests::kJob16, {}, 8},
      {"MASTER_PORT", "1234", tests::kJob16, {}, 8},
      {"CUDA_VISIBLE_DEVICES", "0", tests::kJob16, {}, 9},
      {"HOROVOD_CYCLE_TIME", "20", kHorovod},
      {"HOROVOD_FUSION_THRESHOLD", "1048576", kHorovod},
      {"HOROVOD_FUSION_THRESHOLD", "1048576", kHorovod, {}, 3},
      {"HOROVOD_CACHE_CAPACITY", "0", kHorovod},
      {"HOROVOD_HIERARCHICAL_ALLREDUCE", "1", kHorovod},
      {"HOROVOD_HIERARCHICAL_ALLREDUCE", "1", kHorovod, {}, 3},
      {"HOROVOD_TORUS_ALLREDUCE", "1", kHorovod},
      {"HOROVOD_NUM_NCCL_STREAMS", "2", kHorovod, {kSlow}},
      {"HOROVOD_NUM_NCCL_STREAMS", "2", kHorovod, {}, 3},
      {"HOROVOD_BATCH_D2D_MEMCOPIES", "0", kHorovod},
      {"HOROVOD_BATCH_D2D_MEMCOPIES", "0", kHorovod, {}, 3},
      {"HOROVOD_AUTOTUNE", "1", kHorovod, {kNoCycle}},
      {"HOROVOD_STALL_CHECK_TIME_SECONDS", "30", kHorovod, {kMissing}},
      {"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "90", kHorovod, {kMissing}},
      {"HOROVOD_STALL_CHECK_DISABLE", "1", kHorovod, {kMissing}},
      {"HOROVOD_THREAD_AFFINITY", "8,9,10,11,12,13,14,15", kHorovod, {kOneCore, kIgnores}},
      {"NCCL_IGNORE_CPU_AFFINITY", "1", tests::kJob16, {"launch.ranks[3].cpus=1"}, 3},
      {"HOROVOD_CONTROLLER", "gloo", kHorovod},
      {"HOROVOD_CPU_OPERATIONS", "MPI", kHorovod, {"launch.backend=gloo"}},
      {"HOROVOD_GLOO_IFACE", "wl0", kHorovod, {}, 9},
      {"HOROVOD_GLOO_RENDEZVOUS_ADDR", "nosuchhost", kHorovod, {kByHand, kOfSixteen}},
      {"HOROVOD_GLOO_RENDEZVOUS_PORT",
       "4000",
       kHorovod,
       {kByHand, kOfSixteen, "launch.env.HOROVOD_GLOO_RENDEZVOUS_ADDR=10.0.0.1"}},
      {"HOROVOD_GLOO_TIMEOUT_SECONDS", "5", kHorovod, {"launch.ranks[9].absent=true"}},
      {"HOROVOD_RANK", "3", kHorovod, {}, 9},
      {"HOROVOD_SIZE", "17", kHorovod},
      {"HOROVOD_LOCAL_RANK", "9", kHorovod, {}, 9},
      {"HOROVOD_LOCAL_SIZE", "9", kHorovod},
      {"HOROVOD_LOCAL_SIZE", "4", kHorovod, {}, 9},
      {"HOROVOD_CROSS_SIZE", "1", kHorovod, {}, 9},
      {"HOROVOD_CROSS_RANK", "0", kHorovod, {}, 9},
      {"OMP_NUM_THREADS", "256", kHorovod},
      {"OMP_NUM_THREADS", "2048", kHorovod, {}, 3},
      {"OMPI_COMM_WORLD_RANK", "3", kHorovod, {kMpirun}, 9},
      {"OMPI_COMM_WORLD_SIZE", "17", kHorovod, {kMpirun}},
      {"OMPI_COMM_WORLD_LOCAL_RANK", "9", kHorovod, {kMpirun}, 9},
      {"OMPI_MCA_btl_tcp_if_include", "wl0", kHorovod, {kMpirun}, 9},
      {"OMPI_MCA_btl_tcp_if_exclude", "lo,eth0,ib0,ib1,ib2,ib3", kHorovod, {kMpirun}},
      {"OMPI_MCA_oob_tcp_if_include", "wl0", kHorovod, {kMpirun}},
      {"OMPI_MCA_oob_tcp_if_exclude", "eth0,lo,docker0,ib0,ib1,ib2,ib3", kHorovod, {kMpirun}},
      {"OMPI_MCA_btl", "tcp,self", kHorovod, {kMpirun, "launch.backend=mpi"}},
      {"OMPI_MCA_plm_rsh_args",
       "-p 2222",
       kHorovod,
       {kMpirun, "platform.nodes[1].firewall=[{direction: inbound, ports: 2222, action: reject}]"}},
      {"SLURM_PROCID", "3", tests::kJob16, {kSrun}, 9},
      {"SLURM_NTASKS", "17", tests::kJob16, {kSrun}},
      {"SLURM_LOCALID", "9", tests::kJob16, {kSrun}, 9},
  };
  return all;
}

// Variables that launchers and libraries have and that change nothing in the simulation of a run: where they count, or
// why they do not.
const std::map<std::string, const char*>& elsewhere() {
  static const std::map<std::string, const char*> all = {
      {"GROUP_RANK", "`check`: the node's number"},
      {"ROLE_RANK", "nothing reads it"},
      {"ROLE_WORLD_SIZE", "nothing reads it"},
      {"TORCHELASTIC_RESTART_COUNT",
       "a run ends with its first failure; `failures` counts restarts"},
      {"TORCHELASTIC_MAX_RESTARTS",
       "a run ends with its first failure; `failures` counts restarts"},
      {"TORCHELASTIC_RUN_ID", "two jobs that meet are launch.ranks with one rank twice (F06)"},
      {"HOROVOD_MPI_THREADS_DISABLE", "`check`: horovod-mpi-threads"},
      {"HOROVOD_NCCL_LINK",
       "a choice when Horovod is built; node.versions tells the library (F12)"},
      {"HOROVOD_TIMELINE", "what is written down: `import` reads it"},
      {"HOROVOD_TIMELINE_MARK_CYCLES", "what is written down: `import` reads it"},
      {"OMPI_COMM_WORLD_LOCAL_SIZE", "`check`: compared with the ranks of the node"},
      {"OMPI_COMM_WORLD_NODE_RANK", "follows from nodes and ranks"},
      {"OMPI_UNIVERSE_SIZE", "`check`: slots, compared with the ranks"},
      {"SLURM_NODEID", "follows from nodes and ranks"},
      {"SLURM_JOB_NODELIST", "`check`: hosts of a script"},
      {"SLURM_ARRAY_TASK_ID", "shards of `sweep`"},
      {"SLURM_ARRAY_TASK_COUNT", "shards of `sweep`"},
      {"SLURM_RESTART_COUNT", "a run ends with its first failure"},
      {"JOB_COMPLETION_INDEX", "shards of `sweep`"},
  };
  return all;
}

// The variables of frameworks, launchers and schedulers that a scenario may have, as they are written.
constexpr const char* kNames[] = {"TORCH_NCCL_ASYNC_ERROR_HANDLING",
                                  "TORCH_NCCL_BLOCKING_WAIT",
                                  "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",
                                  "TORCH_NCCL_ENABLE_MONITORING",
                                  "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC",
                                  "TORCH_NCCL_COORD_CHECK_MILSEC",
                                  "TORCH_NCCL_DUMP_ON_TIMEOUT",
                                  "TORCH_NCCL_TRACE_BUFFER_SIZE",
                                  "TORCH_NCCL_DESYNC_DEBUG",
                                  "TORCH_DISTRIBUTED_DEBUG",
                                  "GLOO_SOCKET_IFNAME",
                                  "NCCL_SOCKET_IFNAME",
                                  "RANK",
                                  "WORLD_SIZE",
                                  "LOCAL_RANK",
                                  "LOCAL_WORLD_SIZE",
                                  "GROUP_RANK",
                                  "ROLE_RANK",
                                  "ROLE_WORLD_SIZE",
                                  "MASTER_ADDR",
                                  "MASTER_PORT",
                                  "TORCHELASTIC_RESTART_COUNT",
                                  "TORCHELASTIC_MAX_RESTARTS",
                                  "TORCHELASTIC_RUN_ID",
                                  "OMP_NUM_THREADS",
                                  "HOROVOD_FUSION_THRESHOLD",
                                  "HOROVOD_CYCLE_TIME",
                                  "HOROVOD_CACHE_CAPACITY",
                                  "HOROVOD_HIERARCHICAL_ALLREDUCE",
                                  "HOROVOD_HIERARCHICAL_ALLGATHER",
                                  "HOROVOD_TORUS_ALLREDUCE",
                                  "HOROVOD_NUM_NCCL_STREAMS",
                                  "HOROVOD_BATCH_D2D_MEMCOPIES",
                                  "HOROVOD_AUTOTUNE",
                                  "HOROVOD_STALL_CHECK_TIME_SECONDS",
                                  "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS",
                                  "HOROVOD_STALL_CHECK_DISABLE",
                                  "HOROVOD_THREAD_AFFINITY",
                                  "HOROVOD_MPI_THREADS_DISABLE",
                                  "HOROVOD_CONTROLLER",
                                  "HOROVOD_CPU_OPERATIONS",
                                  "HOROVOD_GLOO_IFACE",
                                  "HOROVOD_GLOO_RENDEZVOUS_ADDR",
                                  "HOROVOD_GLOO_RENDEZVOUS_PORT",
                                  "HOROVOD_GLOO_TIMEOUT_SECONDS",
                                  "HOROVOD_RANK",
                                  "HOROVOD_LOCAL_RANK",
                                  "HOROVOD_CROSS_RANK",
                                  "HOROVOD_SIZE",
                                  "HOROVOD_LOCAL_SIZE",
                                  "HOROVOD_CROSS_SIZE",
                                  "HOROVOD_NCCL_LINK",
                                  "HOROVOD_TIMELINE",
                                  "HOROVOD_TIMELINE_MARK_CYCLES",
                                  "OMPI_COMM_WORLD_RANK",
                                  "OMPI_COMM_WORLD_SIZE",
                                  "OMPI_COMM_WORLD_LOCAL_RANK",
                                  "OMPI_COMM_WORLD_LOCAL_SIZE",
                                  "OMPI_COMM_WORLD_NODE_RANK",
                                  "OMPI_UNIVERSE_SIZE",
                                  "OMPI_MCA_btl_tcp_if_include",
                                  "OMPI_MCA_btl_tcp_if_exclude",
                                  "OMPI_MCA_oob_tcp_if_include",
                                  "OMPI_MCA_oob_tcp_if_exclude",
                                  "OMPI_MCA_btl",
                                  "OMPI_MCA_plm_rsh_args",
                                  "SLURM_PROCID",
                                  "SLURM_LOCALID",
                                  "SLURM_NTASKS",
                                  "SLURM_NODEID",
                                  "SLURM_JOB_NODELIST",
                                  "SLURM_ARRAY_TASK_ID",
                                  "SLURM_ARRAY_TASK_COUNT",
                                  "SLURM_RESTART_COUNT",
                                  "JOB_COMPLETION_INDEX",
                                  "CUDA_VISIBLE_DEVICES"};

}  // namespace

TEST_CASE("every variable of a launch is shown to act or says where it counts",
          "[sim][variables]") {
  for (const char* name : kNames) {
    INFO(name);
    // horovod_test makes the job of gathers that this one needs.
    const bool shown = std::string_view(name) == "HOROVOD_HIERARCHICAL_ALLGATHER" ||
                       std::any_of(cases().begin(), cases().end(),
                                   [&](const Case& c) { return std::string_view(c.name) == name; });
    CHECK(shown != (elsewhere().count(name) > 0));
  }
}

TEST_CASE("every variable of frameworks and launchers changes what comes of a run",
          "[sim][variables]") {
  std::map<std::string, std::string> without;
  for (const Case& c : cases()) {
    INFO(c.name << "=" << c.value);
    std::string key = c.job;
    for (const std::string& each : c.beside) key += each + "\n";
    if (without.count(key) == 0) without[key] = picture(run(c.job, c.beside));
    Words changes = c.beside;
    const std::string where = c.rank < 0 ? "launch" : fmt::format("launch.ranks[{}]", c.rank);
    changes.push_back(fmt::format("{}.env.{}={}", where, c.name, c.value));
    CHECK(picture(run(c.job, changes)) != without[key]);
  }
}

}  // namespace rehearse::launch_variables_test
