// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "base/text.hpp"
#include "sim/scenario/expand.hpp"
#include "sim/scenario/places.hpp"
#include "sim/scenario/rebuild.hpp"
#include "sim/shrink/job.hpp"

namespace rehearse::sim {
namespace {

constexpr Nanos kRecordedCall =
    1000;  // what a recording would have for a call; a replay computes it

// New numbers of what was kept.
struct Numbers {
  std::map<uint32_t, uint32_t> rank, node, communicator;
};

Numbers number(const Job& job) {
  Numbers out;
  for (const JobRank& rank : job.ranks) out.rank.emplace(rank.rank, out.rank.size());
  for (const uint32_t node : job.nodes) out.node.emplace(node, out.node.size());
  std::set<uint32_t> used;
  for (const JobRank& rank : job.ranks) {
    for (const JobOp& op : rank.ops) {
      if (op.call) used.insert(op.call->communicator);
    }
  }
  for (const uint32_t c : used) out.communicator.emplace(c, out.communicator.size());
  return out;
}

traces::Communicator renumbered(const traces::Communicator& communicator, const Numbers& numbers) {
  traces::Communicator out = communicator;
  out.members.clear();
  for (const traces::RankId member : communicator.members) {
    // Members that the trace never had stay out.
    if (const auto at = numbers.rank.find(member); at != numbers.rank.end()) {
      out.members.push_back(at->second);
    }
  }
  const std::string what = out.id.substr(0, out.id.find('/'));
  out.id = what + "/" + format_ranks(out.members);
  return out;
}

class RankWriter {
 public:
  RankWriter(const Job& job, const Numbers& numbers, traces::Trace& trace)
      : job_(job), numbers_(numbers), trace_(trace) {}

  traces::RankTrace write(const JobRank& rank) {
    traces::RankTrace out;
    out.rank = numbers_.rank.at(rank.rank);
    for (const traces::RankTrace& recorded : job_.source->ranks) {
      if (recorded.rank != rank.rank) continue;
      out.host = recorded.host;
      out.gpu = recorded.gpu;
      out.gpu_model = recorded.gpu_model;
      out.gpu_memory = recorded.gpu_memory;
    }
    lanes(rank, out);
    place(rank, out);
    calls(rank);
    for (size_t i = 0; i < rank.ops.size(); ++i) add(rank, i, out);
    for (const JobAllocation& allocation : rank.allocations) {
      out.ops.add_memory(0, name(allocation.name), base_[part(allocation.step)], allocation.memory);
    }
    out.ops.sort();
    return out;
  }

 private:
  [[nodiscard]] uint32_t name(uint32_t id) {
    return trace_.strings.intern(job_.source->strings.at(id));
  }
  // Before the first step, each step, behind the last.
  [[nodiscard]] size_t part(int step) const {
    return static_cast<size_t>(std::clamp(step + 1, 0, static_cast<int>(job_.steps) + 1));
  }

  // Only those that have something to do; a rank without operations keeps one.
  void lanes(const JobRank& rank, traces::RankTrace& out) {
    lane_.assign(rank.lanes.size(), UINT32_MAX);
    for (uint32_t l = 0; l < rank.lanes.size(); ++l) {
      const bool used = std::any_of(rank.ops.begin(), rank.ops.end(),
                                    [l](const JobOp& op) { return op.lane == l; });
      if (!used && !(rank.ops.empty() && l == 0)) continue;
      lane_[l] = static_cast<uint32_t>(out.lanes.size());
      traces::Lane lane = rank.lanes[l];
      lane.name = name(lane.name);
      out.lanes.push_back(lane);
    }
    if (out.lanes.empty()) out.lanes.push_back({});
  }

  // When each operation begins: after its lane and what it waits for, and after all of the steps before.
  void place(const JobRank& rank, traces::RankTrace& out) {
    const size_t parts = job_.steps + 2;
    std::vector<std::vector<size_t>> by_part(parts);
    for (size_t i = 0; i < rank.ops.size(); ++i) by_part[part(rank.ops[i].step)].push_back(i);
    start_.assign(rank.ops.size(), 0);
    std::vector<Nanos> end(rank.ops.size(), 0), free(rank.lanes.size(), 0);
    base_.assign(parts, 0);
    Nanos now = 0;
    for (size_t p = 0; p < parts; ++p) {
      base_[p] = now;
      Nanos latest = now;
      for (const size_t i : by_part[p]) {
        const JobOp& op = rank.ops[i];
        Nanos& begin = start_[i];
        begin = std::max(now, free[op.lane]);
        for (const uint32_t before : op.after) begin = std::max(begin, end[before]);
        free[op.lane] = end[i] = begin + length(op);
        latest = std::max(latest, end[i]);
      }
      now = latest + (p > 0 || !by_part[p].empty() ? 1 : 0);
      if (p > 0 && p <= rank.steps) {
        out.steps.push_back({static_cast<int64_t>(p - 1), base_[p], now});
      }
    }
  }

  static Nanos length(const JobOp& op) { return op.call ? kRecordedCall : op.duration; }

  // Calls are counted in the order in which they are issued.
  void calls(const JobRank& rank) {
    calls_.assign(rank.ops.size(), {});
    std::map<std::tuple<uint32_t, int, int32_t>, int64_t> count;
    for (size_t i = 0; i < rank.ops.size(); ++i) {
      if (!rank.ops[i].call) continue;
      traces::Call call = *rank.ops[i].call;
      const auto& members = job_.communicators[call.communicator].members;
      call.communicator = numbers_.communicator.at(call.communicator);
      call.peer = -1;
      if (rank.ops[i].peer) {
        const auto at = std::find(members.begin(), members.end(), *rank.ops[i].peer);
        call.peer = static_cast<int32_t>(at - members.begin());
      }
      call.sequence = count[counter_of(call)]++;
      calls_[i] = call;
    }
  }

  void add(const JobRank& rank, size_t i, traces::RankTrace& out) {
    const JobOp& op = rank.ops[i];
    const traces::LaneId lane = lane_[op.lane];
    if (op.call) {
      out.ops.add_call(lane, name(op.name), start_[i], length(op), 0, calls_[i]);
    } else if (op.copy) {
      out.ops.add_copy(lane, name(op.name), start_[i], length(op), 0, *op.copy);
    } else {
      out.ops.add(op.kind, lane, name(op.name), start_[i], length(op));
    }
    for (const uint32_t before : op.after) {
      out.ops.dependencies.push_back({static_cast<uint32_t>(i), before});
    }
  }

  const Job& job_;
  const Numbers& numbers_;
  traces::Trace& trace_;
  std::vector<uint32_t> lane_;
  std::vector<Nanos> start_, base_;
  std::vector<traces::Call> calls_;
};

traces::Trace trace_of(const Job& job, const Numbers& numbers) {
  traces::Trace trace;
  trace.header = job.source->header;
  trace.header.set_world_size(static_cast<uint32_t>(job.ranks.size()));
  trace.header.clear_synth();
  trace.header.clear_cloned_from();
  trace.header.clear_findings();
  trace.header.set_producer("rehearse shrink");
  std::set<std::string> ids;
  for (const auto& [old, fresh] : numbers.communicator) {
    traces::Communicator made = renumbered(job.communicators[old], numbers);
    while (!ids.insert(made.id).second) made.id += "'";
    trace.communicators.push_back(std::move(made));
  }
  RankWriter writer(job, numbers, trace);
  for (const JobRank& rank : job.ranks) trace.ranks.push_back(writer.write(rank));
  return trace;
}

// The platform with as many nodes as are left.
void write_nodes(const Job& job, pb::Platform& platform) {
  if (job.gpus_per_node == 0) return;
  if (platform.nodes(0).count() > 1) {
    platform.mutable_nodes(0)->set_count(static_cast<uint32_t>(job.nodes.size()));
    platform.clear_scale();
  } else {
    platform.set_scale(static_cast<uint32_t>(job.nodes.size()));
  }
}

void write_seats(const Job& job, const Numbers& numbers, pb::Launch& launch) {
  uint32_t at = 0;
  for (const JobRank& rank : job.ranks) {
    pb::RankLaunch seat = rank.seat;
    seat.set_rank(numbers.rank.at(rank.rank));
    seat.set_node(numbers.node.at(rank.seat.node()));
    pb::RankLaunch usual;
    usual.set_rank(seat.rank());
    usual.set_node(job.gpus_per_node > 0 ? at / job.gpus_per_node : seat.node());
    usual.set_gpu(job.gpus_per_node > 0 ? at % job.gpus_per_node : seat.gpu());
    ++at;
    const bool as_usual =
        job.gpus_per_node > 0 && seat.SerializeAsString() == usual.SerializeAsString();
    if (!as_usual) *launch.add_ranks() = seat;
  }
}

}  // namespace

Rendered render(const Job& job) {
  const Numbers numbers = number(job);
  Rendered out;
  out.document = job.document;
  write_nodes(job, *out.document.mutable_platform());
  pb::Launch& launch = *out.document.mutable_launch();
  launch.set_world_size(job.missing == 0
                            ? 0
                            : static_cast<uint32_t>(std::max<int64_t>(
                                  1, static_cast<int64_t>(job.ranks.size()) + job.missing)));
  write_seats(job, numbers, launch);
  const Numbering numbering{numbers.rank, numbers.node, job.nodes_before};
  pb::Patch settings;
  for (const Setting& setting : job.settings)
    (*settings.mutable_set())[setting.path] = setting.value;
  std::vector<pb::Patch> patches = job.patches;
  if (!job.settings.empty()) patches.insert(patches.begin(), settings);
  for (const pb::Patch& patch : patches) {
    if (auto made = renumbered(patch, numbering)) *out.document.add_patches() = std::move(*made);
  }
  out.trace = std::make_shared<const traces::Trace>(trace_of(job, numbers));
  return out;
}

Result<Scenario> assemble(const Rendered& rendered) {
  Scenario scenario;
  scenario.document = rendered.document;
  scenario.trace = rendered.trace;
  if (auto expanded = expand(scenario, rendered.document.name()); !expanded) {
    return tl::unexpected(expanded.error());
  }
  for (const pb::Patch& patch : rendered.document.patches()) {
    if (auto applied = apply(scenario, patch); !applied) return tl::unexpected(applied.error());
  }
  scenario.origin.Clear();
  return scenario;
}

}  // namespace rehearse::sim
