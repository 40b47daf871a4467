// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/small_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/document.hpp"
#include "sim/scenario/undo.hpp"

namespace rehearse::faults::testing {
namespace {

constexpr double kCompute = 100e6, kAllReduce = 20e6, kFullRate = 25e9;

Result<void> apply(sim::Scenario& scenario, const pb::Patch& patch) {
  const std::map<std::string, std::string> edits(patch.set().begin(), patch.set().end());
  for (const auto& [path, value] : edits) {
    if (auto done = set_path(scenario.document, path, value); !done) {
      return tl::unexpected(done.error());
    }
  }
  if (patch.has_undo()) return sim::undo(scenario, patch.undo());
  if (patch.transform_case() != pb::Patch::TRANSFORM_NOT_SET) {
    scenario.transforms.push_back(patch);
  }
  return {};
}

bool sockets(const pb::RankLaunch& rank) {
  const auto found = rank.env().find("NCCL_IB_DISABLE");
  return found != rank.env().end() && found->second == "1";
}

pb::Outcome hang(uint32_t missing, int64_t sequence, int ranks) {
  pb::Outcome out;
  out.set_verdict(pb::HANG);
  out.set_ranks(static_cast<uint32_t>(ranks));
  out.mutable_first_failure()->set_phase(pb::TRAINING);
  for (uint32_t r = 0; r < static_cast<uint32_t>(ranks); ++r) {
    if (r == missing) continue;
    pb::Wait& wait = *out.add_waits();
    wait.set_rank(r);
    wait.add_for_ranks(missing);
    wait.set_communicator("world");
    wait.set_sequence(sequence);
    wait.set_operation("all-reduce");
  }
  pb::Culprit& culprit = *out.add_culprits();
  culprit.set_kind("rank");
  culprit.set_rank(missing);
  return out;
}

pb::Outcome simulate(const sim::Scenario& scenario) {
  const pb::Scenario& document = scenario.document;
  std::vector<double> compute;
  std::set<uint32_t> culprit_nodes;
  bool socket = false, direct = true;
  double rate = kFullRate;
  for (const pb::RankLaunch& rank : document.launch().ranks()) {
    const pb::Node& node = document.platform().nodes(static_cast<int>(rank.node()));
    compute.push_back(kCompute / node.gpus(static_cast<int>(rank.gpu())).speed());
    if (sockets(rank)) culprit_nodes.insert(rank.node());
    socket = socket || sockets(rank);
  }
  for (int n = 0; n < document.platform().nodes_size(); ++n) {
    for (const pb::Nic& nic : document.platform().nodes(n).nics()) {
      direct = direct && nic.gpudirect();
      if (!nic.gpudirect()) culprit_nodes.insert(static_cast<uint32_t>(n));
      rate = std::min(rate, nic.bandwidth());
    }
  }
  for (const pb::Patch& patch : scenario.transforms) {
    if (patch.has_skip_collective()) {
      return hang(patch.skip_collective().rank(), patch.skip_collective().nth(),
                  document.launch().ranks_size());
    }
    if (patch.has_slow_rank() && patch.slow_rank().has_rank()) {
      compute[patch.slow_rank().rank()] *= patch.slow_rank().slowdown();
    }
  }
  const double slowest = *std::max_element(compute.begin(), compute.end());
  const double network =
      kAllReduce * kFullRate / rate * (socket ? 8 : 1) * (!socket && !direct ? 2 : 1);
  pb::Outcome out;
  out.set_verdict(pb::COMPLETED);
  const auto step = static_cast<int64_t>(slowest + network);
  out.mutable_step_time_ns()->set_mean(step);
  for (size_t r = 0; r < compute.size(); ++r) {
    pb::RankBreakdown& rank = *out.add_breakdown();
    rank.set_rank(static_cast<uint32_t>(r));
    rank.set_step(step);
    rank.set_compute(static_cast<int64_t>(compute[r]));
    rank.set_communication(static_cast<int64_t>(network));
    rank.set_wait(static_cast<int64_t>(slowest - compute[r]));
  }
  pb::CommunicatorUse& world = *out.add_communicators();
  world.set_id("world");
  world.set_nodes(2);
  world.set_transport(socket ? "NET/Socket" : direct ? "NET/IB/GDRDMA" : "NET/IB");
  world.set_offered("NET/IB/GDRDMA");
  for (const uint32_t node : culprit_nodes) {
    pb::Culprit& culprit = *out.add_culprits();
    culprit.set_kind("node");
    culprit.set_node(node);
  }
  return out;
}

}  // namespace

sim::Scenario small_scenario() {
  sim::Scenario scenario;
  scenario.document.mutable_platform()->add_storage()->set_write(20e9);
  for (int n = 0; n < 2; ++n) {
    pb::Node& node = *scenario.document.mutable_platform()->add_nodes();
    node.set_name(fmt::format("node{}", n));
    for (int i = 0; i < 8; ++i) {
      pb::Gpu& gpu = *node.add_gpus();
      gpu.set_name(fmt::format("gpu{}", i));
      gpu.set_speed(1);
      gpu.mutable_nvlink()->set_links(12);
      gpu.mutable_pcie()->set_generation(4);
      gpu.mutable_pcie()->set_width(16);
      pb::Nic& nic = *node.add_nics();
      nic.set_name(fmt::format("mlx5_{}", i));
      nic.set_bandwidth(kFullRate);
      nic.set_gpudirect(true);
      pb::RankLaunch& rank = *scenario.document.mutable_launch()->add_ranks();
      rank.set_rank(static_cast<uint32_t>(8 * n + i));
      rank.set_node(static_cast<uint32_t>(n));
      rank.set_gpu(static_cast<uint32_t>(i));
    }
  }
  return scenario;
}

World small_world(int* runs) {
  return {.apply = apply, .simulate = [runs](const sim::Scenario& scenario) -> Result<pb::Outcome> {
            if (runs) ++*runs;
            return simulate(scenario);
          }};
}

}  // namespace rehearse::faults::testing
