// SPDX-License-Identifier: Apache-2.0
// What is known of a job, under the names that rules use. Made once from an expanded scenario, or from one put
// together from a cluster's files, in which most fields are unset: what is unset is not known.
//
//   job    framework framework_version launcher backend nccl_version world_size ranks nodes multi_node
//          master_addr master_port timeout (seconds, of a collective; the default when none is set)
//          fabric.kind fabric.ecmp storage.write (bytes per second)
//          layout.dp layout.tp layout.pp layout.ep layout.zero layout.micro_batches layout.model
//          training.* (fields of sim/proto/training.proto; times in seconds)  checkpoint.*
//   node   node node.name node.gpus node.ranks node.nics node.nics_up node.rdma node.shm node.memory node.acs
//          node.locked_memory node.open_files node.virtual node.iommu node.cores node.missing_paths node.missing_packages
//          version.NAME  (versions of the node; nccl and the framework also from the launch)
//   rank   rank local_rank gpu gpu.model gpu.memory gpu.capability computes_wrong, and variables of its environment
//          net.asked (any, ib, socket, libfabric, unknown: what NCCL makes of NCCL_NET)
//          net.verbs_off (NCCL_IB_DISABLE)
//
// A rank sees its node's and the job's facts. Of a variable, a node or job has the value that all its ranks share.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "faults/check/expression.hpp"
#include "sim/proto/scenario.pb.h"

namespace rehearse::faults {

using FactMap = std::map<std::string, std::string, std::less<>>;

// What a finding is about.
struct Place {
  std::optional<size_t> node;  // index of a node
  std::optional<size_t> rank;  // position in launch.ranks; its node is known then
};

class Facts {
 public:
  // `document` must outlive the facts. `elsewhere`: ranks of the job that the document does not have, because a
  // trace has only some of them.
  explicit Facts(const pb::Scenario& document, uint32_t elsewhere = 0);

  [[nodiscard]] const pb::Scenario& document() const { return *document_; }
  [[nodiscard]] size_t ranks() const { return rank_facts_.size(); }
  [[nodiscard]] size_t nodes() const { return node_facts_.size(); }
  // Node of a rank by position; nodes() when it is not there.
  [[nodiscard]] size_t node_of(size_t rank) const { return rank_node_[rank]; }
  // Whole environment of a rank.
  [[nodiscard]] const FactMap& environment(size_t rank) const { return environments_[rank]; }
  [[nodiscard]] Value get(const Place& place, std::string_view name) const;

  // Whether a rule may use this name at any place (variables always).
  [[nodiscard]] static bool is_known(std::string_view name);

 private:
  [[nodiscard]] Value shared_variable(const Place& place, std::string_view name) const;

  const pb::Scenario* document_;
  FactMap job_;
  std::vector<FactMap> node_facts_, rank_facts_, environments_;
  std::vector<size_t> rank_node_;
};

// A value of an enum as documents write it.
[[nodiscard]] std::string enum_word(const google::protobuf::EnumDescriptor& type, int value);

// Capital letters, digits and `_`.
[[nodiscard]] bool is_variable_name(std::string_view name);

}  // namespace rehearse::faults
