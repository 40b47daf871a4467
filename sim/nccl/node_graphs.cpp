// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/node_graphs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace rehearse::sim {
namespace {

constexpr int kMaxRings = 32;
constexpr int kMaxHeads = 64;

std::string text_of(const TopologySettings& s) {
  return fmt::format(
      "{}.{}.{}.{}.{}.{}.{}.{}.{}.{}.{}.{}.{}.{}.{}.{}.{}.{}", static_cast<int>(s.p2p_level),
      s.p2p_level_given, static_cast<int>(s.gdr_level), s.shared_memory, s.through_gpu, s.pxn,
      s.pxn_c2c, s.gdr_c2c, s.cross_nic, s.nets_per_gpu, s.nvls, s.collnet, s.multi_node_nvlink,
      s.gdr_read, s.dma_buffers, s.merge_ports, s.files, s.version.code());
}

PathType type_of(const std::string& text, PathType otherwise) {
  const auto type = parse_path_type(text);
  return type ? *type : otherwise;
}

// A graph file counts for communicators that have every GPU of the node and, with a network, when it
// names NICs that are there.
bool take_recorded(const pb::Node& node, const NodeSystem& system, uint32_t id,
                   SearchedGraph& out) {
  if (system.hosts.size() != 1 || system.gpus.size() != static_cast<size_t>(node.gpus_size())) {
    return false;
  }
  for (const pb::NcclGraph& graph : node.nccl_graphs()) {
    if (graph.id() != id || graph.channels().empty()) continue;
    SearchedGraph read;
    read.pattern =
        static_cast<GraphPattern>(std::clamp<int>(static_cast<int>(graph.pattern()), 1, 6));
    read.cross_nic = static_cast<int>(graph.cross_nic());
    read.intra = static_cast<float>(graph.intra() / 1e9);
    read.inter = static_cast<float>(graph.inter() / 1e9);
    read.type_intra = type_of(graph.intra_type(), PathType::kSys);
    read.type_inter = type_of(graph.inter_type(), PathType::kSys);
    read.same_channels = graph.same_channels();
    for (const pb::NcclChannel& channel : graph.channels()) {
      SearchedChannel added;
      std::set<uint32_t> seen;
      for (const uint32_t gpu : channel.gpus()) {
        if (gpu >= system.gpus.size() || !seen.insert(gpu).second) return false;
        added.gpus.push_back(gpu);
      }
      const bool heads = read.pattern == GraphPattern::kNvls;
      if (added.gpus.empty() || (!heads && added.gpus.size() != system.gpus.size())) return false;
      if (!system.nets.empty()) {
        const auto net = [&](int end, uint32_t& into) {
          if (end >= channel.nics_size()) return false;
          for (uint32_t n = 0; n < system.nets.size(); ++n) {
            const auto nic = static_cast<int>(system.nets[n].index);
            if (nic < node.nics_size() && node.nics(nic).name() == channel.nics(end)) {
              into = n;
              return true;
            }
          }
          return false;
        };
        if (!net(0, added.net_in) || !net(channel.nics_size() - 1, added.net_out)) return false;
      }
      read.channels.push_back(std::move(added));
    }
    out = std::move(read);
    return true;
  }
  return false;
}

}  // namespace

uint32_t NodeGraphCache::know(const pb::LaunchFile* topology, const pb::LaunchFile* graph) {
  if (topology == nullptr && graph == nullptr) return 0;
  Files files;
  if (topology != nullptr) files.topology = {topology->path(), topology->text()};
  if (graph != nullptr) files.graph = {graph->path(), graph->text()};
  const auto at = std::find(known_.files.begin(), known_.files.end(), files);
  const auto number = static_cast<uint32_t>(at - known_.files.begin()) + 1;
  if (at == known_.files.end()) known_.files.push_back(std::move(files));
  return number;
}

Result<void> NodeGraphCache::read(uint32_t node, uint32_t files, Findings& findings) {
  if (files == 0) return {};
  const auto key = std::pair(hardware_of(node), files);
  if (known_.as_told.count(key) > 0) return {};
  const Files& texts = known_.files[files - 1];
  pb::Node told = platform_.nodes(static_cast<int>(node));
  if (!texts.topology.name.empty()) {
    RH_TRY(told, platforms::told_topology(told, texts.topology, findings));
  }
  if (!texts.graph.name.empty()) {
    RH_TRY(told, platforms::told_graphs(std::move(told), texts.graph, findings));
  }
  known_.as_told.emplace(key, std::move(told));
  return {};
}

const pb::Node& NodeGraphCache::seen(uint32_t node, uint32_t files) {
  const auto told = known_.as_told.find({hardware_of(node), files});
  return told == known_.as_told.end() ? platform_.nodes(static_cast<int>(node)) : told->second;
}

uint32_t NodeGraphCache::hardware_of(uint32_t node) {
  const auto [at, fresh] = hardware_of_node_.emplace(node, 0);
  if (!fresh) return at->second;
  pb::Node copy = platform_.nodes(static_cast<int>(node));
  copy.clear_name();
  copy.clear_firewall();
  copy.clear_storage();
  copy.clear_versions();
  copy.clear_hosts();
  copy.clear_routes();
  copy.clear_memory();
  copy.clear_shm();
  copy.clear_ports_in_use();
  copy.clear_ephemeral_ports();
  copy.clear_locked_memory();
  copy.clear_open_files();
  copy.clear_missing_paths();
  copy.clear_missing_packages();
  copy.mutable_nvswitch()->clear_domain();
  // How fast a GPU computes does not decide how it is reached.
  for (auto& gpu : *copy.mutable_gpus()) {
    gpu.clear_speed();
    gpu.clear_memory();
    gpu.clear_memory_bandwidth();
    gpu.clear_flops();
    gpu.clear_sources();
  }
  for (auto& interface : *copy.mutable_interfaces()) interface.clear_addresses();
  const auto number = static_cast<uint32_t>(known_.hardware.size());
  at->second = known_.hardware.emplace(copy.SerializeAsString(), number).first->second;
  return at->second;
}

std::string NodeGraphCache::key_of(const SystemScope& scope, const TopologySettings& settings) {
  std::string key = text_of(settings) + (scope.sockets ? "s" : "r");
  if (platform_.fabric().sharp()) key += "c";
  std::map<uint32_t, size_t> position;
  for (const platforms::GpuRef& gpu : scope.gpus) position.emplace(gpu.node, 0);
  size_t next = 0;
  for (auto& [node, at] : position) {
    at = next++;
    key += fmt::format("h{}", hardware_of(node));
  }
  for (const platforms::GpuRef& gpu : scope.gpus) {
    key += fmt::format("g{}.{}", position[gpu.node], gpu.gpu);
  }
  for (const SystemScope::Net& net : scope.nets) {
    key += fmt::format("n{}.{}", position[net.host], net.index);
  }
  return key;
}

std::shared_ptr<const NodeSystem> NodeGraphCache::look(const SystemScope& scope,
                                                       const TopologySettings& settings) {
  auto& known = known_.systems[key_of(scope, settings)];
  if (!known) {
    known = std::make_shared<const NodeSystem>(
        platform_, [&](uint32_t node) -> const pb::Node& { return seen(node, settings.files); },
        scope, settings);
  }
  return known;
}

std::shared_ptr<const NodeGraphs> NodeGraphCache::find(const SystemScope& scope,
                                                       const TopologySettings& settings) {
  std::string key = key_of(scope, settings);
  if (const auto at = known_.graphs.find(key); at != known_.graphs.end()) return at->second;

  auto out =
      std::make_shared<NodeGraphs>(NodeGraphs{*look(scope, settings), {}, {}, {}, {}, {}, false});
  const NodeSystem& system = out->system;
  const pb::Node& node = seen(scope.gpus.front().node, settings.files);
  out->recorded = take_recorded(node, system, 0, out->ring);
  if (!out->recorded) {
    out->ring = search_graph(system, {GraphPattern::kRing, 1, kMaxRings, false}, settings);
  }
  const int rings = out->ring.n_channels();
  if (!take_recorded(node, system, 1, out->tree)) {
    out->tree = search_graph(system, {GraphPattern::kBalancedTree, rings, rings, false}, settings);
  }
  if (settings.nvls != 0 && node.nvswitch().sharp() && system.gpus.size() > 1 &&
      !take_recorded(node, system, 3, out->nvls)) {
    out->nvls = search_graph(system, {GraphPattern::kNvls, 1, kMaxHeads, false}, settings);
  }
  if (settings.collnet && !system.nets.empty()) {
    if (!take_recorded(node, system, 2, out->collnet_chain)) {
      out->collnet_chain =
          search_graph(system, {GraphPattern::kTree, rings, rings, true}, settings);
    }
    if (system.nvswitch != kNoDevice && system.gpus.size() > 1 &&
        !take_recorded(node, system, 4, out->collnet_direct)) {
      out->collnet_direct =
          search_graph(system, {GraphPattern::kCollnetDirect, 1, kMaxHeads, true}, settings);
    }
  }
  known_.graphs.emplace(std::move(key), out);
  return out;
}

}  // namespace rehearse::sim
