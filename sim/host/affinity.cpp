// SPDX-License-Identifier: Apache-2.0
#include "sim/host/affinity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "base/rank_ranges.hpp"
#include "base/text.hpp"
#include "sim/nccl/environment.hpp"
#include "sim/scenario/environment.hpp"
#include "sim/scenario/transform.hpp"

namespace rehearse::sim {
namespace {

constexpr Nanos kSlice = 3'000'000;
constexpr double kFarCopies = 4;
constexpr uint32_t kMostCores = 4096;

using Cores = std::set<uint32_t>;

uint32_t cores_of(const pb::Node& node) {
  uint32_t all = 0;
  for (const pb::NumaDomain& numa : node.numa()) all += numa.cores();
  return all;
}

// NUMA domain of the root port above a device.
uint32_t domain_above(const pb::Node& node, const pb::PcieLink& link) {
  const pb::PcieLink* at = &link;
  for (int hops = 0; !at->parent().empty() && hops < node.switches_size(); ++hops) {
    const auto above = std::find_if(node.switches().begin(), node.switches().end(),
                                    [&](const auto& each) { return each.name() == at->parent(); });
    if (above == node.switches().end()) break;
    at = &above->pcie();
  }
  return at->numa();
}

Cores near_gpu(const pb::Node& node, const pb::Gpu& gpu) {
  const uint32_t domain = domain_above(node, gpu.pcie());
  Cores out;
  uint32_t first = 0;
  for (uint32_t d = 0; d < static_cast<uint32_t>(node.numa_size()); ++d) {
    const uint32_t count = node.numa(static_cast<int>(d)).cores();
    for (uint32_t core = first; d == domain && core < first + count; ++core) out.insert(core);
    first += count;
  }
  return out;
}

Result<Cores> cores_given(const pb::RankLaunch& rank, const pb::Node& node) {
  const std::string where = fmt::format("launch.ranks[rank={}].cpus", rank.rank());
  const auto ranges = parse_rank_ranges(rank.cpus());
  if (!ranges) {
    return fail(Code::kBadInput, fmt::format("{} is no list of cores", in_quotes(rank.cpus())),
                where, "write it as 0-7,16");
  }
  const uint32_t known = cores_of(node);
  Cores out;
  for (const RankRange& range : *ranges) {
    if (range.last >= (known > 0 ? known : kMostCores)) {
      return fail(Code::kBadInput,
                  fmt::format("there is no core {}: {} has {}", range.last, node.name(),
                              known > 0 ? std::to_string(known) : "at most 4096"),
                  where, "cores count from 0 through the NUMA domains");
    }
    for (uint32_t core = range.first; core <= range.last; ++core) out.insert(core);
  }
  return out;
}

Cores both(const Cores& a, const Cores& b) {
  Cores out;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(out, out.end()));
  return out;
}

// The core that HOROVOD_THREAD_AFFINITY names for a local rank; nothing: none.
std::optional<uint32_t> told_core(const std::map<std::string, std::string>& env, uint32_t local) {
  const auto at = env.find("HOROVOD_THREAD_AFFINITY");
  if (at == env.end()) return std::nullopt;
  const std::vector<std::string> cores = split(at->second, ',');
  if (local >= cores.size()) return std::nullopt;
  uint32_t core = 0;
  const std::string& text = cores[local];
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), core);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return core;
}

// A thread that may run on `own` has no core but the one of the training loop, which is busy.
bool is_starved(const Cores& own, const Cores& loop) { return loop.size() == 1 && own == loop; }

}  // namespace

Result<CoreTrouble> trouble_with_cores(const pb::Scenario& document, const pb::RankLaunch& rank,
                                       uint32_t local) {
  CoreTrouble out;
  if (rank.cpus().empty()) return out;
  const pb::Node& node = document.platform().nodes(static_cast<int>(rank.node()));
  RH_TRY(const Cores given, cores_given(rank, node));
  const Cores near = near_gpu(node, node.gpus(static_cast<int>(rank.gpu())));
  const auto env = environment_of(document.launch(), rank);
  const Cores usable = both(given, near);
  out.far = !near.empty() && usable.empty();
  const bool ignores = whole_number(env, "NCCL_IGNORE_CPU_AFFINITY", 0) != 0;
  const Cores& proxy = ignores && !near.empty() ? near : usable.empty() ? given : usable;
  out.proxy_starved = is_starved(proxy, given);
  if (document.launch().framework() == pb::HOROVOD) {
    const auto told = told_core(env, local);
    out.horovod_starved = is_starved(told ? Cores{*told} : given, given);
  }
  return out;
}

bool binds_processes(const pb::Launch& launch) {
  return std::any_of(launch.ranks().begin(), launch.ranks().end(),
                     [](const pb::RankLaunch& rank) { return !rank.cpus().empty(); });
}

Result<void> bind_processes(const pb::Scenario& document, traces::Program& program) {
  const pb::Launch& launch = document.launch();
  if (!binds_processes(launch)) return {};
  std::map<uint32_t, uint32_t> node_of, on_node;
  for (const pb::RankLaunch& rank : launch.ranks()) node_of[rank.rank()] = rank.node();
  const auto several_nodes = [&](const traces::Communicator& communicator) {
    std::set<uint32_t> nodes;
    for (const traces::RankId member : communicator.members) nodes.insert(node_of[member]);
    return nodes.size() > 1;
  };
  std::vector<bool> fed;  // by communicator: by a proxy
  for (const traces::Communicator& each : program.communicators) fed.push_back(several_nodes(each));
  for (const pb::RankLaunch& rank : launch.ranks()) {
    RH_TRY(const CoreTrouble trouble, trouble_with_cores(document, rank, on_node[rank.node()]++));
    const int at = program.find(rank.rank());
    if (at < 0) continue;
    if (trouble.far) {
      pb::SlowCopies slow;
      slow.set_rank(rank.rank());
      slow.set_slowdown(kFarCopies);
      if (auto done = slow_copies(program, slow); !done) return done;
      program.findings.add("far-cores", Severity::kWarning,
                           fmt::format("rank {} runs on cores {}", rank.rank(), rank.cpus()),
                           "its GPU is at another NUMA domain: bind it to the cores there");
    }
    size_t late = 0;
    traces::RankProgram& own = program.ranks[static_cast<size_t>(at)];
    for (size_t c = 0; c < own.calls.size(); ++c) {
      const bool collective = !traces::is_point_to_point(own.calls[c].collective);
      const bool waits = (trouble.proxy_starved && fed[own.calls[c].communicator]) ||
                         (trouble.horovod_starved && collective);
      if (!waits) continue;
      own.gap[own.call_op[c]] += kSlice;
      ++late;
    }
    if (late == 0) continue;
    program.findings.add("few-cores", Severity::kWarning,
                         fmt::format("rank {} has core {} for all its threads: {} calls are late",
                                     rank.rank(), rank.cpus(), late),
                         "give it more cores (mpirun -bind-to none), or its threads others "
                         "(NCCL_IGNORE_CPU_AFFINITY, HOROVOD_THREAD_AFFINITY)");
  }
  return {};
}

}  // namespace rehearse::sim
