// SPDX-License-Identifier: Apache-2.0
// Fluid and step mode must agree: a few flows that stand for a collective against every message of
// every step. Random platforms, collectives, sizes and ranks, half of them with unequal competitors.
#include <catch2/catch.hpp>
#include <map>
#include <numeric>

#include "base/random.hpp"
#include "sim/nccl/messages.hpp"
#include "sim/replay/replay.hpp"
#include "tests/sim/call_program.hpp"
#include "tests/sim/cluster.hpp"

namespace rehearse::fidelity_test {
using namespace rehearse;
using namespace rehearse::sim;
using rehearse::tests::CallProgram;
using rehearse::tests::Cluster;
using traces::Collective;

namespace {

constexpr double kAgree = 0.03;

Replayed run(const Cluster& cluster, const traces::Program& program, bool step) {
  const ModelContext context = cluster.context();
  std::vector<CommunicatorModel> models;
  for (const auto& communicator : program.communicators) {
    auto model = CommunicatorModel::create(context, communicator);
    if (!model) FAIL(model.error().message());
    models.push_back(std::move(*model));
  }
  ReplayOptions options;
  options.traffic = [&](const traces::Call& call, uint32_t member) {
    auto traffic = models[call.communicator].traffic(call, member);
    if (traffic) add_hops(context, models[call.communicator], call, member, *traffic);
    return traffic;
  };
  if (step) {
    options.messages = [&](const traces::Call& call, uint32_t member) {
      return message_plan(context, models[call.communicator], call, member);
    };
  }
  options.capacity = cluster.capacities;
  const auto fabric = make_reference_fabric(cluster.capacities);
  SilentReporter silent;
  auto out = replay(program, options, *fabric, silent);
  if (!out) FAIL(out.error().message());
  return std::move(*out);
}

struct Case {
  std::string what;
  CallProgram calls;
};

// Seeds below 104 are alone, the others have a competitor.
Case random_case(uint64_t seed, std::string& platform, uint32_t& nodes, uint32_t& per_node) {
  Random random(seed, "fidelity_test");
  const std::vector<std::string> ids = {"dgx-a100", "dgx-h100", "a100-pcie-8", "aws-p4d",
                                        "gcp-a3",   "dgx2",     "azure-ndv4"};
  platform = ids[random.below(ids.size())];
  const uint32_t shapes[] = {1, 1, 2, 2, 2, 2, 4, 4, 8};
  nodes = shapes[random.below(9)];
  per_node = nodes == 8 && random.below(3) > 0 ? 2 : 1u << (1 + random.below(3));
  const uint32_t ranks = nodes * per_node;
  const Collective kinds[] = {
      Collective::kAllReduce,     Collective::kAllReduce, Collective::kAllGather,
      Collective::kReduceScatter, Collective::kAllToAll,  Collective::kBroadcast,
      Collective::kReduce,        Collective::kGather,    Collective::kScatter};
  const Collective kind = kinds[random.below(9)];
  const auto bytes = static_cast<Bytes>(4096) << random.below(17);
  Case out{name_of(kind), CallProgram(ranks)};
  std::vector<uint32_t> all(ranks);
  std::iota(all.begin(), all.end(), 0u);
  out.calls.collective(out.calls.communicator(all), kind, bytes, {}, 0);
  if (seed < 104) return out;
  const auto other = static_cast<Bytes>(4096) << random.below(16);
  const auto when = static_cast<Nanos>(random.below(200'000));
  if (random.below(2) == 0) {
    // One send, to the next node when there is one, against all channels.
    const uint32_t to = nodes > 1 ? per_node : ranks - 1;
    out.calls.send(out.calls.communicator({0, to}), other, when, when);
    out.what += " against a send";
  } else {
    // A second communicator over every other rank, through the same cards.
    std::vector<uint32_t> half;
    for (uint32_t r = 0; r < ranks; r += 2) half.push_back(r);
    if (half.size() < 2) half = all;
    const Collective second = kinds[random.below(4)];
    out.calls.collective(out.calls.communicator(half), second, other,
                         std::vector<Nanos>(half.size(), when));
    out.what += std::string(" against ") + name_of(second);
  }
  return out;
}

}  // namespace

TEST_CASE("fluid and step mode agree within 3 percent", "[sim][fidelity]") {
  std::map<std::tuple<std::string, uint32_t, uint32_t>, Cluster> clusters;
  double worst = 0;
  for (uint64_t seed = 0; seed < 208; ++seed) {
    std::string id;
    uint32_t nodes = 0, per_node = 0;
    const Case made = random_case(seed, id, nodes, per_node);
    const auto key = std::make_tuple(id, nodes, per_node);
    auto at = clusters.find(key);
    if (at == clusters.end()) at = clusters.try_emplace(key, id, nodes, per_node).first;
    const Replayed fluid = run(at->second, made.calls.program(), false);
    const Replayed step = run(at->second, made.calls.program(), true);
    INFO("seed " << seed << ": " << made.what << " on " << nodes << " x " << per_node << " " << id
                 << ", " << fluid.shapes[0].algorithm << ", " << fluid.meetings[0].call.bytes_in
                 << " bytes");
    REQUIRE(fluid.completed);
    REQUIRE(step.completed);
    for (size_t m = 0; m < fluid.meetings.size(); ++m) {
      INFO("meeting " << m << ": fluid " << fluid.meetings[m].end << " step "
                      << step.meetings[m].end);
      const double error = std::abs(static_cast<double>(step.meetings[m].end) /
                                        static_cast<double>(fluid.meetings[m].end) -
                                    1);
      CHECK(error <= kAgree);
      worst = std::max(worst, error);
    }
  }
  WARN("largest difference " << worst * 100 << " %");
}

TEST_CASE("a chain of n members passes k parts on in k + n - 2 times that of one",
          "[sim][fidelity]") {
  // All hops are alike on one NVSwitch node.
  const Cluster cluster("dgx-a100", 1, 8);
  for (const Collective kind : {Collective::kBroadcast, Collective::kReduce}) {
    for (const Bytes bytes : {Bytes{1} << 20, Bytes{16} << 20, (Bytes{64} << 20) + 12'345'600}) {
      CallProgram calls(8);
      calls.collective(calls.communicator({0, 1, 2, 3, 4, 5, 6, 7}), kind, bytes, {}, 0);
      auto model =
          CommunicatorModel::create(cluster.context(), calls.program().communicators.front());
      REQUIRE(model);
      const auto traffic = model->traffic(calls.program().ranks[0].calls[0], 0);
      REQUIRE(traffic);
      INFO(name_of(kind) << " of " << bytes << " bytes, " << traffic->algorithm);
      double rate = traffic->flows[0].cap > 0 ? traffic->flows[0].cap : 1e18;
      for (const LinkWeight& use : traffic->flows[0].links) {
        rate = std::min(rate, cluster.capacities[use.link] / use.weight);
      }
      double fill = 0;
      for (const LatencyPart& part : traffic->parts) {
        if (part.what.find("pipeline") != std::string::npos) fill = part.each_us * 1e3;
      }
      CHECK(fill == Approx(6 * traffic->part / rate * 1e9));
      const Replayed fluid = run(cluster, calls.program(), false);
      const Replayed step = run(cluster, calls.program(), true);
      const double parts = traffic->flows[0].bytes / traffic->part;
      const double expected =
          static_cast<double>(traffic->latency) - fill + (parts + 6) * traffic->part / rate * 1e9;
      CHECK(std::abs(static_cast<double>(fluid.meetings[0].end) - expected) <= 2);
      // In step mode the fill is in the messages: it is not waited for twice.
      CHECK(std::abs(static_cast<double>(step.meetings[0].end) - expected) <= 8);
    }
  }
}

}  // namespace rehearse::fidelity_test
