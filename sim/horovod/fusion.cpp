// SPDX-License-Identifier: Apache-2.0
#include "sim/horovod/fusion.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/install.hpp"
#include "platforms/model/catalogue.hpp"
#include "sim/host/host_model.hpp"
#include "traces/synth/synth.hpp"

namespace rehearse::sim {
namespace {

constexpr Bytes kLargestElement = 8;
constexpr Bytes kAtomicUnit = 64;  // FUSION_BUFFER_ATOMIC_UNIT

bool is_generated(const traces::Trace& trace) {
  return trace.header.has_synth() && trace.header.synth().framework() == "horovod";
}

// Ranks of a node, where all nodes have as many; 0: they do not.
Bytes local_size(const pb::Launch& launch) {
  std::map<uint32_t, Bytes> count;
  for (const pb::RankLaunch& rank : launch.ranks()) ++count[rank.node()];
  const bool even = std::ranges::all_of(
      count, [&](const auto& node) { return node.second == count.begin()->second; });
  return even && !count.empty() ? count.begin()->second : 0;
}

Bytes rounded(Bytes threshold, Bytes local) {
  const Bytes unit = std::max<Bytes>(1, local * kLargestElement * kAtomicUnit);
  return (threshold + unit - 1) / unit * unit;
}

Fusing recorded_of(const Scenario& scenario, const traces::RankTrace* rank) {
  const traces::Trace& trace = *scenario.trace;
  if (is_generated(trace)) return {trace.header.synth().fusion(), trace.header.synth().cycle()};
  const HorovodSettings settings =
      horovod_settings(rank == nullptr ? std::map<std::string, std::string>{} : rank->env,
                       scenario.document.launch().framework_version());
  return {settings.fusion, settings.cycle};
}

// What the scenario says of it, else what Horovod does by itself or did in the recording.
Fusing wanted_of(const Scenario& scenario, const HorovodSettings& settings,
                 const Fusing& recorded) {
  Fusing out{settings.fusion, settings.cycle};
  const bool written = scenario.document.trace().has_synth() && is_generated(*scenario.trace);
  const pb::Synth& synth = scenario.document.trace().synth();
  if (!settings.fusion_told && (!written || synth.fusion() != 0))
    out.threshold = recorded.threshold;
  if (!settings.cycle_told && (!written || synth.cycle() != 0)) out.cycle = recorded.cycle;
  return out;
}

// Gives a rank of one generator the name ids of another.
void rename(traces::RankTrace& rank, const traces::Strings& from, traces::Strings& into) {
  for (uint32_t& name : rank.ops.name) name = into.intern(from.at(name));
  for (traces::Lane& lane : rank.lanes) lane.name = into.intern(from.at(lane.name));
}

}  // namespace

std::vector<RankFusing> fusing_of(const Scenario& scenario) {
  const pb::Launch& launch = scenario.document.launch();
  const Bytes local = local_size(launch);
  std::map<uint32_t, HorovodSettings> told;
  for (const pb::RankLaunch& rank : launch.ranks()) {
    told[rank.rank()] = horovod_settings(launch, rank);
  }
  std::vector<RankFusing> out;
  Nanos longest = 0;
  for (const traces::RankTrace& rank : scenario.trace->ranks) {
    const Fusing recorded = recorded_of(scenario, &rank);
    const auto at = told.find(rank.rank);
    const Fusing wanted = at == told.end() ? recorded : wanted_of(scenario, at->second, recorded);
    out.push_back({wanted, recorded});
    longest = std::max(longest, wanted.cycle);
  }
  const bool own = told.empty() || told.begin()->second.cache > 0;
  for (RankFusing& rank : out) {
    rank.wanted.cycle = longest;
    if (!own) rank.wanted.threshold = out.front().wanted.threshold;
    rank.wanted.threshold = rounded(rank.wanted.threshold, local);
    rank.recorded.threshold = rounded(rank.recorded.threshold, local);
  }
  return out;
}

bool packs_differently(const pb::Launch& launch) {
  if (launch.framework() != pb::HOROVOD || launch.ranks().empty()) return false;
  const HorovodSettings first = horovod_settings(launch, launch.ranks(0));
  if (first.cache == 0) return false;
  return std::ranges::any_of(launch.ranks(), [&](const pb::RankLaunch& rank) {
    return horovod_settings(launch, rank).fusion != first.fusion;
  });
}

Result<std::shared_ptr<const traces::Trace>> fused_anew(const Scenario& scenario) {
  const traces::Trace& trace = *scenario.trace;
  if (scenario.document.launch().framework() != pb::HOROVOD || !is_generated(trace)) {
    return std::shared_ptr<const traces::Trace>();
  }
  const std::vector<RankFusing> fusing = fusing_of(scenario);
  if (std::ranges::all_of(fusing, [](const RankFusing& f) { return f.wanted == f.recorded; })) {
    return std::shared_ptr<const traces::Trace>();
  }
  RH_TRY(const std::filesystem::path folder, shipped("platforms/catalogue"));
  const platforms::PlatformCatalogue catalogue(folder);
  RH_TRY(const pb::Gpu gpu, catalogue.gpu(trace.header.synth().gpu()));
  auto out = std::make_shared<traces::Trace>();
  out->header = trace.header;
  out->communicators = trace.communicators;
  out->ranks.resize(trace.ranks.size());
  std::map<Bytes, std::vector<size_t>> alike;  // positions of ranks by threshold
  for (size_t r = 0; r < fusing.size(); ++r) alike[fusing[r].wanted.threshold].push_back(r);
  for (const auto& [threshold, ranks] : alike) {
    pb::Synth job = trace.header.synth();
    job.set_fusion(threshold);
    job.set_cycle(fusing.front().wanted.cycle);
    RH_TRY(const synth::Generator generator, synth::Generator::create(job, gpu));
    for (const size_t r : ranks) {
      out->ranks[r] = generator.rank(trace.ranks[r].rank);
      rename(out->ranks[r], generator.strings(), out->strings);
    }
  }
  *out->header.mutable_synth() = trace.header.synth();
  out->header.mutable_synth()->set_fusion(fusing.front().wanted.threshold);
  out->header.mutable_synth()->set_cycle(fusing.front().wanted.cycle);
  return out;
}

std::map<uint32_t, Bytes> fusion_memory(const Scenario& scenario) {
  std::map<uint32_t, Bytes> out;
  const pb::Launch& launch = scenario.document.launch();
  const auto on_gpus = [&](const traces::Communicator& communicator) {
    return communicator.members.size() > 1 && !host_library(launch, communicator);
  };
  if (launch.framework() != pb::HOROVOD ||
      std::ranges::none_of(scenario.trace->communicators, on_gpus)) {
    return out;
  }
  std::map<uint32_t, Bytes> streams;
  for (const pb::RankLaunch& rank : launch.ranks()) {
    streams[rank.rank()] = horovod_settings(launch, rank).streams;
  }
  const std::vector<RankFusing> fusing = fusing_of(scenario);
  for (size_t r = 0; r < fusing.size(); ++r) {
    const uint32_t rank = scenario.trace->ranks[r].rank;
    out[rank] = fusing[r].wanted.threshold * std::max<Bytes>(1, streams[rank]);
  }
  return out;
}

}  // namespace rehearse::sim
