// SPDX-License-Identifier: Apache-2.0
#include "traces/inspect/hardware.hpp"

#include <catch2/catch.hpp>

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
