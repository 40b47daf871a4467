// SPDX-License-Identifier: Apache-2.0
// Transforms of who calls what in which order.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/scenario/rebuild.hpp"
#include "sim/scenario/transform.hpp"

namespace rehearse::sim {
namespace {

using traces::LaneId;
using traces::OpId;
using traces::RankProgram;

// Position in `calls` of the rank's nth collective.
Result<size_t> nth_collective(const RankProgram& rank, uint32_t nth, const char* patch) {
  uint32_t seen = 0;
  for (size_t c = 0; c < rank.calls.size(); ++c) {
    if (traces::is_point_to_point(rank.calls[c].collective)) continue;
    if (seen++ == nth) return c;
  }
  return fail(
      Code::kBadInput,
      fmt::format("rank {} has {} collectives, there is no number {}", rank.rank, seen, nth),
      fmt::format("{}: nth", patch), "count from 0");
}

// An operation without time before `at`, in its lane and without predecessors of its own.
void insert_operation(RankProgram& rank, OpId at, traces::OpKind kind, uint32_t name) {
  const auto put = [&](auto& column, auto value) {
    column.push_back(value);
    for (size_t i = column.size() - 1; i > at; --i) column[i] = std::as_const(column)[i - 1];
    column[at] = value;
  };
  put(rank.kind, kind);
  put(rank.name, name);
  put(rank.gap, Nanos{0});
  put(rank.duration, Nanos{0});
  put(rank.call, traces::kNoCall);
  if (!rank.overlap.empty()) put(rank.overlap, uint16_t{0});
  put(rank.edge_begin, rank.edge_begin[at]);
  for (size_t e = 0; e < rank.edges.size(); ++e) {
    if (std::as_const(rank.edges)[e] >= at) ++rank.edges[e];
  }
  for (OpId& op : rank.call_op) op += op >= at ? 1 : 0;
  for (auto& [op, unknown] : rank.unknown_gaps) op += op >= at ? 1 : 0;
  for (traces::Transfer& transfer : rank.transfers) transfer.op += transfer.op >= at ? 1 : 0;
  // The first operation of a lane or step stays first when the new one is before it.
  for (OpId& begin : rank.lane_begin) begin += begin > at ? 1 : 0;
  for (OpId& begin : rank.step_begin) begin += begin > at ? 1 : 0;
}

// Moves the causes of `from` to the operation before it, which then comes when `from` would have.
void hand_over_causes(RankProgram& rank, OpId from) {
  const OpId to = from - 1;
  rank.edge_begin[from] = rank.edge_begin[from + 1];
  rank.gap[to] = std::exchange(rank.gap[from], 0);
}

// Where a rank makes the call of this communicator and sequence number; kNoOp: it does not.
OpId operation_of(const RankProgram& rank, const traces::Call& wanted) {
  for (size_t c = 0; c < rank.calls.size(); ++c) {
    const traces::Call& call = rank.calls[c];
    if (call.communicator == wanted.communicator && call.sequence == wanted.sequence &&
        call.collective == wanted.collective) {
      return rank.call_op[c];
    }
  }
  return traces::kNoOp;
}

bool reduces(const traces::Call& call) {
  return call.collective == traces::Collective::kAllReduce ||
         call.collective == traces::Collective::kReduceScatter;
}

}  // namespace

Result<void> extra_collective(traces::Program& program, const pb::ExtraCollective& how) {
  RH_TRY(RankProgram * rank, find_rank(program, how.rank(), "extra-collective"));
  if (auto done = write_out(*rank, program.steps); !done) return done;
  RH_TRY(const size_t at, nth_collective(*rank, how.nth(), "extra-collective"));
  const traces::Call extra = rank->calls[at];
  const OpId op = rank->call_op[at];
  insert_operation(*rank, op, rank->kind[op], rank->name[op]);
  hand_over_causes(*rank, op + 1);
  rank->calls.insert(rank->calls.begin() + static_cast<std::ptrdiff_t>(at), extra);
  rank->call_op.insert(rank->call_op.begin() + static_cast<std::ptrdiff_t>(at), op);
  if (!rank->call_split.empty()) {
    rank->call_split.insert(rank->call_split.begin() + static_cast<std::ptrdiff_t>(at),
                            traces::CallSplit{});
  }
  for (size_t c = 0; c < rank->calls.size(); ++c) {
    rank->call[rank->call_op[c]] = static_cast<uint32_t>(c);
    traces::Call& call = rank->calls[c];
    const bool later = c > at && call.communicator == extra.communicator;
    if (later && !traces::is_point_to_point(call.collective)) ++call.sequence;
  }
  return {};
}

Result<void> resize_collective(traces::Program& program, const pb::ResizeCollective& how) {
  RH_TRY(RankProgram * rank, find_rank(program, how.rank(), "resize-collective"));
  RH_TRY(const size_t at, nth_collective(*rank, how.nth(), "resize-collective"));
  traces::Call& call = rank->calls[at];
  const Bytes element = std::max(1, traces::size_of(call.dtype));
  const auto scaled = [&](Bytes bytes) {
    const Bytes whole = bytes / element;
    const double elements = static_cast<double>(whole) * how.factor();
    return static_cast<Bytes>(std::nearbyint(std::min(elements, 1e15))) * element;
  };
  call.bytes_in = scaled(call.bytes_in);
  call.bytes_out = scaled(call.bytes_out);
  return {};
}

Result<void> scale_collectives(traces::Program& program, const pb::ScaleCollectives& how) {
  // Tensor-parallel groups reduce too, but what is exchanged too often are gradients: groups as large as any that
  // reduces.
  size_t members = 0;
  const auto size_of_group = [&](const traces::Call& call) {
    return program.communicators[call.communicator].members.size();
  };
  for (const RankProgram& rank : program.ranks) {
    for (const traces::Call& call : rank.calls) {
      if (reduces(call)) members = std::max(members, size_of_group(call));
    }
  }
  for (RankProgram& rank : program.ranks) {
    for (traces::Call& call : rank.calls) {
      if (!reduces(call) || size_of_group(call) != members) continue;
      const auto scaled = [&](Bytes bytes) {
        return static_cast<Bytes>(
            std::nearbyint(std::min(static_cast<double>(bytes) * how.factor(), 1e18)));
      };
      call.bytes_in = scaled(call.bytes_in);
      call.bytes_out = scaled(call.bytes_out);
    }
  }
  return {};
}

Result<void> swap_collectives(traces::Program& program, const pb::SwapCollectives& how) {
  RH_TRY(RankProgram * rank, find_rank(program, how.rank(), "swap-collectives"));
  uint32_t seen = 0;
  for (size_t c = 0; c + 1 < rank->calls.size(); ++c) {
    const traces::Call first = rank->calls[c], second = rank->calls[c + 1];
    if (first.communicator == second.communicator || traces::is_point_to_point(first.collective) ||
        traces::is_point_to_point(second.collective) || seen++ != how.nth()) {
      continue;
    }
    // The GPU has room for one of the two: on this rank the second has it, elsewhere the first.
    for (RankProgram& other : program.ranks) {
      const OpId a = operation_of(other, first), b = operation_of(other, second);
      if (a == traces::kNoOp || b == traces::kNoOp) continue;
      if (auto done = write_out(other, program.steps); !done) return done;
      add_waits(other, {{b, a}});
    }
    // Where the rank made the first it makes the second: what it computes in between waits for the other call now.
    std::swap(rank->calls[c], rank->calls[c + 1]);
    if (!rank->call_split.empty()) std::swap(rank->call_split[c], rank->call_split[c + 1]);
    const OpId before = rank->call_op[c], after = rank->call_op[c + 1];
    const uint32_t name = std::as_const(rank->name)[before];
    rank->name[before] = std::as_const(rank->name)[after];
    rank->name[after] = name;
    return {};
  }
  return fail(Code::kBadInput,
              fmt::format("rank {} has {} pairs of collectives of different communicators",
                          rank->rank, seen),
              "swap-collectives: nth", "use a job with several kinds of parallelism");
}

Result<void> delay_calls(traces::Program& program, const pb::DelayCalls& how) {
  if (how.delay() > kLongestPause) {
    return fail(Code::kBadInput, "a delay of more than a year", "delay-calls: delay",
                "stop the rank instead");
  }
  RH_TRY(RankProgram * rank, find_rank(program, how.rank(), "delay-calls"));
  for (OpId op : rank->call_op) rank->gap[op] += how.delay();
  return {};
}

}  // namespace rehearse::sim
