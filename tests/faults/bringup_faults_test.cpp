// SPDX-License-Identifier: Apache-2.0
// Every fault of the start of a job, one row each: injected by its patch it ends as the catalogue says, on the rank
// and at the time where that is known, with the telling part of the text that users reported; and its first fix
// brings back the healthy run.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <string>

#include "faults/fault_use.hpp"
#include "faults/symptoms/classifier.hpp"
#include "faults/world.hpp"
#include "tests/temporary_folder.hpp"

namespace rehearse::bringup_faults_test {
using namespace rehearse;
using namespace rehearse::faults;

namespace {

constexpr Nanos kSecond = 1'000'000'000;
constexpr Nanos kAnyTime = -1;
constexpr int kAnyRank = -1;

struct Row {
  std::string fault, scenario;
  std::vector<std::string> settings;  // of the healthy job
  pb::Verdict verdict;
  std::string symptom;
  int rank;         // that fails first
  Nanos time;       // to the failure
  double slowdown;  // of completed runs: at least
  std::string text;
  std::string source;
};

// The scenario of a row; "pcie" is a job on one machine without NVLink, "two-nets" one on machines without RDMA that have
// a fast and a slow interface.
sim::Scenario load(const Row& row, const std::filesystem::path& folder, Reporter& reporter) {
  std::string name = row.scenario;
  if (name == "pcie") {
    const auto path = folder / "pcie.yaml";
    std::ofstream(path)
        << "trace: dlrm-8\nplatform: {like: a100-pcie-8, scale: 1}\n"
           "launch: {framework: pytorch, framework_version: '2.4', launcher: torchrun, "
           "nccl_version: 2.21.5}\n";
    name = path.string();
  } else if (name == "two-nets") {
    const auto path = folder / "two-nets.yaml";
    std::ofstream out(path);
    out << "trace: moe-16\nplatform: {like: gcp-a2, scale: 2}\n"
           "launch: {framework: pytorch, framework_version: '2.4', launcher: torchrun, "
           "nccl_version: 2.21.5}\npatches:\n";
    for (const int n : {0, 1}) {
      out << fmt::format(
          "- set: {{\"platform.nodes[{0}].interfaces\": \"[{{name: eth0, kind: lan, bandwidth: "
          "12.5GB/s, addresses: [10.0.0.{1}/16]}}, {{name: eth1, kind: lan, network: slow, "
          "bandwidth: 1.25GB/s, addresses: [10.1.0.{1}/16]}}]\"}}\n",
          n, n + 1);
    }
    name = path.string();
  }
  auto scenario = sim::load_scenario(name, reporter);
  REQUIRE(scenario);
  for (const std::string& setting : row.settings) {
    const auto patch = sim::parse_assignment(setting);
    REQUIRE(patch);
    REQUIRE(sim::apply(*scenario, *patch));
  }
  return *scenario;
}

void apply_all(sim::Scenario& scenario, const std::vector<pb::Patch>& patches) {
  for (const pb::Patch& patch : patches) {
    const auto done = sim::apply(scenario, patch);
    INFO((done ? "" : done.error().message()));
    REQUIRE(done);
  }
}

std::string all_texts(const pb::Outcome& outcome) {
  std::string out;
  for (const pb::ErrorText& error : outcome.error_text()) {
    out += fmt::format("rank {}: {}\n", error.rank(), error.text());
  }
  return out;
}

const std::string kGithub = "https://github.com/";

}  // namespace

TEST_CASE("faults of the start of a job fail as in the threads and their fixes repair them",
          "[faults][bringup]") {
  const tests::TemporaryFolder folder;
  SilentReporter reporter;
  const auto catalogue = FaultCatalogue::load_shipped();
  REQUIRE(catalogue);
  const World world = simulated_world(reporter);
  const std::string old_torch = "launch.framework_version=1.9";
  const std::string new_nccl = "launch.nccl_version=2.28.9";
  // clang-format off
  const Row rows[] = {
      {"F01", "ddp-16", {}, pb::HANG, "B2", 0, 600 * kSecond, 0,
       "The client socket has timed out after 600000ms while trying to connect to (10.0.200.200, " "29500)", "pytorch/pytorch/issues/58431"},
      {"F01:addr=nowhere", "ddp-16", {old_torch}, pb::CRASH, "B1", 0, 0, 0,
       "ValueError: host not found: Name or service not known", "pytorch/elastic/issues/31"},
      {"F01", "ddp-16", {"launch.rendezvous=c10d"}, pb::HANG, "B2", 0, 60 * kSecond, 0,
       "No route to host", "pytorch/pytorch/issues/85300"},
      {"F02", "ddp-16", {}, pb::CRASH, "B1", 0, 0, 0,
       "The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use)", "pytorch/pytorch/issues/126510"},
      {"F02", "ddp-16", {old_torch}, pb::CRASH, "B1", 0, 0, 0,
       "RuntimeError: Address already in use", "NVIDIA/Megatron-LM/issues/343"},
      {"F03", "ddp-16", {}, pb::HANG, "B2", 0, 59'500'000'000, 0,
       "Call to connect returned Connection refused, retrying", "pytorch/pytorch/issues/52916"},
      {"F03:action=drop", "ddp-16", {}, pb::HANG, "B2", 0, 59'500'000'000 + 35 * 127 * kSecond, 0,
       "Connection timed out", "pytorch/pytorch/issues/52848"},
      {"F03", "ddp-16", {new_nccl}, pb::HANG, "B2", 0, 59'500'000'000, 0,
       "exceeded error retry count after 35 attempts", "pytorch/pytorch/issues/52848"},
      {"F04", "ddp-16", {old_torch}, pb::CRASH, "B1", 8, 0, 0,
       "ValueError: host not found: Name or service not known", "pytorch/elastic/issues/31"},
      {"F04:unanswered=true", "ddp-16", {}, pb::HANG, "B2", 8, 600 * kSecond, 0,
       "gai error: -3 - Temporary failure in name resolution", "pytorch/pytorch/issues/159007"},
      {"F04", "horovod-16", {}, pb::CRASH, "B1", 0, 0, 0,
       "Could not resolve hostname node1", "horovod/horovod/issues/850"},
      {"F05:declared=24", "ddp-16", {old_torch}, pb::HANG, "B2", 0, 1800 * kSecond, 0,
       "(world_size=24, worker_count=16, timeout=0:30:00)", "ultralytics/yolov5/issues/4574"},
      {"F05:declared=2", "ddp-16", {old_torch}, pb::HANG, "B2", 0, 1800 * kSecond, 0,
       "(world_size=2, worker_count=16, timeout=0:30:00)", "tczhangzhi/pytorch-distributed/issues/18"},
      {"F05", "gpt-32", {}, pb::HANG, "B2", 0, 600 * kSecond, 0,
       "Timed out after 601 seconds waiting for clients. 32/96 clients joined", "facebookresearch/metaseq/issues/52"},
      {"F06", "ddp-16", {}, pb::HANG, "B2", 0, 0, 0,
       "rank 4 of 16 ranks has already checked in", "horovod/horovod/issues/870"},
      {"F07", "ddp-16", {}, pb::HANG, "B2", 0, 59'500'000'000, 0,
       "Connect to 172.17.0.1", "horovod/horovod/issues/310"},
      {"F07:interface=eth9", "ddp-16", {}, pb::CRASH, "B1", 8, 0, 0,
       "NCCL WARN Bootstrap : no socket interface found", "pytorch/pytorch/issues/29482"},
      // A tenth of the bandwidth; of the fast interface the hosts' copying threads leave a little.
      {"F07:interface=eth1", "two-nets", {}, pb::COMPLETED, "D2.2", kAnyRank, kAnyTime, 7.5,
       "", "horovod/horovod/issues/310"},
      {"F08", "ddp-16", {}, pb::CRASH, "B1", 8, 0, 0,
       "Connect to fe80::1", "NVIDIA/nccl/issues/769"},
      {"F09", "ddp-16", {}, pb::CRASH, "B1", 8, 0, 0,
       "Duplicate GPU detected : rank 8 and rank 9 both on CUDA device", "horovod/horovod/issues/3949"},
      {"F10", "ddp-16", {}, pb::CRASH, "C5", 9, 0, 0,
       "RuntimeError: CUDA error: invalid device ordinal", "ACEsuit/mace/issues/435"},
      {"F11", "ddp-16", {}, pb::COMPLETED, "D2.6", kAnyRank, kAnyTime, 0.99,
       "", "pytorch/pytorch/issues/49481"},
      {"F11:bytes=900MiB", "ddp-16", {"platform.nodes[*].gpus[*].memory=10GiB"}, pb::CRASH, "D1.5", 0, kAnyTime, 0,
       "CUDA out of memory", "NVIDIA/apex/issues/222"},
      {"F12", "ddp-16", {}, pb::CRASH, "A1", 8, 0, 0,
       "undefined symbol: ncclCommRegister", "pytorch/pytorch/issues/122571"},
      {"F12:version=2.20.5", "ddp-16", {}, pb::CRASH, "B1", 0, 0, 0,
       "Mismatched NCCL version detected : rank 8 version 22005 rank 0 version 22105", "NVIDIA/nccl/issues/1328"},
      {"F12", "horovod-16", {}, pb::CRASH, "A1", 8, 0, 0,
       "mpi_lib_v2.so: undefined symbol: ncclSend", "NVIDIA/nccl/issues/1328"},
      {"F13", "ddp-16", {}, pb::CRASH, "B1", 10, 0, 0,
       "Call to posix_fallocate failed : No space left on device", "NVIDIA/nccl/issues/342"},
      {"F14", "ddp-16", {}, pb::WRONG_SEMANTICS, "D2.3", kAnyRank, kAnyTime, 0,
       "", "horovod/horovod/issues/2567"},
      {"F14", "horovod-16", {}, pb::WRONG_SEMANTICS, "D2.3", kAnyRank, kAnyTime, 0,
       "", "horovod/horovod/issues/870"},
      // 7 billion parameters at 16 bytes each fit no GPU of 80 GB where nobody shares them.
      {"F14", "fsdp-32", {}, pb::CRASH, "D1.5", 0, 0, 0,
       "CUDA out of memory", "horovod/horovod/issues/2567"},
      {"F15", "ddp-16", {}, pb::CRASH, "D1.1", 8, 0, 0,
       "collective mismatch error, local size 131072 remote size 524288", "NVIDIA/nccl/issues/969"},
      // For the first call, of 8 MB, all choose a tree; the host of rank 2 is the first to issue the second, 1.5 ms
      // after the start, and the watchdog counts from there.
      {"F15:variable=NCCL_ALGO,value=Tree", "ddp-16", {}, pb::HANG, "D2.1", 2, 600 * kSecond + 1'503'545, 0,
       "Watchdog caught collective operation timeout", "NVIDIA/nccl/issues/1328"},
      // In ddp-16 most of what they cost hides behind the backward pass; all-to-all shows it.
      {"F16", "ddp-16", {}, pb::COMPLETED, "B3", kAnyRank, kAnyTime, 1.05,
       "", "horovod/horovod/issues/476"},
      {"F16", "moe-16", {}, pb::COMPLETED, "B3", kAnyRank, kAnyTime, 1.5,
       "", "horovod/horovod/issues/476"},
      {"F36", "ddp-16", {}, pb::COMPLETED, "B3", kAnyRank, kAnyTime, 1.03,
       "", "NVIDIA/nccl/issues/406"},
      {"F36", "moe-16", {}, pb::COMPLETED, "B3", kAnyRank, kAnyTime, 1.2,
       "", "NVIDIA/nccl/issues/406"},
      {"F37", "ddp-16", {}, pb::COMPLETED, "B3", kAnyRank, kAnyTime, 1.02,
       "", "NVIDIA/nccl/issues/1412"},
      {"F37", "moe-16", {}, pb::COMPLETED, "B3", kAnyRank, kAnyTime, 1.4,
       "", "NVIDIA/nccl/issues/1412"},
      {"F38", "moe-16", {}, pb::COMPLETED, "D2.2", kAnyRank, kAnyTime, 2,
       "", "NVIDIA/nccl/issues/820"},
      {"F39", "moe-16", {}, pb::COMPLETED, "D2.2", kAnyRank, kAnyTime, 3,
       "", "https://arxiv.org/abs/2406.04594"},
      {"F67:node=0", "pcie", {}, pb::HANG, "B2", 0, 600 * kSecond, 0,
       "Watchdog caught collective operation timeout", "NVIDIA/nccl/issues/2079"},
      {"F67:iommu=false", "moe-16", {}, pb::COMPLETED, "D2.2", kAnyRank, kAnyTime, 1.05,
       "", "NVIDIA/nccl/issues/949"},
      {"F72", "ddp-16", {}, pb::CRASH, "D1.1", 0, 7 * (Nanos{4096} << 18), 0,
       "status=IBV_WC_RETRY_EXC_ERR(12)", "NVIDIA/nccl/issues/1524"},
      {"F73", "moe-16", {}, pb::COMPLETED, "D2.2", kAnyRank, kAnyTime, 2,
       "", "NVIDIA/nccl/issues/378"},
      {"F74", "ddp-16", {}, pb::CRASH, "B1", 0, 0, 0,
       "Call to ibv_modify_qp failed with 110 Connection timed out", "NVIDIA/nccl/issues/769"},
      // The first call meets the lost port 26.7 ms after the start and gives up after 4.096 us * 2^8 * 1.
      {"F75", "ddp-16", {}, pb::CRASH, "D1.1", 8, 26'653'359 + (Nanos{4096} << 8), 0,
       "IBV_WC_RETRY_EXC_ERR(12)", "NVIDIA/nccl/issues/902"},
  };
  // clang-format on
  std::map<std::string, pb::Outcome> healthy_runs;
  for (const Row& row : rows) {
    INFO(row.fault << " in " << row.scenario << ", " << row.source);
    const sim::Scenario healthy = load(row, folder.path, reporter);
    const std::string key = row.scenario + fmt::format("{}", fmt::join(row.settings, ","));
    if (healthy_runs.count(key) == 0) {
      const auto run = world.simulate(healthy);
      REQUIRE(run);
      INFO(all_texts(*run));
      CHECK(classify(*run).id() == kHealthy);
      healthy_runs[key] = *run;
    }
    const pb::Outcome& baseline = healthy_runs[key];
    const auto use = parse_fault(row.fault, *catalogue);
    REQUIRE(use);
    const auto patches = patches_of(*use, healthy.document);
    REQUIRE(patches);
    sim::Scenario broken = healthy;
    apply_all(broken, *patches);
    auto outcome = world.simulate(broken);
    INFO((outcome ? "" : outcome.error().message()));
    REQUIRE(outcome);
    *outcome->mutable_baseline_step_time_ns() = baseline.step_time_ns();
    INFO(all_texts(*outcome));
    CHECK(outcome->verdict() == row.verdict);
    const std::string symptom = classify(*outcome).id();
    CHECK(symptom == row.symptom);
    const auto& listed = use->fault().symptoms();
    CHECK(std::find(listed.begin(), listed.end(), symptom) != listed.end());
    if (row.rank != kAnyRank) {
      CHECK(outcome->first_failure().rank() == static_cast<uint32_t>(row.rank));
    }
    if (row.time != kAnyTime) CHECK(outcome->first_failure().time_ns() == row.time);
    CHECK(all_texts(*outcome).find(row.text) != std::string::npos);
    if (row.slowdown > 0) {
      CHECK(static_cast<double>(outcome->step_time_ns().mean()) >=
            row.slowdown * static_cast<double>(baseline.step_time_ns().mean()));
    } else {
      CHECK(outcome->culprits_size() + (row.verdict == pb::WRONG_SEMANTICS ? 1 : 0) > 0);
    }
    // The source stands in the catalogue, and the first fix repairs the run.
    const auto& sources = use->fault().sources();
    const std::string url = row.source.starts_with("https://") ? row.source : kGithub + row.source;
    CHECK(std::find(sources.begin(), sources.end(), url) != sources.end());
    const auto fixes = fixes_of(*use, broken.document);
    REQUIRE(fixes);
    REQUIRE_FALSE(fixes->empty());
    sim::Scenario repaired = broken;
    apply_all(repaired, {fixes->front().patch().begin(), fixes->front().patch().end()});
    auto again = world.simulate(repaired);
    REQUIRE(again);
    *again->mutable_baseline_step_time_ns() = baseline.step_time_ns();
    INFO("after the fix: " << all_texts(*again));
    CHECK(again->verdict() == pb::COMPLETED);
    if (fixes->front().restores() == pb::Fix::ALL) CHECK(classify(*again).id() == kHealthy);
  }
}

}  // namespace rehearse::bringup_faults_test
