// SPDX-License-Identifier: Apache-2.0
#include "traces/synth/layout.hpp"

#include <fmt/format.h>

#include <utility>

namespace rehearse::synth {
namespace {

constexpr std::array<const char*, kGroups> kShort = {"world", "tp",  "dp", "pp",
                                                     "ep",    "edp", "mp", "embedding"};

// "tp/0-7"; "dp/0-504:8" when the members are 8 apart; every member when there is no stride.
std::string id_of(Group group, const std::vector<RankId>& members) {
  const RankId stride = members[1] - members[0];
  bool regular = true;
  for (size_t i = 1; i < members.size(); ++i)
    regular = regular && members[i] - members[i - 1] == stride;
  const char* kind = kShort[static_cast<size_t>(group)];
  if (regular && stride == 1) return fmt::format("{}/{}-{}", kind, members[0], members.back());
  if (regular) return fmt::format("{}/{}-{}:{}", kind, members[0], members.back(), stride);
  return fmt::format("{}/{}", kind, fmt::join(members, ","));
}

}  // namespace

Layout::Layout(const pb::Synth& o)
    : tp_(o.tp()),
      dp_(o.dp()),
      pp_(o.pp()),
      ep_(o.ep()),
      gpus_per_node_(o.gpus_per_node()),
      ranks_(o.tp() * o.dp() * o.pp()),
      backend_("nccl"),
      of_rank_(ranks_) {
  for (auto& row : of_rank_) row.fill(-1);
  const auto each = [](uint32_t n, auto&& make) {
    std::vector<RankId> members(n);
    for (uint32_t i = 0; i < n; ++i) members[i] = make(i);
    return members;
  };
  if (o.model() == "resnet50" || o.model() == "dlrm") {
    add(Group::kWorld, "default_pg", each(ranks_, [](uint32_t i) { return i; }));
    return;
  }
  for (uint32_t p = 0; p < pp_; ++p)
    for (uint32_t d = 0; d < dp_; ++d)
      add(Group::kTensor, "tensor parallel", each(tp_, [&](uint32_t t) {
            return rank({t, d, p});
          }));
  for (uint32_t p = 0; p < pp_; ++p)
    for (uint32_t t = 0; t < tp_; ++t)
      add(Group::kData, "data parallel", each(dp_, [&](uint32_t d) { return rank({t, d, p}); }));
  for (uint32_t d = 0; d < dp_; ++d)
    for (uint32_t t = 0; t < tp_; ++t) {
      add(Group::kPipeline, "pipeline parallel", each(pp_, [&](uint32_t p) {
            return rank({t, d, p});
          }));
      if (pp_ > 1) add(Group::kEmbedding, "embedding", {rank({t, d, 0}), rank({t, d, pp_ - 1})});
    }
  for (uint32_t d = 0; d < dp_; ++d)
    add(Group::kModel, "model parallel", each(tp_ * pp_, [&](uint32_t i) {
          return rank({i % tp_, d, i / tp_});
        }));
  if (o.model() != "moe") return;
  const uint32_t copies = dp_ / ep_;
  for (uint32_t p = 0; p < pp_; ++p)
    for (uint32_t t = 0; t < tp_; ++t) {
      for (uint32_t c = 0; c < copies; ++c)
        add(Group::kExpert, "expert parallel", each(ep_, [&](uint32_t e) {
              return rank({t, c * ep_ + e, p});
            }));
      for (uint32_t e = 0; e < ep_; ++e)
        add(Group::kExpertData, "expert data parallel", each(copies, [&](uint32_t c) {
              return rank({t, c * ep_ + e, p});
            }));
    }
}

void Layout::add(Group group, const char* description, std::vector<RankId> members) {
  if (members.size() < 2) return;
  bool spans = false;
  for (RankId r : members) {
    of_rank_[r][static_cast<size_t>(group)] = static_cast<int32_t>(communicators_.size());
    spans = spans || node(r) != node(members[0]);
  }
  spans_.push_back(spans);
  std::string id = id_of(group, members);
  communicators_.push_back({std::move(id), description, std::move(members), backend_});
}

Coordinates Layout::at(RankId rank) const {
  return {rank % tp_, rank / tp_ % dp_, rank / (tp_ * dp_)};
}

RankId Layout::rank(const Coordinates& at) const { return at.tp + tp_ * (at.dp + dp_ * at.pp); }

uint32_t Layout::size(RankId rank, Group group) const {
  const int32_t c = communicator(rank, group);
  return c < 0 ? 1 : static_cast<uint32_t>(communicators_[static_cast<size_t>(c)].members.size());
}

}  // namespace rehearse::synth
