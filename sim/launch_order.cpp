// SPDX-License-Identifier: Apache-2.0
#include "sim/launch_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/bringup/process.hpp"
#include "sim/nccl/environment.hpp"
#include "sim/nccl/version.hpp"
#include "sim/scenario/environment.hpp"
#include "sim/scenario/rebuild.hpp"
#include "sim/scenario/transform.hpp"

namespace rehearse::sim {
namespace {

// Threads that put its calls on streams.
size_t launching_threads(const traces::RankProgram& rank) {
  std::set<traces::LaneId> threads;
  for (const traces::OpId op : rank.call_op) {
    for (const traces::OpId before : rank.predecessors(op)) {
      const traces::LaneId lane = rank.lane_of(before);
      if (!rank.on_gpu(lane)) threads.insert(lane);
    }
  }
  return threads.size();
}

// Every call waits for the one that the host issued before it, where that is
// another communicator's.
size_t serialise(traces::RankProgram& rank) {
  std::vector<std::pair<traces::OpId, traces::OpId>> waits;
  for (size_t c = 1; c < rank.call_op.size(); ++c) {
    const traces::OpId own = rank.call_op[c], before = rank.call_op[c - 1];
    if (rank.calls[c].communicator == rank.calls[c - 1].communicator) continue;
    if (rank.lane_of(own) != rank.lane_of(before)) waits.emplace_back(own, before);
  }
  const size_t added = waits.size();
  if (added > 0) add_waits(rank, std::move(waits));
  return added;
}

bool is_old(const pb::Node& node) {
  const auto cuda = node.versions().find("cuda");
  return cuda != node.versions().end() && !cuda->second.empty() &&
         bringup::compare_versions(cuda->second, "12.3") < 0;
}

bool knows_order(const pb::Launch& launch) {
  const auto version = parse_nccl_version(launch.nccl_version());
  return launch.backend() == pb::NCCL && version && !(*version < NcclVersion{2, 26, 0});
}

bool is_ordered(const pb::Launch& launch, const pb::RankLaunch& seat) {
  return whole_number(environment_of(launch, seat), "NCCL_LAUNCH_ORDER_IMPLICIT", 0) != 0;
}

}  // namespace

bool orders_launches(const pb::Launch& launch) {
  return knows_order(launch) && std::ranges::any_of(launch.ranks(), [&](const auto& seat) {
           return is_ordered(launch, seat);
         });
}

Result<void> order_launches(const Scenario& scenario, traces::Program& program) {
  const pb::Launch& launch = scenario.document.launch();
  if (!knows_order(launch)) return {};
  for (const pb::RankLaunch& seat : launch.ranks()) {
    const int at = program.find(seat.rank());
    if (at < 0 || !is_ordered(launch, seat)) continue;
    const auto env = environment_of(launch, seat);
    traces::RankProgram& rank = program.ranks[static_cast<size_t>(at)];
    if (whole_number(env, "NCCL_LAUNCH_RACE_FATAL", 1) != 0 && launching_threads(rank) > 1) {
      program.findings.add("nccl-launch-race", Severity::kWarning,
                           fmt::format("rank {} issues collectives from {} threads", seat.rank(),
                                       launching_threads(rank)),
                           "where two do so at once NCCL ends with \"host threads racing to "
                           "launch NCCL on same "
                           "device\"; issue from one thread, or set NCCL_LAUNCH_RACE_FATAL=0");
    }
    if (!is_old(scenario.document.platform().nodes(static_cast<int>(seat.node())))) continue;
    if (auto written = write_out(rank, program.steps); !written) return written;
    const size_t added = serialise(rank);
    if (added == 0) continue;
    program.findings.add("nccl-launch-order", Severity::kInfo,
                         fmt::format("rank {}: {} collectives wait for one of another communicator",
                                     seat.rank(), added),
                         "NCCL_LAUNCH_ORDER_IMPLICIT serialises them with CUDA older than 12.3");
  }
  return {};
}

}  // namespace rehearse::sim
