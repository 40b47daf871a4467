// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <span>

#include "base/text.hpp"
#include "traces/import/csv/table.hpp"
#include "traces/import/names.hpp"

namespace rehearse::traces::csv {
namespace {

using Kind = pb::TableOperation::Kind;

std::optional<Collective> collective_of(Kind kind) {
  switch (kind) {
    case pb::TableOperation::ALL_REDUCE:
      return Collective::kAllReduce;
    case pb::TableOperation::ALL_GATHER:
      return Collective::kAllGather;
    case pb::TableOperation::REDUCE_SCATTER:
      return Collective::kReduceScatter;
    case pb::TableOperation::BROADCAST:
      return Collective::kBroadcast;
    case pb::TableOperation::REDUCE:
      return Collective::kReduce;
    case pb::TableOperation::ALL_TO_ALL:
      return Collective::kAllToAll;
    case pb::TableOperation::BARRIER:
      return Collective::kBarrier;
    case pb::TableOperation::SEND:
      return Collective::kSend;
    case pb::TableOperation::RECEIVE:
      return Collective::kRecv;
    default:
      return std::nullopt;
  }
}

struct Extent {
  Nanos first = 0, last = 0;
  void add(const TableRow& row) {
    first = std::min(first, row.start);
    last = std::max(last, row.start + row.duration);
  }
};

// Members of a group in the order of their places, then of their ranks.
Communicator communicator_of(const RankGroup& group) {
  std::vector<std::pair<int64_t, RankId>> order;
  for (const auto& [rank, place] : group.members) order.emplace_back(place, rank);
  std::sort(order.begin(), order.end());
  Communicator out;
  for (const auto& [place, rank] : order) out.members.push_back(rank);
  std::vector<uint32_t> ranks = out.members;
  std::sort(ranks.begin(), ranks.end());
  out.id = fmt::format("{}/{}", group.label, format_ranks(ranks));
  out.description = group.label;
  return out;
}

// Puts the operations of one rank on lanes. With a serial order, a host thread launches each operation and,
// before it launches the next, waits for those that had ended by then in the table.
class RankWriter {
 public:
  RankWriter(const Table& table, const pb::TableMapping& mapping,
             const std::vector<Communicator>& groups, ReadContext& context, const std::string& file)
      : table_(table), mapping_(mapping), groups_(groups), context_(context), file_(file) {}

  RankPart write(RankId rank, std::span<const TableRow> rows) {
    part_ = {};
    part_.trace.rank = rank;
    // All ranks of a table share its clock.
    part_.trace.host = "table " + file_;
    lanes_.clear();
    local_.clear();
    running_.clear();
    host_lane_ = lane(LaneKind::kHostThread, context_.strings.intern("worker"));
    host_time_ = rows.empty() ? 0 : rows.front().start;
    for (const TableRow& row : rows) add(row);
    wait_until(std::numeric_limits<Nanos>::max());
    part_.trace.ops.sort();
    return std::move(part_);
  }

 private:
  struct Running {
    LaneId lane = 0;
    Nanos end = 0;
  };

  LaneId lane(LaneKind kind, uint32_t name) {
    const auto [at, added] =
        lanes_.emplace(std::pair(kind, name), static_cast<LaneId>(lanes_.size()));
    if (added) {
      const auto id = static_cast<int64_t>(part_.trace.lanes.size());
      part_.trace.lanes.push_back({kind, id, name});
    }
    return at->second;
  }

  uint32_t lane_name(const TableRow& row) {
    if (row.lane != 0) return row.lane;
    const Table::Operation& op = table_.operations[row.operation];
    if (!op.what.lane().empty()) return context_.strings.intern(op.what.lane());
    return op.what.kind() == pb::TableOperation::KERNEL ? context_.strings.intern("compute")
                                                        : op.name;
  }

  // The host waits for every operation that ends by `time`.
  void wait_until(Nanos time) {
    if (mapping_.order() != pb::TableMapping::SERIAL) return;
    std::sort(running_.begin(), running_.end(),
              [](const Running& a, const Running& b) { return a.end < b.end; });
    size_t done = 0;
    for (; done < running_.size() && running_[done].end - mapping_.tolerance() <= time; ++done) {
      const Nanos end = std::max(host_time_, std::min(running_[done].end, time));
      part_.trace.ops.add_sync(
          host_lane_, context_.strings.intern("wait"), host_time_, end - host_time_, 0,
          {.sync = SyncKind::kStream, .stream_lane = static_cast<int32_t>(running_[done].lane)});
      host_time_ = end;
    }
    running_.erase(running_.begin(), running_.begin() + static_cast<ptrdiff_t>(done));
  }

  void add(const TableRow& row) {
    const Table::Operation& op = table_.operations[row.operation];
    Operations& ops = part_.trace.ops;
    wait_until(row.start);
    host_time_ = std::max(host_time_, row.start);
    if (op.what.kind() == pb::TableOperation::HOST) {
      ops.add(OpKind::kHost, host_lane_, op.name, row.start, row.duration);
      host_time_ = std::max(host_time_, row.start + row.duration);
      return;
    }
    int64_t correlation = 0;
    const LaneId stream = lane(LaneKind::kStream, lane_name(row));
    if (mapping_.order() == pb::TableMapping::SERIAL) {
      correlation = ++correlations_;
      ops.add(OpKind::kLaunch, host_lane_, context_.strings.intern("launch"), row.start, 0,
              correlation);
      running_.push_back({stream, row.start + row.duration});
    }
    if (const auto collective = collective_of(op.what.kind())) {
      Call call = call_of(row, *collective);
      part_.sized.push_back(row.bytes >= 0);
      part_.message_only.push_back(row.bytes >= 0 && !is_point_to_point(*collective));
      ops.add_call(stream, op.name, row.start, row.duration, correlation, call);
    } else {
      ops.add(OpKind::kKernel, stream, op.name, row.start, row.duration, correlation);
    }
  }

  Call call_of(const TableRow& row, Collective collective) {
    const pb::TableOperation& what = table_.operations[row.operation].what;
    const auto [local, added] =
        local_.emplace(row.group, static_cast<uint32_t>(part_.communicators.size()));
    if (added) part_.communicators.push_back(groups_[row.group]);
    Call call;
    call.communicator = local->second;
    call.collective = collective;
    if (is_reducing(collective)) call.reduction = Reduction::kSum;
    const Bytes bytes = std::max<Bytes>(row.bytes, 0);
    call.bytes_in = collective == Collective::kRecv ? 0 : bytes;
    call.bytes_out = collective == Collective::kSend ? 0 : bytes;
    if (is_point_to_point(collective)) {
      const std::vector<RankId>& members = groups_[row.group].members;
      const auto self = std::find(members.begin(), members.end(), row.rank) - members.begin();
      const auto& places = table_.groups[row.group].members;
      const int64_t wanted = places.at(row.rank) + what.shift();
      auto peer = std::find_if(members.begin(), members.end(),
                               [&](RankId r) { return places.at(r) == wanted; });
      const auto size = static_cast<ptrdiff_t>(members.size());
      if (peer == members.end() && what.wrap()) {
        peer = members.begin() + (((self + what.shift()) % size) + size) % size;
      }
      if (peer == members.end() || *peer == row.rank) {
        context_.findings.add(
            "peer-missing", Severity::kWarning,
            fmt::format("{}: rank {}, {}", file_, row.rank,
                        context_.strings.at(table_.operations[row.operation].name)),
            "the other end of these sends and receives is not in the table");
      } else {
        call.peer = static_cast<int32_t>(peer - members.begin());
      }
    }
    return call;
  }

  const Table& table_;
  const pb::TableMapping& mapping_;
  const std::vector<Communicator>& groups_;
  ReadContext& context_;
  std::string file_;
  RankPart part_;
  std::map<std::pair<LaneKind, uint32_t>, LaneId> lanes_;
  std::map<uint32_t, uint32_t> local_;
  std::vector<Running> running_;
  LaneId host_lane_ = 0;
  Nanos host_time_ = 0;
  int64_t correlations_ = 0;
};

// Lays steps one after the other, each as long as its slowest rank.
std::map<int64_t, Extent> lay_out_steps(Table& table) {
  std::map<int64_t, Extent> steps;
  for (const TableRow& row : table.rows) steps[row.step].add(row);
  Nanos base = 0;
  for (auto& [number, extent] : steps) {
    const Nanos length = extent.last - extent.first;
    const Nanos shift = base - extent.first;
    extent = {shift, base + length};  // first: what is added to the times of the step
    base += std::min(length, (Nanos{1} << 60) - base);
  }
  for (TableRow& row : table.rows) row.start += steps[row.step].first;
  Nanos end = 0;
  for (auto& [number, extent] : steps) {
    const Nanos begin = end;
    end = extent.last;
    extent.first = begin;
  }
  return steps;
}

}  // namespace

std::vector<RankPart> ranks_of(Table table, const pb::TableMapping& mapping,
                               const std::string& file, ReadContext& context) {
  const bool within = mapping.times() == pb::TableMapping::WITHIN_STEP;
  std::map<int64_t, Extent> steps;
  if (within) {
    steps = lay_out_steps(table);
    context.findings.add(
        "steps-laid-out", Severity::kInfo, fmt::format("{}: {} steps", file, steps.size()),
        "times count from the start of their step; steps are laid one after the other, "
        "each as long as its slowest rank");
  }
  std::stable_sort(table.rows.begin(), table.rows.end(), [](const TableRow& a, const TableRow& b) {
    return a.rank != b.rank ? a.rank < b.rank : a.start < b.start;
  });
  std::vector<Communicator> groups;
  for (const RankGroup& g : table.groups) groups.push_back(communicator_of(g));
  RankWriter writer(table, mapping, groups, context, file);
  std::vector<RankPart> parts;
  for (size_t begin = 0; begin < table.rows.size();) {
    size_t end = begin;
    const RankId rank = table.rows[begin].rank;
    while (end < table.rows.size() && table.rows[end].rank == rank) ++end;
    const std::span<const TableRow> rows(table.rows.data() + begin, end - begin);
    RankPart part = writer.write(rank, rows);
    std::map<int64_t, Extent> mine;
    if (!mapping.columns().step().empty()) {
      for (const TableRow& row : rows) {
        mine.emplace(row.step, Extent{row.start, row.start}).first->second.add(row);
      }
    }
    for (const auto& [number, extent] : mine) {
      const Extent& whole = within ? steps.at(number) : extent;
      part.trace.steps.push_back({number, whole.first, whole.last});
    }
    std::stable_sort(part.trace.steps.begin(), part.trace.steps.end(),
                     [](const Step& a, const Step& b) { return a.start < b.start; });
    part.rank_known = !mapping.columns().rank().empty();
    parts.push_back(std::move(part));
    begin = end;
  }
  return parts;
}

}  // namespace rehearse::traces::csv
