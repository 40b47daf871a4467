// SPDX-License-Identifier: Apache-2.0
#include "sim/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "platforms/model/links.hpp"
#include "sim/bringup/bringup.hpp"
#include "sim/efficiency.hpp"
#include "sim/fabric/fabric.hpp"
#include "sim/horovod/fusion.hpp"
#include "sim/nccl/messages.hpp"
#include "sim/nccl/node_graphs.hpp"
#include "sim/nccl/traffic.hpp"
#include "sim/outcome/expiry.hpp"
#include "sim/outcome/flight_records.hpp"
#include "sim/outcome/outcome.hpp"
#include "sim/outcome/pictures.hpp"
#include "sim/prepared.hpp"
#include "sim/replay/replay.hpp"
#include "sim/run_program.hpp"
#include "sim/scenario/grow.hpp"
#include "sim/scenario/regenerate.hpp"
#include "sim/scenario/timed.hpp"
#include "sim/schedule_director.hpp"
#include "sim/timers/retries.hpp"
#include "sim/transfer_traffic.hpp"
#include "sim/worker.hpp"
#include "traces/program/program.hpp"

namespace rehearse::sim {
namespace {

// What collectives and kernels contend for, by position of ranks in the program.
std::vector<GpuShare> gpu_shares(const pb::Scenario& scenario, const traces::Program& program) {
  std::vector<GpuShare> out(program.ranks.size());
  for (const pb::RankLaunch& rank : scenario.launch().ranks()) {
    const int at = program.find(rank.rank());
    if (at < 0) continue;
    const pb::Gpu& gpu =
        scenario.platform().nodes(static_cast<int>(rank.node())).gpus(static_cast<int>(rank.gpu()));
    out[static_cast<size_t>(at)] = {gpu.sms(), gpu.memory_bandwidth(),
                                    scenario.platform().efficiency().beside()};
  }
  return out;
}

// Ranks that work alone hold the whole model: there is nobody to share it with (PyTorch switches FSDP to NO_SHARD in a
// world of one).
Result<void> hold_whole_model(Scenario& scenario) {
  const auto& header = scenario.trace->header;
  if (header.has_synth()) {
    if (header.synth().zero() == 0) return {};
    pb::Patch whole;
    whole.mutable_regenerate()->set_zero(0);
    return regenerate(scenario, whole);
  }
  const auto gathers = [](const traces::RankTrace& rank) {
    return std::ranges::any_of(rank.ops.calls, [](const traces::Call& call) {
      return call.collective == traces::Collective::kReduceScatter;
    });
  };
  if (std::ranges::any_of(scenario.trace->ranks, gathers)) {
    scenario.findings.add("memory-of-shards", Severity::kWarning,
                          "the trace was recorded with shards of the model",
                          "memory and optimizer are those of a shard; a rank alone has more");
  }
  return {};
}

// The scenario as it came up: every rank on the GPU that it took, with those that it found.
Result<Scenario> as_it_came_up(const Scenario& scenario, const bringup::CameUp& up) {
  Scenario out = scenario;
  out.alone = up.alone;
  if (up.alone) {
    out.findings.add("effective-world-size", Severity::kWarning,
                     fmt::format("{} processes, each of which takes itself for the whole job",
                                 scenario.document.launch().ranks_size()),
                     "start them with the launcher of the framework");
    if (auto held = hold_whole_model(out); !held) return tl::unexpected(held.error());
  }
  for (const auto& [entry, gpu] : up.moved) {
    out.document.mutable_launch()->mutable_ranks(entry)->set_gpu(gpu);
    out.findings.add("unexpected-device", Severity::kWarning,
                     fmt::format("rank {} runs on GPU {}, not {}",
                                 scenario.document.launch().ranks(entry).rank(), gpu,
                                 scenario.document.launch().ranks(entry).gpu()),
                     "see CUDA_VISIBLE_DEVICES and the local rank of its process");
  }
  return out;
}

// A transfer of a rank and of its likes in other replicas, which meet it at the storage. Copies meet
// nothing of other replicas: each has its own links, with the same on them.
Result<std::optional<CallTraffic>> replicated_transfer(const Scenario& scenario,
                                                       const ModelContext& context,
                                                       const traces::Program& program, size_t r,
                                                       const traces::Transfer& transfer) {
  const traces::RankProgram& rank = program.ranks[r];
  const Nanos duration = rank.duration[transfer.op];
  RH_TRY(std::optional<CallTraffic> out,
         transfer_traffic(context, program, rank.rank, transfer, duration));
  for (uint32_t j = 1; out && is_storage(transfer.way) && j < scenario.replicas; ++j) {
    const auto like = static_cast<traces::RankId>(rank.rank + j * scenario.replica_ranks);
    RH_TRY(const std::optional<CallTraffic> copy,
           transfer_traffic(context, program, like, transfer, duration));
    if (copy) add_traffic(*out, *copy);
  }
  return out;
}

// Timeline and pictures of the run up to its end.
void show(const Scenario& scenario, const Evidence& whole, Detail detail, pb::Outcome& outcome) {
  Replayed until;
  if (outcome.verdict() == pb::CRASH) {
    until = cut(whole, outcome.end_ns());
    // Nothing is to be seen of the time in which only timers ran.
    if (outcome.last_progress_ns() > 0) until.end_time = outcome.last_progress_ns();
  }
  const Evidence ended{whole.program, whole.names,   until,         whole.models,
                       whole.links,   whole.options, whole.schedule};
  const Evidence& evidence = outcome.verdict() == pb::CRASH ? ended : whole;
  if (has(detail, Detail::kTimeline)) fill_timeline(evidence, 0, *outcome.mutable_timeline());
  if (has(detail, Detail::kPictures)) {
    outcome.set_pictures(packed(make_pictures(scenario, evidence, outcome)));
  }
}

// Where a replay is looked at on its way.
struct Looks {
  const std::vector<Nanos>& times;
  const WatchFn& look;
};

Result<void> replay_and_look(const Scenario& scenario, const Looks* looks, Reporter& reporter,
                             const std::function<void(const Evidence&)>& look) {
  RH_TRY(const RunProgram own, program_of_run(scenario));
  const traces::Program& program = *own.program;
  RH_TRY(platforms::Links links, platforms::Links::build(scenario.document.platform()));
  NodeGraphCache cache(scenario.document.platform(), scenario.prepared != nullptr
                                                         ? scenario.prepared->graphs
                                                         : NodeGraphCache::Known{});
  const ModelContext context{scenario.document.platform(), links, scenario.document.launch(),
                             &cache};
  std::vector<CommunicatorModel> models;
  std::vector<std::vector<CommunicatorModel>> copies;  // of communicators that exist per replica
  for (size_t c = 0; c < program.communicators.size(); ++c) {
    const traces::Communicator& communicator = program.communicators[c];
    RH_TRY(CommunicatorModel model, CommunicatorModel::create(context, communicator));
    models.push_back(std::move(model));
    copies.emplace_back();
    for (uint32_t j = 1; j < scenario.replicas && !own.grew[c]; ++j) {
      RH_TRY(
          CommunicatorModel copy,
          CommunicatorModel::create(context, replica_of(communicator, j, scenario.replica_ranks)));
      copies.back().push_back(std::move(copy));
    }
  }
  const std::vector<BytesPerSec> capacities =
      effective_capacities(scenario.document.platform(), links);
  RH_TRY(Schedule schedule, schedule_of(scenario, links, capacities));
  schedule.retries = retries_of(schedule, links, scenario.document.launch(), models);
  const std::unique_ptr<Fabric> fabric = make_simgrid_fabric(capacities);
  const TrafficOf traffic = [&](const traces::Call& call, uint32_t member) -> Result<CallTraffic> {
    RH_TRY(CallTraffic out, models[call.communicator].traffic(call, member));
    add_hops(context, models[call.communicator], call, member, out);
    for (const CommunicatorModel& model : copies[call.communicator]) {
      RH_TRY(CallTraffic copy, model.traffic(call, member));
      add_hops(context, model, call, member, copy);
      add_traffic(out, copy);
    }
    return out;
  };
  ReplayOptions options;
  options.traffic = traffic;
  options.capacity = capacities;
  options.gpus = gpu_shares(scenario.document, program);
  options.transfer = [&](size_t r, const traces::Transfer& transfer) {
    return replicated_transfer(scenario, context, program, r, transfer);
  };
  if (scenario.document.fidelity() == pb::STEP) {
    options.messages = [&](const traces::Call& call, uint32_t member) {
      return message_plan(context, models[call.communicator], call, member);
    };
  }
  ScheduleDirector director(schedule, program);
  // Under a director ranks do not run ahead of the clock: what is looked at is of one moment.
  if (!schedule.empty() || looks != nullptr) options.director = &director;
  Watch watch;
  if (looks != nullptr) {
    watch.times = looks->times;
    watch.look = [&](const Standing& standing) {
      if (options.director != nullptr) schedule.outages = director.outages();
      return looks->look(
          {program, scenario.trace->strings, standing.replayed, models, links, options, schedule},
          standing);
    };
    options.watch = &watch;
  }
  RH_TRY(Replayed replayed, replay(program, options, *fabric, reporter));
  if (options.director != nullptr) schedule.outages = director.outages();
  if (look) look({program, scenario.trace->strings, replayed, models, links, options, schedule});
  return {};
}

}  // namespace

Result<void> replay_here(const Scenario& scenario, Reporter& reporter,
                         const std::function<void(const Evidence&)>& look) {
  return replay_and_look(scenario, nullptr, reporter, look);
}

Result<void> watch_here(const Scenario& scenario, const std::vector<Nanos>& times,
                        Reporter& reporter, const WatchFn& look) {
  const Looks looks{times, look};
  return replay_and_look(scenario, &looks, reporter, {});
}

Result<Start> come_up(const Scenario& written) {
  RH_TRY(bringup::CameUp up, bringup::bring_up(written));
  Start start{std::move(up)};
  if (start.up.failed) return start;
  if (start.up.alone || !start.up.moved.empty()) {
    RH_TRY(start.other, as_it_came_up(written, start.up));
  }
  RH_TRY(auto fused, fused_anew(start.of(written)));
  if (fused != nullptr) {
    if (!start.other) start.other = written;
    start.other->trace = std::move(fused);
  }
  return start;
}

Result<pb::Outcome> simulate_here(const Scenario& written, Detail detail, Reporter& reporter) {
  RH_TRY(Start start, come_up(written));
  const bringup::CameUp& up = start.up;
  const auto tell_origin = [&](pb::Outcome& outcome) {
    *outcome.mutable_origin() = written.origin;
    outcome.mutable_origin()->set_fidelity(written.document.fidelity());
  };
  if (up.failed) {
    tell_origin(start.up.outcome);
    if (has(detail, Detail::kDumps) && dumps_records(written.document.launch(), start.up.outcome)) {
      fill_first_calls(written, start.up.outcome);
    }
    return std::move(start.up.outcome);
  }
  const Scenario& scenario = start.of(written);
  pb::Outcome outcome;
  auto done = replay_here(scenario, reporter, [&](const Evidence& evidence) {
    outcome = has(detail, Detail::kSummary) ? make_outcome(scenario, evidence)
              : has(detail, Detail::kLinks) ? make_observed(scenario, evidence)
                                            : make_figures(scenario, evidence);
    outcome.MergeFrom(up.outcome);
    if (up.alone && outcome.verdict() == pb::COMPLETED) outcome.set_verdict(pb::WRONG_SEMANTICS);
    if (has(detail, Detail::kSavings) && outcome.has_critical_path()) {
      fill_savings(evidence, *outcome.mutable_critical_path());
    }
    const bool ended = outcome.verdict() == pb::CRASH;
    if (has(detail, Detail::kDumps) && dumps_records(scenario.document.launch(), outcome)) {
      fill_flight_records(scenario, evidence, ended ? outcome.end_ns() : INT64_MAX, outcome);
    }
    if (outcome.verdict() == pb::HANG) add_health_report(scenario, evidence, outcome);
    if (has(detail, Detail::kTimeline) || has(detail, Detail::kPictures)) {
      show(scenario, evidence, detail, outcome);
    }
  });
  if (!done) return tl::unexpected(done.error());
  tell_origin(outcome);
  return outcome;
}

Result<pb::Outcome> simulate(const Scenario& scenario, Reporter& reporter) {
  return simulate(scenario, Detail::kSummary, reporter);
}

Result<pb::Outcome> simulate(const Scenario& scenario, Detail detail, Reporter& reporter) {
  RH_TRY(std::string bytes, in_child(
                                [&](Reporter& inner) -> Result<std::string> {
                                  RH_TRY(pb::Outcome outcome,
                                         simulate_here(scenario, detail, inner));
                                  return encoded(outcome);
                                },
                                reporter));
  pb::Outcome outcome;
  if (!outcome.ParseFromString(bytes)) {
    return fail(Code::kInternal, "the simulation's answer could not be read");
  }
  return outcome;
}

}  // namespace rehearse::sim
