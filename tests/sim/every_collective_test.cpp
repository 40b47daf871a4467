// SPDX-License-Identifier: Apache-2.0
// Every collective with every algorithm that NCCL has for it, replayed in both fidelities.
#include <catch2/catch.hpp>
#include <numeric>
#include <set>

#include "sim/nccl/messages.hpp"
#include "sim/replay/replay.hpp"
#include "tests/sim/call_program.hpp"
#include "tests/sim/cluster.hpp"

namespace rehearse::every_collective_test {
using namespace rehearse;
using namespace rehearse::sim;
using rehearse::tests::CallProgram;
using rehearse::tests::Cluster;
using traces::Collective;

namespace {

struct Ran {
  std::string algorithm;
  Nanos end = 0;
};

Ran run(const Cluster& cluster, const CallProgram& calls, bool step) {
  const ModelContext context = cluster.context();
  auto model = CommunicatorModel::create(context, calls.program().communicators.front());
  if (!model) FAIL(model.error().message());
  ReplayOptions options;
  options.traffic = [&](const traces::Call& call, uint32_t member) {
    auto traffic = model->traffic(call, member);
    if (traffic) add_hops(context, *model, call, member, *traffic);
    return traffic;
  };
  if (step) {
    options.messages = [&](const traces::Call& call, uint32_t member) {
      return message_plan(context, *model, call, member);
    };
  }
  options.capacity = cluster.capacities;
  const auto fabric = make_reference_fabric(cluster.capacities);
  SilentReporter silent;
  const auto out = replay(calls.program(), options, *fabric, silent);
  if (!out) FAIL(out.error().message());
  REQUIRE(out->completed);
  return {out->shapes[0].algorithm, out->meetings[0].end};
}

struct Setting {
  const char* platform;
  uint32_t nodes, per_node;
  const char* algorithm;  // NCCL_ALGO; empty: NCCL decides
  const char* expected;
  std::vector<Collective> collectives;
};

const std::vector<Collective> kGathers = {Collective::kAllGather, Collective::kReduceScatter};

}  // namespace

TEST_CASE("every collective runs with every algorithm NCCL has for it", "[sim][collectives]") {
  const std::vector<Collective> reduce = {Collective::kAllReduce};
  const std::vector<Collective> ring = {Collective::kAllReduce, Collective::kAllGather,
                                        Collective::kReduceScatter, Collective::kBroadcast,
                                        Collective::kReduce};
  const std::vector<Collective> pairs = {Collective::kAllToAll, Collective::kGather,
                                         Collective::kScatter};
  const Setting settings[] = {
      {"dgx-a100", 2, 8, "Ring", "RING", ring},
      {"dgx-a100", 1, 8, "Ring", "RING", ring},
      {"a100-pcie-8", 2, 4, "Ring", "RING", ring},
      {"dgx-a100", 4, 8, "Tree", "TREE", reduce},
      {"dgx-h100", 1, 8, "NVLS", "NVLS", reduce},
      {"dgx-h100", 1, 8, "NVLS", "NVLS", kGathers},
      {"dgx-h100", 4, 8, "NVLSTree", "NVLS_TREE", reduce},
      {"dgx-h100", 4, 8, "CollNetDirect", "COLLNET_DIRECT", reduce},
      {"dgx-h100", 4, 8, "CollNetChain", "COLLNET_CHAIN", reduce},
      {"dgx-h100", 8, 1, "PAT", "PAT", kGathers},
      {"dgx-a100", 2, 8, "", "P2P", pairs},
      {"dgx-a100", 1, 8, "", "P2P", pairs},
      {"dgx-a100", 2, 8, "", "", {Collective::kBarrier}},
  };
  for (const Setting& setting : settings) {
    Cluster cluster(setting.platform, setting.nodes, setting.per_node);
    auto& env = *cluster.launch.mutable_env();
    if (*setting.algorithm != 0) env["NCCL_ALGO"] = setting.algorithm;
    if (std::string(setting.expected).find("COLLNET") == 0) {
      env["NCCL_COLLNET_ENABLE"] = "1";
      cluster.platform.mutable_fabric()->set_sharp(true);
    }
    const uint32_t ranks = setting.nodes * setting.per_node;
    std::vector<uint32_t> all(ranks);
    std::iota(all.begin(), all.end(), 0u);
    for (const Collective kind : setting.collectives) {
      for (const Bytes bytes : {Bytes{4096}, Bytes{32} << 20}) {
        CallProgram calls(ranks);
        calls.collective(calls.communicator(all), kind, bytes, {}, 0);
        INFO(name_of(kind) << " of " << bytes << " bytes with " << setting.algorithm << " on "
                           << setting.nodes << " x " << setting.per_node << " "
                           << setting.platform);
        const Ran fluid = run(cluster, calls, false), step = run(cluster, calls, true);
        CHECK(fluid.algorithm.find(setting.expected) == 0);
        CHECK(fluid.end > 5'000);
        CHECK(fluid.end < 1'000'000'000);
        CHECK(static_cast<double>(step.end) ==
              Approx(static_cast<double>(fluid.end)).epsilon(0.03));
      }
    }
  }
}

TEST_CASE("calls of one group start together and end together", "[sim][collectives]") {
  // Four sends around a ring of GPUs in one group: nobody waits for the one before.
  const Cluster cluster("dgx-a100", 1, 4);
  CallProgram calls(4);
  const uint32_t all = calls.communicator({0, 1, 2, 3});
  traces::Call call;
  call.communicator = all;
  call.bytes_in = call.bytes_out = 64 << 20;
  call.dtype = traces::DType::kFp32;
  for (uint32_t r = 0; r < 4; ++r) {
    call.group = 1;
    call.collective = Collective::kSend;
    call.peer = static_cast<int32_t>((r + 1) % 4);
    calls.add(r, call);
    call.collective = Collective::kRecv;
    call.peer = static_cast<int32_t>((r + 3) % 4);
    calls.add(r, call);
  }
  const Ran fluid = run(cluster, calls, false), step = run(cluster, calls, true);
  CHECK(fluid.end > 0);
  CHECK(static_cast<double>(step.end) == Approx(static_cast<double>(fluid.end)).epsilon(0.03));
}

}  // namespace rehearse::every_collective_test
