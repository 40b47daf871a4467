// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/dissent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "sim/nccl/plan.hpp"
#include "sim/nccl/variables.hpp"

namespace rehearse::sim {
namespace {

using Environment = std::map<std::string, std::string>;

// The variables by which a rank decides.
Environment deciding(const Environment& env) {
  Environment out;
  for (const auto& [name, value] : env) {
    const Variable* variable = find_variable(name);
    if (variable != nullptr && variable->acts == Acts::kDecision) {
      out.emplace(name, meaning_of(name, value));
    }
  }
  return out;
}

struct PlanText {
  std::string choice;
  int channels = 0;
  int64_t chunk = 0;
  bool operator==(const PlanText&) const = default;

  [[nodiscard]] std::string text() const {
    return fmt::format("{} on {} channels in chunks of {} B", choice, channels, chunk);
  }
};

std::string differing(const PlanText& first, const PlanText& other,
                      const std::vector<uint32_t>& ranks) {
  if (first == other) return {};
  return fmt::format("{}, but {} on ranks {}", first.text(), other.text(), format_ranks(ranks));
}

PlanText plan_text(const NcclModel& model, const Call& call) {
  const auto plan = plan_call(model, call);
  if (!plan) return {plan.error().what, 0, 0};
  return {fmt::format("{}/{}", name_of(plan->choice.algorithm), name_of(plan->choice.protocol)),
          plan->split.n_channels(), plan->lo.chunk_bytes};
}

}  // namespace

Result<std::vector<OtherDecider>> other_deciders(const ModelContext& context,
                                                 const Placement& placement,
                                                 const NcclVersion& version) {
  const Environment first = deciding(placement.members.front().env);
  std::map<Environment, size_t> known;
  std::vector<OtherDecider> out;
  for (uint32_t m = 1; m < placement.members.size(); ++m) {
    const Member& member = placement.members[m];
    Environment own = deciding(member.env);
    if (own == first) continue;
    const auto [at, fresh] = known.emplace(std::move(own), out.size());
    if (fresh) {
      auto settings = parse_settings(member.env, version);
      if (!settings) {
        Error error = settings.error();
        error.where += fmt::format(" of rank {}", member.rank);
        return tl::unexpected(std::move(error));
      }
      RH_TRY(Graphs graphs, build_graphs(context, placement, m));
      RH_TRY(NcclModel model, make_nccl_model(graphs.shape, *settings, version));
      out.push_back({{}, std::move(graphs), std::move(model)});
    }
    out[at->second].ranks.push_back(member.rank);
  }
  for (OtherDecider& each : out) std::sort(each.ranks.begin(), each.ranks.end());
  return out;
}

std::string dissent_in(const NcclModel& first, const OtherDecider& other, const Call& call) {
  return differing(plan_text(first, call), plan_text(other.model, call), other.ranks);
}

std::string dissent_in(const PairContext& first, const OtherDecider& other, Bytes bytes,
                       P2pRoute route) {
  const auto plan = [&](const PairContext& of) -> PlanText {
    const auto transfer = p2p_transfer(p2p_shape(of), of.model.settings, bytes, route);
    if (!transfer) return {transfer.error().what, 0, 0};
    return {fmt::format("P2P/{}", name_of(transfer->protocol)), transfer->channels,
            transfer->chunk_bytes};
  };
  const PairContext theirs{first.context, first.placement, other.graphs, other.model,
                           first.parameters};
  return differing(plan(first), plan(theirs), other.ranks);
}

}  // namespace rehearse::sim
