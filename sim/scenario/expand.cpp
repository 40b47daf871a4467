// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/expand.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <tuple>

#include "base/install.hpp"
#include "platforms/model/catalogue.hpp"

namespace rehearse::sim {
namespace {

// Words of a GPU's name that tell its chip: of "NVIDIA A100-SXM4-80GB" A100, of "NVIDIA GeForce RTX 3090" 3090.
std::set<std::string> chips_of(std::string_view model) {
  std::set<std::string> out;
  const auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  for (size_t at = 0; at < model.size();) {
    size_t end = at;
    while (end < model.size() && is_letter(model[end])) ++end;
    const std::string word(model.substr(at, end - at));
    const auto digits = std::count_if(word.begin(), word.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
    if (digits >= 2 && !word.ends_with("GB")) out.insert(word);
    at = end + 1;
  }
  return out;
}

// How much two names of GPUs are of the same one: all, or the chip.
size_t likeness(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return 0;
  if (a == b) return 100;
  const std::set<std::string> ours = chips_of(a);
  size_t common = 0;
  for (const std::string& word : chips_of(b)) common += ours.contains(word) ? 1 : 0;
  return common;
}

// The catalogue entry whose GPUs are those of the trace, NVIDIA's own machines first, then by memory; the platform
// repeated until all ranks fit.
Result<void> assume_platform(Scenario& scenario) {
  const traces::Trace& trace = *scenario.trace;
  const std::string model = trace.ranks.empty() ? "" : trace.ranks.front().gpu_model;
  RH_TRY(std::filesystem::path folder, shipped("platforms/catalogue"));
  const platforms::PlatformCatalogue catalogue(folder);
  RH_TRY(std::vector<platforms::Entry> entries, catalogue.list());
  std::string chosen = "dgx-h100";
  std::tuple<size_t, bool, Bytes> best{0, false, 0};
  for (const platforms::Entry& entry : entries) {
    RH_TRY(pb::Platform platform, catalogue.platform(entry.id));
    if (platform.nodes_size() == 0 || platform.nodes(0).gpus_size() == 0) continue;
    const pb::Gpu& gpu = platform.nodes(0).gpus(0);
    const Bytes recorded = trace.ranks.empty() ? 0 : trace.ranks.front().gpu_memory;
    const size_t alike = likeness(gpu.model(), model);
    const std::tuple fit(alike, entry.id.starts_with("dgx"),
                         recorded > 0 ? -std::abs(recorded - Bytes{gpu.memory()}) : 0);
    if (alike == 0 || (std::get<0>(best) > 0 && fit <= best)) continue;
    best = fit;
    chosen = entry.id;
  }
  RH_TRY(*scenario.document.mutable_platform(), catalogue.platform(chosen));
  scenario.findings.add(
      "platform-assumed", Severity::kWarning, scenario.document.name(),
      fmt::format(
          "no platform given; {} is assumed for {}; write `platform:` in a scenario to choose",
          chosen,
          model.empty() ? "GPUs that the trace does not name" : fmt::format("GPU '{}'", model)));
  return {};
}

uint32_t gpus_of(const pb::Platform& platform) {
  uint32_t n = 0;
  for (const pb::Node& node : platform.nodes()) n += static_cast<uint32_t>(node.gpus_size());
  return n;
}

// Ranks fill the nodes in order, as every launcher does by default.
Result<void> place_ranks(Scenario& scenario, const std::string& where) {
  const pb::Platform& platform = scenario.document.platform();
  pb::Launch& launch = *scenario.document.mutable_launch();
  std::vector<std::pair<uint32_t, uint32_t>> seats;
  for (int n = 0; n < platform.nodes_size(); ++n) {
    for (int g = 0; g < platform.nodes(n).gpus_size(); ++g) seats.emplace_back(n, g);
  }
  std::map<uint32_t, pb::RankLaunch> written;
  for (const pb::RankLaunch& rank : launch.ranks()) {
    if (!written.emplace(rank.rank(), rank).second) {
      return fail(Code::kBadInput, fmt::format("rank {} is placed twice", rank.rank()),
                  where + ": launch.ranks", "give every rank one entry");
    }
  }
  launch.clear_ranks();
  for (const traces::RankTrace& rank : scenario.trace->ranks) {
    pb::RankLaunch& out = *launch.add_ranks();
    if (const auto at = written.find(rank.rank); at != written.end()) {
      out = at->second;
      written.erase(at);
    } else {
      if (rank.rank >= seats.size()) {
        return fail(Code::kBadInput,
                    fmt::format("the trace has a rank {} but the platform has {} GPUs", rank.rank,
                                seats.size()),
                    where + ": platform", "raise `scale` of the platform to more nodes");
      }
      out.set_rank(rank.rank);
      out.set_node(seats[rank.rank].first);
      out.set_gpu(seats[rank.rank].second);
    }
  }
  if (!written.empty()) {
    return fail(Code::kBadInput,
                fmt::format("launch.ranks has rank {}, which the trace does not have",
                            written.begin()->first),
                where + ": launch.ranks", "remove the entry or use a trace with that rank");
  }
  return {};
}

// What a node's processes have in common becomes each rank's own, where the rank does not say otherwise.
Result<void> spread_environments(pb::Launch& launch, const std::string& where) {
  std::map<uint32_t, const pb::NodeLaunch*> nodes;
  for (const pb::NodeLaunch& node : launch.nodes()) {
    if (!nodes.emplace(node.node(), &node).second) {
      return fail(Code::kBadInput, fmt::format("node {} is there twice", node.node()),
                  where + ": launch.nodes", "give every node one entry");
    }
  }
  for (pb::RankLaunch& rank : *launch.mutable_ranks()) {
    const auto at = nodes.find(rank.node());
    if (at == nodes.end()) continue;
    for (const auto& [name, value] : at->second->env()) rank.mutable_env()->insert({name, value});
  }
  launch.clear_nodes();
  return {};
}

void fill_launch(Scenario& scenario) {
  pb::Launch& launch = *scenario.document.mutable_launch();
  const pb::TraceHeader& header = scenario.trace->header;
  if (launch.framework() == pb::FRAMEWORK_UNSPECIFIED) {
    launch.set_framework(header.framework() == "horovod"      ? pb::HOROVOD
                         : header.framework() == "tensorflow" ? pb::TENSORFLOW
                                                              : pb::PYTORCH);
  }
  if (launch.nccl_version().empty()) {
    launch.set_nccl_version(header.nccl_version().empty() ? "2.28.9" : header.nccl_version());
  }
  if (launch.world_size() == 0) {
    // A recording may have a few ranks of many.
    launch.set_world_size(std::max(header.world_size(), scenario.trace->ranks.back().rank + 1));
  }
  if (launch.master_port() == 0) launch.set_master_port(29500);
}

}  // namespace

Result<void> expand(Scenario& scenario, const std::string& where) {
  if (scenario.trace->ranks.empty()) {
    return fail(Code::kBadInput, "the trace has no ranks", where,
                scenario.trace->evidence.empty()
                    ? "record or generate one"
                    : "it holds logs, dumps or tables of a run: `rehearse diagnose` reads those");
  }
  pb::Platform& platform = *scenario.document.mutable_platform();
  if (platform.nodes_size() == 0) {
    if (auto assumed = assume_platform(scenario); !assumed) return assumed;
  }
  if (platform.scale() == 0 && platform.nodes_size() == 1 && platform.nodes(0).count() <= 1) {
    // One kind of node without a number: as many as the ranks need.
    pb::Platform one = platform;
    if (auto expanded = platforms::expand(one, where); !expanded) return expanded;
    const uint32_t per_node = gpus_of(one);
    const uint32_t last = scenario.trace->ranks.back().rank + 1;
    if (per_node > 0 && last > per_node) platform.set_scale((last + per_node - 1) / per_node);
  }
  scenario.written = platform;
  if (auto expanded = platforms::expand(platform, where); !expanded) return expanded;
  fill_launch(scenario);
  if (scenario.document.launch().master_addr().empty() && platform.nodes_size() > 0) {
    scenario.document.mutable_launch()->set_master_addr(platform.nodes(0).name());
  }
  if (auto placed = place_ranks(scenario, where); !placed) return placed;
  if (auto spread = spread_environments(*scenario.document.mutable_launch(), where); !spread) {
    return spread;
  }
  return check_seats(scenario.document, where);
}

Result<void> check_seats(const pb::Scenario& document, const std::string& where) {
  const pb::Platform& platform = document.platform();
  for (const pb::RankLaunch& rank : document.launch().ranks()) {
    const bool exists = rank.node() < static_cast<uint32_t>(platform.nodes_size()) &&
                        rank.gpu() < static_cast<uint32_t>(
                                         platform.nodes(static_cast<int>(rank.node())).gpus_size());
    if (exists) continue;
    return fail(Code::kBadInput,
                fmt::format("rank {} is placed on node {} GPU {}, which does not exist",
                            rank.rank(), rank.node(), rank.gpu()),
                where + ": launch.ranks", "nodes and GPUs count from 0");
  }
  return {};
}

}  // namespace rehearse::sim
