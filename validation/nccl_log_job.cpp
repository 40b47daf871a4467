// SPDX-License-Identifier: Apache-2.0
#include "validation/nccl_log_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "platforms/model/catalogue.hpp"

namespace rehearse::validation {
namespace {

constexpr uint32_t kMaxRanks = 65'536;

// A log of a forced algorithm shows the others with a latency and no bandwidth. Ring and Tree are
// always there unless they are switched off.
std::string forced_algorithms(const pb::NcclCommunicator& c) {
  std::set<std::string> listed, on;
  for (const pb::NcclTuningCell& cell : c.tuning()) {
    if (cell.collective() != "all_reduce") continue;
    listed.insert(cell.algorithm());
    if (cell.bandwidth() > 0) on.insert(cell.algorithm());
  }
  const bool forced = listed.contains("Ring") && listed.contains("Tree") && !on.empty() &&
                      (!on.contains("Ring") || !on.contains("Tree"));
  if (!forced) return "";
  std::string out;
  for (const std::string& name : on) out += (out.empty() ? "" : ",") + name;
  return out;
}

std::map<std::string, std::string> environment(const pb::NcclLog& log,
                                               const pb::NcclCommunicator& c,
                                               const LogComparison& with,
                                               const pb::NcclRank* rank) {
  std::map<std::string, std::string> env;
  if (rank != nullptr) {
    const auto& said = log.processes(static_cast<int>(rank->process())).environment();
    env.insert(said.begin(), said.end());
  }
  for (const auto& [name, value] : with.environment) env[name] = value;
  if (!env.contains("NCCL_ALGO")) {
    if (const std::string forced = forced_algorithms(c); !forced.empty()) {
      env["NCCL_ALGO"] = forced;
    }
  }
  return env;
}

}  // namespace

Result<LogJob> place_log(const pb::NcclLog& log, const pb::NcclCommunicator& c,
                         const LogComparison& with, std::vector<std::string>& assumed) {
  const auto assume = [&](std::string what) {
    if (std::find(assumed.begin(), assumed.end(), what) == assumed.end()) {
      assumed.push_back(std::move(what));
    }
  };
  if (c.ranks_total() > kMaxRanks) {
    return fail(Code::kLimit, fmt::format("a communicator of {} ranks", c.ranks_total()),
                "communicator " + c.id(), fmt::format("at most {} are compared", kMaxRanks));
  }
  LogJob job;
  job.platform = with.platform;
  std::map<int, const pb::NcclRank*> known;
  for (const pb::NcclRank& rank : c.ranks()) {
    if (rank.rank() >= 0) known.emplace(rank.rank(), &rank);
  }
  std::map<std::string, uint32_t> node_of;
  for (const auto& [number, rank] : known) {
    const std::string& host = log.processes(static_cast<int>(rank->process())).host();
    node_of.emplace(host, static_cast<uint32_t>(node_of.size()));
  }
  uint32_t nodes = std::max<uint32_t>({1, c.nodes(), static_cast<uint32_t>(node_of.size())});
  const bool all_known = known.size() == c.ranks_total();
  if (!all_known) {
    assume("ranks that the log does not show fill the nodes in order");
  }
  job.platform.set_scale(nodes);
  if (auto done = platforms::expand(job.platform, "platform"); !done) {
    return tl::unexpected(done.error());
  }
  const auto per_node = static_cast<uint32_t>((c.ranks_total() + nodes - 1) / nodes);
  for (uint32_t r = 0; r < c.ranks_total(); ++r) {
    const auto it = known.find(static_cast<int>(r));
    const pb::NcclRank* rank = it == known.end() ? nullptr : it->second;
    pb::RankLaunch& launch = *job.launch.add_ranks();
    launch.set_rank(r);
    launch.set_node(r / per_node);
    launch.set_gpu(r % per_node);
    if (rank != nullptr && all_known) {
      launch.set_node(node_of[log.processes(static_cast<int>(rank->process())).host()]);
      const int device = rank->nvml_device() >= 0 ? rank->nvml_device() : rank->device();
      const int gpus = job.platform.nodes(static_cast<int>(launch.node())).gpus_size();
      // A machine with fewer devices than its numbers: the platform's GPUs in order stand for them.
      if (device >= 0 && device < gpus) launch.set_gpu(static_cast<uint32_t>(device));
    }
    for (const auto& [name, value] : environment(log, c, with, rank))
      (*launch.mutable_env())[name] = value;
    if (launch.node() >= static_cast<uint32_t>(job.platform.nodes_size()) ||
        launch.gpu() >= static_cast<uint32_t>(
                            job.platform.nodes(static_cast<int>(launch.node())).gpus_size())) {
      return fail(
          Code::kBadInput,
          fmt::format("rank {} of {} needs GPU {} of node {}, which the platform does not have", r,
                      c.ranks_total(), launch.gpu(), launch.node()),
          "communicator " + c.id(), "name the platform that the log was written on");
    }
    job.communicator.members.push_back(r);
  }
  job.communicator.id = c.id();
  job.launch.set_nccl_version(c.nccl_version());
  if (c.nccl_version().empty()) {
    job.launch.set_nccl_version("2.28.9");
    assume("NCCL 2.28.9: the log does not say its version");
  }
  const std::string forced = forced_algorithms(c);
  const auto& env = job.launch.ranks(0).env();
  const auto given = env.find("NCCL_ALGO");
  if (!forced.empty() && given != env.end() && given->second == forced &&
      !with.environment.contains("NCCL_ALGO")) {
    assume(fmt::format("NCCL_ALGO={}, as the tuning table of the log shows", forced));
  }
  return job;
}

}  // namespace rehearse::validation
