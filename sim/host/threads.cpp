// SPDX-License-Identifier: Apache-2.0
#include "sim/host/threads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/rank_ranges.hpp"
#include "sim/nccl/environment.hpp"
#include "sim/scenario/environment.hpp"
#include "sim/scenario/transform.hpp"

namespace rehearse::sim {
namespace {

constexpr const char* kVariable = "OMP_NUM_THREADS";

// Of the outermost parallel region; 0: not told.
uint32_t threads_of(const pb::Launch& launch, const pb::RankLaunch& rank) {
  const auto env = environment_of(launch, rank);
  const auto at = env.find(kVariable);
  if (at == env.end()) return 0;
  const std::map<std::string, std::string> first{
      {kVariable, at->second.substr(0, at->second.find(','))}};
  return static_cast<uint32_t>(std::clamp(whole_number(first, kVariable, 0), 0, 1 << 16));
}

uint32_t per_core(const pb::NumaDomain& numa) { return numa.arch() == "arm" ? 1 : 2; }

// Hardware threads of a node; 0: not stated.
uint32_t hardware_threads(const pb::Node& node) {
  uint32_t all = 0;
  for (const pb::NumaDomain& numa : node.numa()) all += numa.cores() * per_core(numa);
  return all;
}

// Those that the process may use; 0: not stated.
uint32_t bound_threads(const pb::RankLaunch& rank, const pb::Node& node) {
  const auto ranges = parse_rank_ranges(rank.cpus());
  if (rank.cpus().empty() || !ranges || node.numa().empty()) return 0;
  uint32_t cores = 0;
  for (const RankRange& range : *ranges) cores += range.last - range.first + 1;
  return cores * per_core(node.numa(0));
}

double turns(uint64_t threads, uint32_t hardware) {
  return hardware == 0 ? 1 : static_cast<double>(threads) / static_cast<double>(hardware);
}

}  // namespace

std::map<uint32_t, double> turns_on_cores(const pb::Scenario& document) {
  const pb::Launch& launch = document.launch();
  std::map<uint32_t, uint64_t> own, on_node;
  std::set<uint32_t> told;  // nodes; of others the recording has what their cores are short of
  for (const pb::RankLaunch& rank : launch.ranks()) {
    const uint32_t threads = threads_of(launch, rank);
    if (threads > 0) told.insert(rank.node());
    own[rank.rank()] = std::max(1U, threads);
    on_node[rank.node()] += own[rank.rank()];
  }
  std::map<uint32_t, double> out;
  for (const pb::RankLaunch& rank : launch.ranks()) {
    if (!told.contains(rank.node())) continue;
    const pb::Node& node = document.platform().nodes(static_cast<int>(rank.node()));
    const double slowdown = std::max(turns(on_node[rank.node()], hardware_threads(node)),
                                     turns(own[rank.rank()], bound_threads(rank, node)));
    if (slowdown > 1) out[rank.rank()] = slowdown;
  }
  return out;
}

Result<void> share_cores(const pb::Scenario& document, traces::Program& program) {
  for (const auto& [rank, slowdown] : turns_on_cores(document)) {
    if (program.find(rank) < 0) continue;
    pb::Patch patch;
    patch.mutable_slow_host()->set_rank(rank);
    patch.mutable_slow_host()->set_slowdown(slowdown);
    if (auto done = transform(program, patch); !done) return done;
    program.findings.add(
        "cpu-oversubscribed", Severity::kWarning,
        fmt::format("rank {}: host work takes {:.3g} times as long", rank, slowdown),
        "threads of the node's processes take turns on its cores: set OMP_NUM_THREADS to the cores "
        "divided by the processes");
  }
  return {};
}

}  // namespace rehearse::sim
