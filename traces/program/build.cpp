// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "traces/program/clones.hpp"
#include "traces/program/connect.hpp"
#include "traces/program/infer_host.hpp"
#include "traces/program/infer_streams.hpp"
#include "traces/program/overhead.hpp"
#include "traces/program/overlap.hpp"
#include "traces/program/program.hpp"
#include "traces/program/share.hpp"
#include "traces/program/split.hpp"

namespace rehearse::traces {
namespace {

// Waits for streams that no event and no call records; hand-over between threads never is recorded.
void tell_inferred(Program& program) {
  uint64_t waits = 0;
  for (const RankProgram& rank : program.ranks) {
    std::vector<bool> on_stream(rank.size(), false);
    for (LaneId lane = 0; lane < rank.lanes.size(); ++lane) {
      if (!rank.on_gpu(lane)) continue;
      std::fill(on_stream.begin() + rank.lane_begin[lane],
                on_stream.begin() + rank.lane_begin[lane + 1], true);
    }
    for (size_t e = 0; e < rank.edges.size(); ++e) {
      waits += rank.edge_inferred[e] && on_stream[rank.edges[e]] ? 1 : 0;
    }
  }
  if (waits == 0) return;
  program.findings.add("edges-inferred", Severity::kInfo,
                       std::to_string(program.ranks.size()) + " ranks",
                       "the trace does not record what waits for which stream: that many waits "
                       "follow from times and from what frameworks do",
                       waits);
}

// Copies that leave the GPU; those inside it share nothing with others.
std::vector<Transfer> copies_of(const Draft& draft) {
  std::vector<Transfer> out;
  if (draft.ops.copies.empty()) return out;
  for (OpId op = 0; op < draft.source.size(); ++op) {
    const Copy* copy = draft.ops.copy(draft.source[op]);
    if (copy == nullptr || copy->bytes <= 0) continue;
    Transfer transfer;
    transfer.op = op;
    transfer.bytes = copy->bytes;
    switch (copy->direction) {
      case CopyDirection::kHostToDevice:
        transfer.way = Way::kHostToDevice;
        break;
      case CopyDirection::kDeviceToHost:
        transfer.way = Way::kDeviceToHost;
        break;
      case CopyDirection::kPeer:
        transfer.way = Way::kPeer;
        break;
      case CopyDirection::kDeviceToDevice:
      case CopyDirection::kUnknown:
        continue;
    }
    out.push_back(transfer);
  }
  return out;
}

// Profilers write the kind of memory into the name: "Memcpy HtoD (Pageable -> Device)".
void tell_pageable(const Strings& strings, RankProgram& rank) {
  for (Transfer& transfer : rank.transfers) {
    transfer.pageable = strings.at(rank.name[transfer.op]).find("Pageable") != std::string::npos;
  }
}

}  // namespace

Result<RankProgram> build_rank_program(const RankTrace& rank, uint32_t steps,
                                       const ProgramOptions& options, Findings& findings) {
  if (rank.steps.size() < steps) {
    return fail(Code::kInternal, "rank has fewer steps than asked for",
                "rank " + std::to_string(rank.rank));
  }
  Draft draft(rank);
  lay_out(draft);
  connect(draft, findings);
  if (options.inferred == InferredEdges::kKeep) {
    infer_stream_order(draft);
    infer_host_waits(draft);
  }
  finish_edges(draft, options.inferred, findings);
  measure_gaps(draft, options.unknown_gaps);
  remove_overhead(draft);
  place_steps(draft, steps);
  draft.out.overlap = recorded_overlap(rank, draft.out, draft.source);
  draft.out.transfers = copies_of(draft);
  return std::move(draft.out);
}

Result<RankProgram> build_rank_program(const RankTrace& rank, uint32_t steps, Findings& findings) {
  return build_rank_program(rank, steps, {}, findings);
}

Result<Program> build_program(const Trace& trace) { return build_program(trace, {}); }

Result<Program> build_program(const Trace& trace, const ProgramOptions& options) {
  Program program;
  program.communicators = trace.communicators;
  size_t steps = trace.ranks.empty() ? 0 : trace.ranks.front().steps.size();
  for (const RankTrace& rank : trace.ranks) steps = std::min(steps, rank.steps.size());
  program.steps = static_cast<uint32_t>(steps);
  program.ranks.reserve(trace.ranks.size());
  SharedColumns columns;
  for (const RankTrace& rank : trace.ranks) {
    if (rank.steps.size() != steps) {
      program.findings.add(
          "uneven-steps", Severity::kWarning, "rank " + std::to_string(rank.rank),
          "ranks recorded different numbers of steps; times are of those all have");
    }
    RH_TRY(RankProgram built, build_rank_program(rank, program.steps, options, program.findings));
    tell_pageable(trace.strings, built);
    columns.share(built);
    program.ranks.push_back(std::move(built));
  }
  split_calls(trace, program);
  draw_clones(trace, program);
  tell_inferred(program);
  return program;
}

const char* name_of(Way way) {
  switch (way) {
    case Way::kHostToDevice:
      return "copy to device";
    case Way::kDeviceToHost:
      return "copy to host";
    case Way::kPeer:
      return "copy to peer";
    case Way::kLoad:
      return "data loading";
    case Way::kRestore:
      return "checkpoint read";
    case Way::kSave:
      return "checkpoint write";
  }
  return "transfer";
}

const Transfer* RankProgram::transfer(OpId op) const {
  const auto at = std::lower_bound(transfers.begin(), transfers.end(), op,
                                   [](const Transfer& t, OpId id) { return t.op < id; });
  return at != transfers.end() && at->op == op ? &*at : nullptr;
}

size_t Program::operations() const {
  size_t n = 0;
  for (const RankProgram& r : ranks) n += r.size();
  return n;
}

int Program::find(RankId rank) const {
  const auto at = std::lower_bound(ranks.begin(), ranks.end(), rank,
                                   [](const RankProgram& r, RankId id) { return r.rank < id; });
  return at != ranks.end() && at->rank == rank ? static_cast<int>(at - ranks.begin()) : -1;
}

}  // namespace rehearse::traces
