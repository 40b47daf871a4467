// SPDX-License-Identifier: Apache-2.0
#include "sim/simulate.hpp"

#include "platforms/model/links.hpp"
#include "sim/efficiency.hpp"
#include "sim/fabric/fabric.hpp"
#include "sim/nccl/messages.hpp"
#include "sim/nccl/node_graphs.hpp"
#include "sim/nccl/traffic.hpp"
#include "sim/outcome/outcome.hpp"
#include "sim/replay/replay.hpp"
#include "sim/scenario/transform.hpp"
#include "sim/worker.hpp"
#include "traces/program/program.hpp"

namespace rehearse::sim {
namespace {

// The GPUs' own speed: compute of a rank on a GPU that runs at half speed takes twice as long.
void apply_gpu_speeds(const Scenario& scenario, traces::Program& program) {
  for (const pb::RankLaunch& rank : scenario.document.launch().ranks()) {
    const pb::Gpu& gpu = scenario.document.platform()
                             .nodes(static_cast<int>(rank.node()))
                             .gpus(static_cast<int>(rank.gpu()));
    if (gpu.speed() <= 0 || gpu.speed() == 1) continue;
    pb::Patch patch;
    patch.mutable_slow_rank()->set_rank(rank.rank());
    patch.mutable_slow_rank()->set_slowdown(1 / gpu.speed());
    if (auto done = transform(program, patch); !done) continue;
  }
}

// What collectives and kernels contend for, by position of ranks in the program.
std::vector<GpuShare> gpu_shares(const pb::Scenario& scenario, const traces::Program& program) {
  std::vector<GpuShare> out(program.ranks.size());
  for (const pb::RankLaunch& rank : scenario.launch().ranks()) {
    const int at = program.find(rank.rank());
    if (at < 0) continue;
    const pb::Gpu& gpu =
        scenario.platform().nodes(static_cast<int>(rank.node())).gpus(static_cast<int>(rank.gpu()));
    out[static_cast<size_t>(at)] = {gpu.sms(), gpu.memory_bandwidth()};
  }
  return out;
}

Result<pb::Outcome> run(const Scenario& scenario, Reporter& reporter) {
  RH_TRY(traces::Program program, traces::build_program(*scenario.trace));
  apply_gpu_speeds(scenario, program);
  for (const pb::Patch& patch : scenario.transforms) {
    if (auto done = transform(program, patch); !done) return tl::unexpected(done.error());
  }
  RH_TRY(platforms::Links links, platforms::Links::build(scenario.document.platform()));
  NodeGraphCache cache(scenario.document.platform());
  const ModelContext context{scenario.document.platform(), links, scenario.document.launch(),
                             &cache};
  std::vector<CommunicatorModel> models;
  for (const traces::Communicator& communicator : program.communicators) {
    RH_TRY(CommunicatorModel model, CommunicatorModel::create(context, communicator));
    models.push_back(std::move(model));
  }
  const std::vector<BytesPerSec> capacities =
      effective_capacities(scenario.document.platform(), links);
  const std::unique_ptr<Fabric> fabric = make_simgrid_fabric(capacities);
  const TrafficOf traffic = [&](const traces::Call& call, uint32_t member) {
    auto out = models[call.communicator].traffic(call, member);
    if (out) add_hops(context, models[call.communicator], call, member, *out);
    return out;
  };
  ReplayOptions options;
  options.traffic = traffic;
  options.capacity = capacities;
  options.gpus = gpu_shares(scenario.document, program);
  if (scenario.document.fidelity() == pb::STEP) {
    options.messages = [&](const traces::Call& call, uint32_t member) {
      return message_plan(context, models[call.communicator], call, member);
    };
  }
  RH_TRY(Replayed replayed, replay(program, options, *fabric, reporter));
  return make_outcome(scenario, {program, scenario.trace->strings, replayed, models, links});
}

}  // namespace

Result<pb::Outcome> simulate(const Scenario& scenario, Reporter& reporter) {
  RH_TRY(std::string bytes, in_child(
                                [&](Reporter& inner) -> Result<std::string> {
                                  RH_TRY(pb::Outcome outcome, run(scenario, inner));
                                  return outcome.SerializeAsString();
                                },
                                reporter));
  pb::Outcome outcome;
  if (!outcome.ParseFromString(bytes)) {
    return fail(Code::kInternal, "the simulation's answer could not be read");
  }
  return outcome;
}

}  // namespace rehearse::sim
