// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/transform.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"

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

Result<void> slow_rank(traces::Program& program, const pb::SlowRank& how) {
  RH_TRY(const std::vector<RankRange> slow, slowed_ranks(how));
  if (how.has_rank()) {
    if (auto found = find_rank(program, how.rank(), "slow-rank"); !found) {
      return tl::unexpected(found.error());
    }
  }
  for (RankProgram& rank : program.ranks) {
    const auto holds = [&](const RankRange& range) { return range.holds(rank.rank); };
    if (std::any_of(slow.begin(), slow.end(), holds)) slow_down(rank, how.slowdown());
  }
  return {};
}

Result<void> skip_collective(traces::Program& program, const pb::SkipCollective& how) {
  if (auto given = require(how.has_rank(), "skip-collective", "rank"); !given) return given;
  if (auto given = require(how.has_nth(), "skip-collective", "nth"); !given) return given;
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

}  // namespace

Result<RankProgram*> find_rank(traces::Program& program, uint32_t rank, const char* patch) {
  const int at = program.find(rank);
  if (at < 0) {
    return fail(Code::kBadInput, fmt::format("there is no rank {} in the trace", rank), patch,
                program.ranks.empty()
                    ? std::string("the trace has no ranks")
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
  if (auto given = require(how.has_rank() || !how.ranks().empty(), "slow-rank", "rank"); !given) {
    return tl::unexpected(given.error());
  }
  if (auto given = require(how.has_slowdown(), "slow-rank", "slowdown"); !given) {
    return tl::unexpected(given.error());
  }
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

Result<void> require(bool given, const char* transform, const char* parameter) {
  if (given) return {};
  return fail(Code::kBadInput, fmt::format("{} is missing", parameter), transform,
              fmt::format("write {}: {{..., {}: ...}}", transform, parameter));
}

Result<void> transform(traces::Program& program, const pb::Patch& patch) {
  switch (patch.transform_case()) {
    case pb::Patch::kSlowRank:
      return slow_rank(program, patch.slow_rank());
    case pb::Patch::kSkipCollective:
      return skip_collective(program, patch.skip_collective());
    case pb::Patch::kPauseRank:
      return pause_rank(program, patch.pause_rank());
    case pb::Patch::kSteps:
      if (auto given = require(patch.steps().has_factor(), "steps", "factor"); !given) return given;
      return repeat_steps(program, patch.steps().factor());
    case pb::Patch::kWriteCheckpoint:
      return write_checkpoint(program, patch.write_checkpoint());
    case pb::Patch::kReadCheckpoint:
      return read_checkpoint(program, patch.read_checkpoint());
    case pb::Patch::kLoadData:
      return load_data(program, patch.load_data());
    case pb::Patch::kEndEarly:
      return end_early(program, patch.end_early());
    case pb::Patch::kExtraCollective:
      return extra_collective(program, patch.extra_collective());
    case pb::Patch::kResizeCollective:
      return resize_collective(program, patch.resize_collective());
    case pb::Patch::kScaleCollectives:
      return scale_collectives(program, patch.scale_collectives());
    case pb::Patch::kSwapCollectives:
      return swap_collectives(program, patch.swap_collectives());
    case pb::Patch::kDelayCalls:
      return delay_calls(program, patch.delay_calls());
    case pb::Patch::kSlowHost:
      return slow_host(program, patch.slow_host());
    case pb::Patch::kSlowCopies:
      return slow_copies(program, patch.slow_copies());
    case pb::Patch::kVarySteps:
      return vary_steps(program, patch.vary_steps());
    case pb::Patch::kNoOverlap:
      return no_overlap(program, patch.no_overlap());
    case pb::Patch::kScaleMemory:
      if (patch.scale_memory().has_rank()) {
        RH_TRY(RankProgram * rank, find_rank(program, patch.scale_memory().rank(), "scale-memory"));
        (void)rank;
      }
      return require(patch.scale_memory().has_factor(), "scale-memory", "factor");
    case pb::Patch::kLeakMemory:
      if (patch.leak_memory().has_rank()) {
        RH_TRY(RankProgram * rank, find_rank(program, patch.leak_memory().rank(), "leak-memory"));
        (void)rank;
      }
      return require(patch.leak_memory().has_bytes(), "leak-memory", "bytes");
    // These act on the whole run or on the document: schedule_of(), apply(), grow(), regenerate().
    case pb::Patch::kRegenerate:
    case pb::Patch::kStopRank:
    case pb::Patch::kBackgroundTraffic:
    case pb::Patch::kGrowDataParallel:
    case pb::Patch::kUndo:
    case pb::Patch::TRANSFORM_NOT_SET:
      return {};
  }
  return {};
}

}  // namespace rehearse::sim
