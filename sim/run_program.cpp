// SPDX-License-Identifier: Apache-2.0
#include "sim/run_program.hpp"

#include <algorithm>

#include "sim/horovod/autotune.hpp"
#include "sim/horovod/fusion.hpp"
#include "sim/horovod/streams.hpp"
#include "sim/horovod/two_levels.hpp"
#include "sim/host/affinity.hpp"
#include "sim/host/threads.hpp"
#include "sim/kernels_alone.hpp"
#include "sim/launch_order.hpp"
#include "sim/prepared.hpp"
#include "sim/scenario/alone.hpp"
#include "sim/scenario/environment.hpp"
#include "sim/scenario/grow.hpp"
#include "sim/scenario/transform.hpp"

namespace rehearse::sim {
namespace {

double speed_of(const pb::Scenario& document, const pb::RankLaunch& rank) {
  const double speed = document.platform()
                           .nodes(static_cast<int>(rank.node()))
                           .gpus(static_cast<int>(rank.gpu()))
                           .speed();
  return speed > 0 ? speed : 1;
}

// The GPUs' own speed: compute of a rank on a GPU that runs at half speed takes twice as long.
void apply_gpu_speeds(const Scenario& scenario, traces::Program& program) {
  for (const pb::RankLaunch& rank : scenario.document.launch().ranks()) {
    const double speed = speed_of(scenario.document, rank);
    if (speed == 1) continue;
    pb::Patch patch;
    patch.mutable_slow_rank()->set_rank(rank.rank());
    patch.mutable_slow_rank()->set_slowdown(1 / speed);
    if (auto done = transform(program, patch); !done) continue;
  }
}

// Does a rank ask Horovod to run its collectives otherwise than they were recorded?
bool asks_horovod(const Scenario& scenario) {
  const pb::Launch& launch = scenario.document.launch();
  if (launch.framework() != pb::HOROVOD) return false;
  const auto asks = [&](const pb::RankLaunch& rank) {
    const HorovodSettings s = horovod_settings(launch, rank);
    return s.hierarchical_allreduce || s.hierarchical_allgather || s.torus_allreduce ||
           s.streams > 1 || s.autotune;
  };
  const auto packs = [](const RankFusing& f) { return f.wanted != f.recorded; };
  return std::ranges::any_of(launch.ranks(), asks) ||
         std::ranges::any_of(fusing_of(scenario), packs);
}

Result<void> run_as_horovod(const Scenario& scenario, traces::Program& program,
                            std::vector<bool>& grew) {
  if (!asks_horovod(scenario)) return {};
  if (auto fused = fuse_recorded(scenario, program); !fused) return fused;
  if (auto tuned = autotune(scenario, program); !tuned) return tuned;
  if (auto spread = on_several_streams(scenario, program, grew); !spread) return spread;
  return in_two_levels(scenario, program, grew);
}

bool is_changed(const Scenario& scenario) {
  return !scenario.transforms.empty() || scenario.alone || scenario.replicas > 1 ||
         orders_launches(scenario.document.launch()) || asks_horovod(scenario) ||
         binds_processes(scenario.document.launch()) ||
         !turns_on_cores(scenario.document).empty() ||
         std::ranges::any_of(scenario.document.launch().ranks(), [&](const auto& rank) {
           return speed_of(scenario.document, rank) != 1;
         });
}

}  // namespace

Result<RunProgram> program_of_run(const Scenario& scenario) {
  if (!is_changed(scenario)) {
    RH_TRY(auto shared, shared_program(scenario));
    const size_t communicators = shared->communicators.size();
    return RunProgram{std::move(shared), std::vector<bool>(communicators, false)};
  }
  RH_TRY(traces::Program program, program_of(scenario));
  apply_gpu_speeds(scenario, program);
  for (const pb::Patch& patch : scenario.transforms) {
    if (auto done = transform(program, patch); !done)
      return tl::unexpected(std::move(done).error());
  }
  if (auto shared = share_cores(scenario.document, program); !shared) {
    return tl::unexpected(std::move(shared).error());
  }
  if (auto bound = bind_processes(scenario.document, program); !bound) {
    return tl::unexpected(std::move(bound).error());
  }
  if (auto ordered = order_launches(scenario, program); !ordered) {
    return tl::unexpected(std::move(ordered).error());
  }
  if (scenario.alone) {
    if (auto freed = free_kernels(scenario, program); !freed) {
      return tl::unexpected(std::move(freed).error());
    }
    separate_ranks(program);
  }
  RH_TRY(std::vector<bool> grew, grow_communicators(scenario, program));
  if (auto run = run_as_horovod(scenario, program, grew); !run) {
    return tl::unexpected(std::move(run).error());
  }
  return RunProgram{std::make_shared<const traces::Program>(std::move(program)), std::move(grew)};
}

}  // namespace rehearse::sim
