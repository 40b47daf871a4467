// SPDX-License-Identifier: Apache-2.0
// Walked backwards from the operation that ended last. Before an operation comes whatever released
// it: its lane, a predecessor, or, for a call, the member that arrived last. The time between is
// blamed on the operation; the transfer of a call is blamed on the call and on the link that bounds
// it. For each the run is replayed once more without it (retimed.hpp): what is on the path is not always
// what would be saved, because another path is nearly as long.
#include "sim/outcome/critical_path.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "sim/outcome/link_traffic.hpp"
#include "sim/outcome/outcome.hpp"
#include "sim/outcome/retimed.hpp"

namespace rehearse::sim {
namespace {

using traces::kNoCall;
using traces::RankProgram;

constexpr size_t kShown = 12;  // rows per table
// Operations that may be looked at again to say what would be saved.
constexpr size_t kMostVisits = 8'000'000;
constexpr size_t kMostOperations = 2'000'000;  // a larger run is not timed again

bool same_group(const RankProgram& rank, OpId a, OpId b) {
  if (rank.call[a] == kNoCall || rank.call[b] == kNoCall) return false;
  const uint64_t group = rank.calls[rank.call[b]].group;
  return group != 0 && rank.calls[rank.call[a]].group == group;
}

void fill(const std::map<std::string, Nanos>& blame, Nanos length, size_t most,
          google::protobuf::RepeatedPtrField<pb::Blame>& out) {
  std::vector<std::pair<Nanos, std::string>> rows;
  rows.reserve(blame.size());
  for (const auto& [name, time] : blame) rows.emplace_back(time, name);
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  if (rows.size() > most) rows.resize(most);
  for (const auto& [time, name] : rows) {
    pb::Blame& row = *out.Add();
    row.set_name(name);
    row.set_ns(time);
    row.set_share(length > 0 ? static_cast<double>(time) / static_cast<double>(length) : 0);
  }
}

constexpr const char* kHost = "host";

// A send and its recv are one thing.
std::string call_name(const Evidence& evidence, const traces::Call& call) {
  const traces::Collective what =
      traces::is_point_to_point(call.collective) ? traces::Collective::kSend : call.collective;
  return std::string(name_of(what)) + " " +
         evidence.program.communicators[call.communicator].description;
}

std::string_view operation_name(const Evidence& evidence, const RankProgram& rank, OpId op) {
  const traces::Transfer* transfer = rank.transfer(op);
  if (transfer != nullptr && is_storage(transfer->way)) return name_of(transfer->way);
  if (!rank.on_gpu(rank.lane_of(op))) return kHost;
  return evidence.names.at(rank.name[op]);
}

std::string rank_name(const RankProgram& rank) { return "rank " + std::to_string(rank.rank); }

}  // namespace

void walk_critical_path(const Evidence& evidence,
                        const std::function<void(const PathStretch&)>& see) {
  const Replayed& replayed = evidence.replayed;
  size_t r = SIZE_MAX;
  OpId op = 0;
  Nanos latest = -1;
  for (size_t i = 0; i < replayed.end.size(); ++i) {
    for (OpId o = 0; o < replayed.end[i].size(); ++o) {
      if (replayed.end[i][o] > latest) {
        latest = replayed.end[i][o];
        r = i;
        op = o;
      }
    }
  }
  if (r == SIZE_MAX) return;
  Nanos at = latest;
  // Recorded times may contradict each other: the way back ends all the same.
  for (size_t left = evidence.program.operations() + 1; left > 0; --left) {
    const RankProgram* rank = &evidence.program.ranks[r];
    if (rank->call[op] != kNoCall) {
      const uint32_t id = replayed.meeting_of[r][rank->call[op]];
      const Meeting& meeting = replayed.meetings[id];
      // Who left before the last had come was held up by itself.
      const bool ahead = meeting.last_arrival > at;
      const Nanos since = ahead ? replayed.arrival[r][rank->call[op]] : meeting.last_arrival;
      see({r, op, replayed.shape_of[id], since, at});
      at = since;
      if (!ahead) {
        r = meeting.last_arriver;
        op = meeting.last_op;
        rank = &evidence.program.ranks[r];
      }
    }
    // What released this operation?
    const traces::LaneId lane = rank->lane_of(op);
    // Calls of one group were entered together: what released the first released them all.
    while (op > rank->lane_begin[lane] && same_group(*rank, op - 1, op)) --op;
    OpId before = UINT32_MAX;
    Nanos released = 0;
    if (op > rank->lane_begin[lane]) {
      before = op - 1;
      released = replayed.end[r][before];
    }
    for (OpId candidate : rank->predecessors(op)) {
      if (replayed.end[r][candidate] > released || before == UINT32_MAX) {
        before = candidate;
        released = replayed.end[r][candidate];
      }
    }
    see({r, op, PathStretch::kOwnWork, released, at});
    if (before == UINT32_MAX) break;
    op = before;
    at = released;
  }
}

bool fill_critical_path(const Evidence& evidence, size_t rows, pb::CriticalPath& path) {
  std::map<std::string, Nanos> operations, ranks, links;
  Nanos latest = -1;
  LinkTraffic traffic(evidence);
  walk_critical_path(evidence, [&](const PathStretch& part) {
    latest = std::max(latest, part.to);
    const Nanos time = part.to - part.from;
    if (part.shape != PathStretch::kOwnWork) {
      const Replayed::Shape& shape = evidence.replayed.shapes[part.shape];
      operations[call_name(evidence, shape.call)] += time;
      const LinkId link = traffic.bottleneck(part.shape, part.from, part.to);
      if (link != platforms::kNoLink) links[evidence.links[link].name] += time;
      return;
    }
    const RankProgram& rank = evidence.program.ranks[part.rank];
    operations[std::string(operation_name(evidence, rank, part.op))] += time;
    ranks[rank_name(rank)] += time;
    if (const traces::Transfer* transfer = rank.transfer(part.op)) {
      const LinkId link =
          traffic.bottleneck(transfer_load(evidence, part.rank, *transfer), part.from, part.to);
      if (link != platforms::kNoLink) links[evidence.links[link].name] += time;
    }
  });
  if (latest < 0) return false;
  path.set_length_ns(latest);
  fill(operations, latest, rows, *path.mutable_operations());
  fill(ranks, latest, rows, *path.mutable_ranks());
  fill(links, latest, rows, *path.mutable_links());
  return true;
}

void fill_critical_path(const Evidence& evidence, pb::Outcome& out) {
  pb::CriticalPath path;
  if (fill_critical_path(evidence, kShown, path)) *out.mutable_critical_path() = std::move(path);
}

void fill_savings(const Evidence& evidence, pb::CriticalPath& path) {
  const size_t operations = evidence.program.operations();
  size_t budget = operations > 0 && operations <= kMostOperations ? kMostVisits / operations : 0;
  if (budget < 2) return;
  Retimed run(evidence);
  const Nanos whole = run.step({});
  if (whole < 0) return;
  const auto tell = [&](pb::Blame& row, const Retimed::Without& without) {
    if (--budget == 0) return;
    const Nanos step = run.step(without);
    if (step >= 0) row.set_saving_ns(std::max<Nanos>(0, whole - step));
  };
  const int rows = std::max({path.operations_size(), path.ranks_size(), path.links_size()});
  for (int i = 0; i < rows && budget > 1; ++i) {
    if (i < path.operations_size()) {
      const std::string name = path.operations(i).name();
      Retimed::Without without;
      without.operation = [&](size_t r, OpId op) {
        return operation_name(evidence, evidence.program.ranks[r], op) == name;
      };
      without.call = [&](const traces::Call& call) { return call_name(evidence, call) == name; };
      tell(*path.mutable_operations(i), without);
    }
    if (i < path.ranks_size() && budget > 1) {
      const std::string name = path.ranks(i).name();
      size_t who = 0;
      while (rank_name(evidence.program.ranks[who]) != name) ++who;
      Retimed::Without without;
      without.operation = [who](size_t r, OpId) { return r == who; };
      tell(*path.mutable_ranks(i), without);
    }
    if (i < path.links_size() && budget > 1) {
      Retimed::Without without;
      without.link = evidence.links.find(path.links(i).name());
      tell(*path.mutable_links(i), without);
    }
  }
}

}  // namespace rehearse::sim
