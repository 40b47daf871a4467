// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/transform.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/document.hpp"
#include "base/text.hpp"
#include "sim/scenario/places.hpp"
#include "sim/scenario/transforms.hpp"

namespace rehearse::sim {
namespace {

using traces::OpId;
using traces::RankProgram;

constexpr double kLongest = 4e18;  // nanoseconds, 126 years

void slow_down(RankProgram& rank, double slowdown) {
  const traces::Column<uint32_t>& calls = rank.call;
  for (traces::LaneId l = 0; l < rank.lanes.size(); ++l) {
    if (!rank.on_gpu(l)) continue;
    for (OpId op = rank.lane_begin[l]; op < rank.lane_begin[l + 1]; ++op) {
      if (calls[op] != traces::kNoCall) continue;
      Nanos& duration = rank.duration[op];
      const double longer = static_cast<double>(duration) * slowdown;
      // What is longer than any run ends at the limit; the replay then says so.
      duration = static_cast<Nanos>(std::nearbyint(std::min(longer, kLongest)));
    }
  }
}

}  // namespace

Result<void> slow_rank(traces::Program& program, const pb::SlowRank& how) {
  RH_TRY(const std::vector<RankRange> slow, slowed_ranks(how));
  for (RankProgram& rank : program.ranks) {
    const auto holds = [&](const RankRange& range) { return range.holds(rank.rank); };
    if (std::any_of(slow.begin(), slow.end(), holds)) slow_down(rank, how.slowdown());
  }
  return {};
}

Result<void> skip_collective(traces::Program& program, const pb::SkipCollective& how) {
  RH_TRY(RankProgram * rank, find_rank(program, how.rank(), "skip-collective"));
  uint32_t seen = 0;
  for (size_t c = 0; c < rank->calls.size(); ++c) {
    const traces::Call skipped = rank->calls[c];
    if (traces::is_point_to_point(skipped.collective)) continue;
    if (seen++ != how.nth()) continue;
    // The operation stays in its lane as nothing, so that what follows keeps its predecessors.
    const OpId op = rank->call_op[c];
    rank->call[op] = traces::kNoCall;
    rank->duration[op] = 0;
    rank->calls.erase(rank->calls.begin() + static_cast<std::ptrdiff_t>(c));
    rank->call_op.erase(rank->call_op.begin() + static_cast<std::ptrdiff_t>(c));
    for (size_t later = 0; later < rank->calls.size(); ++later) {
      rank->call[rank->call_op[later]] = static_cast<uint32_t>(later);
      traces::Call& call = rank->calls[later];
      if (later >= c && call.communicator == skipped.communicator &&
          !traces::is_point_to_point(call.collective)) {
        --call.sequence;
      }
    }
    return {};
  }
  return fail(
      Code::kBadInput,
      fmt::format("rank {} has {} collectives, there is no number {}", how.rank(), seen, how.nth()),
      "skip-collective: nth", "count from 0");
}

Result<RankProgram*> find_rank(traces::Program& program, uint32_t rank, std::string_view patch) {
  const int at = program.find(rank);
  if (at < 0) {
    return fail(
        Code::kBadInput, fmt::format("there is no rank {} in the trace", rank), std::string(patch),
        program.ranks.empty() ? std::string("the trace has no ranks")
                              : fmt::format("ranks go from {} to {}", program.ranks.front().rank,
                                            program.ranks.back().rank));
  }
  return &program.ranks[static_cast<size_t>(at)];
}

uint32_t storage_index(traces::Program& program, const std::string& name) {
  const auto at = std::find(program.storages.begin(), program.storages.end(), name);
  const auto index = static_cast<uint32_t>(at - program.storages.begin());
  if (at == program.storages.end()) program.storages.push_back(name);
  return index;
}

Result<std::vector<RankRange>> slowed_ranks(const pb::SlowRank& how) {
  std::vector<RankRange> out;
  if (!how.ranks().empty()) {
    auto ranges = parse_rank_ranges(how.ranks());
    if (!ranges) {
      return bad_input(ranges.error().what, "slow-rank: ranks", ranges.error().fix);
    }
    out = std::move(*ranges);
  }
  if (how.has_rank()) out.push_back({how.rank(), how.rank()});
  return out;
}

Result<void> transform(traces::Program& program, const pb::Patch& patch) {
  const Transform* row = transform_of(patch);
  if (row == nullptr) return {};
  if (auto given = check_required(patch, std::string(row->name)); !given) return given;
  if (row->acts_on != ActsOn::kProgram && row->acts_on != ActsOn::kMemory) return {};
  if (const auto rank = rank_of(patch)) {
    if (auto found = find_rank(program, *rank, row->name); !found) {
      return tl::unexpected(found.error());
    }
  }
  return row->edit == nullptr ? Result<void>() : row->edit(program, patch);
}

}  // namespace rehearse::sim
