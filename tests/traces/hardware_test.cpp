// SPDX-License-Identifier: Apache-2.0
#include "traces/inspect/hardware.hpp"

#include <catch2/catch.hpp>

#include "base/install.hpp"
#include "tests/traces/evidence_samples.hpp"
#include "tests/traces/import_samples.hpp"

namespace rehearse::hardware_test {
using namespace rehearse;
using namespace rehearse::traces;

namespace {

Trace job(uint32_t hosts, uint32_t per_host) {
  Trace trace;
  trace.header.set_world_size(hosts * per_host);
  for (uint32_t r = 0; r < hosts * per_host; ++r) {
    RankTrace rank;
    rank.rank = r;
    rank.host = "host" + std::to_string(r / per_host);
    rank.gpu = r % per_host;
    rank.gpu_model = "NVIDIA A100-SXM4-80GB";
    rank.gpu_memory = int64_t{80} << 30;
    trace.ranks.push_back(std::move(rank));
  }
  return trace;
}

}  // namespace

TEST_CASE("hosts and devices of a trace give nodes and GPUs per node", "[traces][hardware]") {
  const Hardware whole = hardware_of(job(2, 8));
  CHECK(whole.seen.gpu_model == "NVIDIA A100-SXM4-80GB");
  CHECK(whole.seen.gpus == 8);
  CHECK(whole.nodes == 2);
  CHECK(nodes_needed(whole, 8) == 2);
}

TEST_CASE("one rank of many tells its GPU and not the nodes", "[traces][hardware]") {
  Trace part = job(4, 8);
  part.ranks.resize(1);
  const Hardware one = hardware_of(part);
  CHECK(one.nodes == 0);
  CHECK(one.seen.gpus == 0);
  CHECK(one.ranks == 32);
  CHECK(nodes_needed(one, 8) == 4);
}

TEST_CASE("a process that sees several GPUs tells how many a node has", "[traces][hardware]") {
  Trace part = job(4, 8);
  part.ranks.resize(1);
  part.ranks[0].visible_gpus = 8;
  CHECK(hardware_of(part).seen.gpus == 8);
  part.ranks[0].visible_gpus = 1;  // may be a mask
  CHECK(hardware_of(part).seen.gpus == 0);
  Trace alone = job(1, 1);
  alone.ranks[0].visible_gpus = 4;
  CHECK(hardware_of(alone).seen.gpus == 4);
}

TEST_CASE("device properties of a Kineto trace tell kind and number of GPUs",
          "[traces][hardware]") {
  const auto import = [](const std::string& devices) {
    const std::string text =
        R"({"schemaVersion": 1, "deviceProperties": [)" + devices +
        R"(], "traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 1, "tid": 7,
            "ts": 1, "dur": 2, "args": {"device": 1, "stream": 7, "correlation": 3}}]})";
    const auto imported = samples::import_text(text);
    INFO((imported ? std::string() : imported.error().message()));
    REQUIRE(imported);
    return hardware_of(imported->trace).seen;
  };
  const auto device = [](int id, const char* name) {
    return R"({"id": )" + std::to_string(id) + R"(, "name": ")" + name +
           R"(", "totalGlobalMem": 42505273344})";
  };
  const auto four =
      import(device(0, "Tesla V100-SXM2-32GB") + "," + device(1, "NVIDIA A100-SXM4-40GB") + "," +
             device(2, "NVIDIA A100-SXM4-40GB") + "," + device(3, "NVIDIA A100-SXM4-40GB"));
  CHECK(four.gpus == 4);
  CHECK(four.gpu_model == "NVIDIA A100-SXM4-40GB");
  CHECK(four.gpu_memory == 42505273344);
}

TEST_CASE("a log tells hosts, devices and the network", "[traces][hardware]") {
  pb::Evidence evidence;
  pb::NcclLog& log = *evidence.mutable_nccl_log();
  for (const char* host : {"a", "b"}) {
    pb::NcclProcess& process = *log.add_processes();
    process.set_host(host);
    process.set_network("IB");
    pb::NcclNic& nic = *process.add_nics();
    nic.set_name("mlx5_0");
    nic.set_detail("1/RoCE");
  }
  pb::NcclCommunicator& comm = *log.add_communicators();
  comm.set_ranks_total(8);
  for (int r = 0; r < 8; ++r) {
    pb::NcclRank& rank = *comm.add_ranks();
    rank.set_rank(r);
    rank.set_process(static_cast<uint32_t>(r / 4));
    rank.set_device(r % 4);
  }
  // An index that points at nothing is left out.
  comm.add_ranks()->set_process(77);
  const Hardware told = hardware_of(std::vector<pb::Evidence>{evidence});
  CHECK(told.seen.gpus == 4);
  CHECK(told.nodes == 2);
  CHECK(told.ranks == 8);
  CHECK(told.seen.nics == 1);
  CHECK(told.seen.nic_kind == pb::ROCE);
}

TEST_CASE("a log that names no GPU tells how its GPUs are joined", "[traces][hardware]") {
  // Four GeForce cards of an AMD workstation: their names stand in no line.
  const auto log = [](const char* vendor) {
    std::string text =
        "n:9:9 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 4 cudaDev 0 nvmlDev 0 busId "
        "26000 commId 0xabc - Init START\n"
        "n:9:9 [0] NCCL INFO P2P not supported between GPU0 and GPU1\n"
        "n:9:9 [0] NCCL INFO === System : maxBw 16.0 totalBw 24.0 ===\n";
    text += std::string("n:9:9 [0] NCCL INFO CPU/0-2 (1/") + vendor + "/-1)\n";
    return text +
           "n:9:9 [0] NCCL INFO Pattern 4, crossNic 0, nChannels 1, bw 15.000000/15.000000, type "
           "SYS/PIX, sameChannels 1\n"
           "n:9:9 [0] NCCL INFO comm 0x1 rank 0 nRanks 4 nNodes 1 localRanks 4 localRank 0 MNNVL "
           "0\n";
  };
  const auto folder = shipped("platforms/catalogue");
  REQUIRE(folder);
  const auto machines = platforms::Machines::load(platforms::PlatformCatalogue(*folder));
  REQUIRE(machines);
  for (const auto& [vendor, machine] : {std::pair{"1", "rtx3090-8"}, std::pair{"2", "rtx4090-8"}}) {
    const auto told = hardware_of(samples::must_read(log(vendor)).evidence);
    INFO(vendor);
    CHECK(told.seen.gpu_model.empty());
    REQUIRE(told.seen.nvlink);
    CHECK_FALSE(*told.seen.nvlink);
    REQUIRE(told.seen.peer_access);
    CHECK_FALSE(*told.seen.peer_access);
    const auto match = platforms::best_match(*machines, told.seen);
    REQUIRE(match);
    CHECK(match->id == machine);
  }
}

}  // namespace rehearse::hardware_test
