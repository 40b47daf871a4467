// SPDX-License-Identifier: Apache-2.0
// What NCCL found on one node for one kind of communicator: the system and the graph of every
// pattern. Nodes that are alike share it, so that a job of a thousand nodes is searched once.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/finding.hpp"
#include "platforms/import/told.hpp"
#include "sim/nccl/search.hpp"
#include "sim/proto/scenario.pb.h"

namespace rehearse::sim {

struct NodeGraphs {
  NodeSystem system;
  SearchedGraph ring, tree, nvls, collnet_chain, collnet_direct;
  bool recorded = false;  // taken from Node.nccl_graphs instead of searched
};

// Searches each different node once. Not thread-safe; holds on to the platform, which must not
// change meanwhile.
class NodeGraphCache {
 public:
  // Files that ranks read.
  struct Files {
    platforms::ImportText topology, graph;
    bool operator==(const Files& other) const {
      return topology.name == other.topology.name && topology.text == other.topology.text &&
             graph.name == other.graph.name && graph.text == other.graph.text;
    }
  };

  // Results by all that they follow from, so that the cache of another platform may begin with them.
  struct Known {
    std::map<std::string, uint32_t> hardware;  // a node serialised without names, to a number
    std::vector<Files> files;                  // by number, from 1
    std::map<std::pair<uint32_t, uint32_t>, pb::Node> as_told;  // by hardware and files
    std::map<std::string, std::shared_ptr<const NodeGraphs>> graphs;
    std::map<std::string, std::shared_ptr<const NodeSystem>> systems;
  };

  explicit NodeGraphCache(const pb::Platform& platform) : platform_(platform) {}
  NodeGraphCache(const pb::Platform& platform, Known known)
      : platform_(platform), known_(std::move(known)) {}

  // Files that ranks read (Launch.files; null: none): the number for TopologySettings::files.
  [[nodiscard]] uint32_t know(const pb::LaunchFile* topology, const pb::LaunchFile* graph);
  // Reads them for a node, once for nodes that are alike. kBadInput, with line and column, for a file
  // that NCCL cannot read.
  [[nodiscard]] Result<void> read(uint32_t node, uint32_t files, Findings& findings);

  // Shared because communicators of one job keep the same result. What the settings' files say of the
  // nodes of the scope was read before.
  [[nodiscard]] std::shared_ptr<const NodeGraphs> find(const SystemScope& scope,
                                                       const TopologySettings& settings);

  // The system alone, without a search.
  [[nodiscard]] std::shared_ptr<const NodeSystem> look(const SystemScope& scope,
                                                       const TopologySettings& settings);

  [[nodiscard]] const Known& known() const { return known_; }

 private:
  // The node as ranks with these files take it.
  [[nodiscard]] const pb::Node& seen(uint32_t node, uint32_t files);
  [[nodiscard]] uint32_t hardware_of(uint32_t node);
  [[nodiscard]] std::string key_of(const SystemScope& scope, const TopologySettings& settings);

  const pb::Platform& platform_;
  Known known_;
  std::map<uint32_t, uint32_t> hardware_of_node_;  // of the nodes asked for
};

}  // namespace rehearse::sim
