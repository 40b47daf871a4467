// SPDX-License-Identifier: Apache-2.0
// Where a rank stands in a parallel layout and which communicators it is in. Order of ranks as in
// Megatron-LM: tensor fastest, then data, then pipeline; expert groups are consecutive
// data-parallel ranks. A group of one rank has no communicator. Immutable after construction.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "traces/model/trace.hpp"
#include "traces/proto/synth.pb.h"

namespace rehearse::synth {

using traces::RankId;

enum class Group : uint8_t {
  kWorld = 0,   // all ranks (the default process group)
  kTensor,      // share the tensors of one layer
  kData,        // hold the same parameters
  kPipeline,    // successive stages
  kExpert,      // share the experts of one layer
  kExpertData,  // hold the same experts
  kModel,       // tensor x pipeline: one whole copy of the model
  kEmbedding,   // first and last stage, which tie their word embedding
};
constexpr int kGroups = 8;

struct Coordinates {
  uint32_t tp = 0;
  uint32_t dp = 0;
  uint32_t pp = 0;
};

class Layout {
 public:
  // `options` as returned by complete().
  explicit Layout(const pb::Synth& options);
  [[nodiscard]] uint32_t ranks() const { return ranks_; }
  [[nodiscard]] Coordinates at(RankId rank) const;
  [[nodiscard]] RankId rank(const Coordinates& at) const;
  [[nodiscard]] uint32_t node(RankId rank) const { return rank / gpus_per_node_; }
  [[nodiscard]] uint32_t device(RankId rank) const { return rank % gpus_per_node_; }
  [[nodiscard]] const std::vector<traces::Communicator>& communicators() const {
    return communicators_;
  }
  // Index of the communicator of this rank in that group; -1: none.
  [[nodiscard]] int32_t communicator(RankId rank, Group group) const {
    return of_rank_[rank][static_cast<size_t>(group)];
  }
  // Number of members of this rank's group; 1 when it has no communicator.
  [[nodiscard]] uint32_t size(RankId rank, Group group) const;
  // True when the members of a communicator are on more than one node.
  [[nodiscard]] bool spans_nodes(uint32_t communicator) const { return spans_[communicator]; }

 private:
  void add(Group group, const char* description, std::vector<RankId> members);

  uint32_t tp_, dp_, pp_, ep_, gpus_per_node_, ranks_;
  std::string backend_;
  std::vector<traces::Communicator> communicators_;
  std::vector<bool> spans_;
  std::vector<std::array<int32_t, kGroups>> of_rank_;
};

}  // namespace rehearse::synth
