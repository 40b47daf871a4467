// SPDX-License-Identifier: Apache-2.0
// Transforms of how much ranks do and how long it takes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "sim/scenario/rebuild.hpp"
#include "sim/scenario/transform.hpp"

namespace rehearse::sim {
namespace {

using traces::LaneId;
using traces::OpId;
using traces::RankProgram;

constexpr double kLongestWork = 4e18;  // nanoseconds, 126 years

Nanos stretched(Nanos time, double factor) {
  return static_cast<Nanos>(
      std::nearbyint(std::min(static_cast<double>(time) * factor, kLongestWork)));
}

// The rank named, or all.
Result<std::vector<RankProgram*>> chosen_ranks(traces::Program& program,
                                               std::optional<uint32_t> rank, const char* patch) {
  std::vector<RankProgram*> out;
  if (rank) {
    RH_TRY(RankProgram * found, find_rank(program, *rank, patch));
    out.push_back(found);
  } else {
    for (RankProgram& each : program.ranks) out.push_back(&each);
  }
  return out;
}

// Takes calls out of a rank; what follows on their communicators moves up.
void drop_calls_from(RankProgram& rank, const std::vector<bool>& dropped) {
  std::vector<traces::Call> calls;
  std::vector<OpId> ops;
  std::vector<traces::CallSplit> splits;
  for (size_t c = 0; c < rank.calls.size(); ++c) {
    if (dropped[c]) {
      rank.call[rank.call_op[c]] = traces::kNoCall;
      continue;
    }
    rank.call[rank.call_op[c]] = static_cast<uint32_t>(calls.size());
    calls.push_back(rank.calls[c]);
    ops.push_back(rank.call_op[c]);
    if (!rank.call_split.empty()) splits.push_back(rank.call_split[c]);
  }
  rank.calls = std::move(calls);
  rank.call_op = std::move(ops);
  rank.call_split = std::move(splits);
}

}  // namespace

void add_waits(RankProgram& rank, std::vector<std::pair<traces::OpId, traces::OpId>> waits) {
  std::sort(waits.begin(), waits.end());
  std::vector<uint32_t> begins;
  std::vector<OpId> edges;
  std::vector<bool> inferred;
  size_t next = 0;
  for (OpId op = 0; op < rank.size(); ++op) {
    begins.push_back(static_cast<uint32_t>(edges.size()));
    for (uint32_t e = rank.edge_begin[op]; e < rank.edge_begin[op + 1]; ++e) {
      edges.push_back(rank.edges[e]);
      inferred.push_back(e < rank.edge_inferred.size() && rank.edge_inferred[e]);
    }
    for (; next < waits.size() && waits[next].first == op; ++next) {
      edges.push_back(waits[next].second);
      inferred.push_back(false);
    }
  }
  begins.push_back(static_cast<uint32_t>(edges.size()));
  rank.edge_begin = std::move(begins);
  rank.edges = std::move(edges);
  rank.edge_inferred = std::move(inferred);
}

Result<void> end_early(traces::Program& program, const pb::EndEarly& how) {
  RH_TRY(RankProgram * rank, find_rank(program, how.rank(), "end-early"));
  if (how.steps() >= program.steps) {
    return fail(Code::kBadInput, fmt::format("the trace has {} steps", program.steps),
                "end-early: steps", "give fewer steps than the others have");
  }
  std::vector<bool> dropped(rank->calls.size(), false);
  for (LaneId l = 0; l < rank->lanes.size(); ++l) {
    const OpId from = rank->step_begin[l * (program.steps + 1) + how.steps()];
    for (OpId op = from; op < rank->lane_begin[l + 1]; ++op) {
      rank->gap[op] = 0;
      rank->duration[op] = 0;
      if (rank->call[op] != traces::kNoCall) dropped[rank->call[op]] = true;
    }
  }
  drop_calls_from(*rank, dropped);
  program.findings.add(
      "uneven-steps", Severity::kWarning,
      fmt::format("rank {} has {} of {} steps", how.rank(), how.steps(), program.steps),
      "give every rank the same number of batches");
  return {};
}

Result<void> slow_host(traces::Program& program, const pb::SlowHost& how) {
  RH_TRY(const auto ranks,
         chosen_ranks(program, how.has_rank() ? std::optional(how.rank()) : std::nullopt,
                      "slow-host"));
  for (RankProgram* rank : ranks) {
    for (LaneId l = 0; l < rank->lanes.size(); ++l) {
      if (rank->on_gpu(l)) continue;
      for (OpId op = rank->lane_begin[l]; op < rank->lane_begin[l + 1]; ++op) {
        if (rank->call[op] != traces::kNoCall) continue;
        rank->gap[op] = stretched(rank->gap[op], how.slowdown());
        rank->duration[op] = stretched(rank->duration[op], how.slowdown());
      }
    }
  }
  return {};
}

Result<void> slow_copies(traces::Program& program, const pb::SlowCopies& how) {
  RH_TRY(const auto ranks,
         chosen_ranks(program, how.has_rank() ? std::optional(how.rank()) : std::nullopt,
                      "slow-copies"));
  for (RankProgram* rank : ranks) {
    for (size_t op = 0; op < rank->size(); ++op) {
      if (rank->kind[op] == traces::OpKind::kCopy)
        rank->duration[op] = stretched(rank->duration[op], how.slowdown());
    }
  }
  return {};
}

Result<void> vary_steps(traces::Program& program, const pb::VarySteps& how) {
  for (RankProgram& rank : program.ranks) {
    Random random(how.seed(), "vary-steps", rank.rank);
    for (uint32_t s = 0; s < program.steps; ++s) {
      const double factor = 1 + how.spread() * random.uniform();
      for (LaneId l = 0; l < rank.lanes.size(); ++l) {
        if (!rank.on_gpu(l)) continue;
        const OpId* begin = &rank.step_begin[l * (program.steps + 1) + s];
        for (OpId op = begin[0]; op < begin[1]; ++op) {
          if (rank.call[op] == traces::kNoCall)
            rank.duration[op] = stretched(rank.duration[op], factor);
        }
      }
    }
  }
  return {};
}

Result<void> no_overlap(traces::Program& program, const pb::NoOverlap& how) {
  RH_TRY(const auto ranks,
         chosen_ranks(program, how.has_rank() ? std::optional(how.rank()) : std::nullopt,
                      "no-overlap"));
  for (RankProgram* rank : ranks) {
    if (auto done = write_out(*rank, program.steps); !done) return done;
    // What follows the cause of a call on a stream waits for the call.
    std::vector<std::pair<OpId, OpId>> waits;  // who, for whom
    for (OpId op : rank->call_op) {
      // Sends and receives of a pipeline are posted ahead; waiting for each would wait for ever.
      if (traces::is_point_to_point(rank->calls[rank->call[op]].collective)) continue;
      for (OpId cause : rank->predecessors(op)) {
        const LaneId lane = rank->lane_of(cause);
        if (!rank->on_gpu(lane) || cause + 1 >= rank->lane_begin[lane + 1u] || cause + 1 == op)
          continue;
        waits.emplace_back(cause + 1, op);
      }
    }
    add_waits(*rank, std::move(waits));
  }
  return {};
}

}  // namespace rehearse::sim
