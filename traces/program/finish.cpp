// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <string>

#include "traces/program/connect.hpp"

namespace rehearse::traces {
namespace {

// A thread that goes on so soon was running.
constexpr Nanos kGlue = 50'000;

void fill_edges(Draft& d, std::vector<Draft::Edge>& edges) {
  const size_t n = d.source.size();
  RankProgram& out = d.out;
  std::vector<uint32_t> begin(n + 1, 0);
  std::vector<OpId> from;
  from.reserve(edges.size());
  out.edge_inferred.clear();
  out.inferred_edges = 0;
  size_t e = 0;
  for (OpId op = 0; op < n; ++op) {
    begin[op] = static_cast<uint32_t>(from.size());
    for (; e < edges.size() && edges[e].to == op; ++e) {
      from.push_back(edges[e].from);
      out.edge_inferred.push_back(edges[e].inferred);
      out.inferred_edges += edges[e].inferred ? 1 : 0;
    }
  }
  begin[n] = static_cast<uint32_t>(from.size());
  out.edge_begin = std::move(begin);
  out.edges = std::move(from);
}

// Operations that can never start because they wait for each other in a circle.
std::vector<bool> stuck(const RankProgram& p) {
  const size_t n = p.size(), lanes = p.lanes.size();
  std::vector<bool> waits(n, true);
  std::vector<OpId> cursor(p.lane_begin.begin(), p.lane_begin.end() - 1);
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t l = 0; l < lanes; ++l) {
      for (; cursor[l] < p.lane_begin[l + 1]; ++cursor[l]) {
        const auto before = p.predecessors(cursor[l]);
        if (std::any_of(before.begin(), before.end(), [&](OpId b) { return waits[b]; })) break;
        waits[cursor[l]] = false;
        moved = true;
      }
    }
  }
  return waits;
}

// Recorded operators of one thread, as time that they cover.
class Operators {
 public:
  // In order of start.
  void add(Nanos start, Nanos end) {
    if (!spans_.empty() && start <= spans_.back().second) {
      spans_.back().second = std::max(spans_.back().second, end);
    } else {
      spans_.emplace_back(start, end);
    }
  }
  // Time of [from, to) inside operators; to be asked in order of time.
  [[nodiscard]] Nanos covered(Nanos from, Nanos to) {
    while (at_ < spans_.size() && spans_[at_].second <= from) ++at_;
    Nanos sum = 0;
    for (size_t i = at_; i < spans_.size() && spans_[i].first < to; ++i) {
      sum += std::max<Nanos>(0, std::min(to, spans_[i].second) - std::max(from, spans_[i].first));
    }
    return sum;
  }

 private:
  std::vector<std::pair<Nanos, Nanos>> spans_;  // disjoint, ascending
  size_t at_ = 0;
};

std::vector<Operators> operators_of(const Draft& d) {
  std::vector<Operators> out(d.rank.lanes.size());
  for (size_t i = 0; i < d.ops.size(); ++i) {
    if (d.ops.kind[i] != OpKind::kHost) continue;
    out[d.ops.lane[i]].add(d.ops.start[i], d.ops.start[i] + d.ops.duration[i]);
  }
  return out;
}

}  // namespace

void finish_edges(Draft& d, InferredEdges inferred, Findings& findings) {
  auto& edges = d.edges;
  const auto rank = [](const Draft::Edge& e) { return std::make_tuple(e.to, e.from, e.inferred); };
  std::sort(edges.begin(), edges.end(),
            [&](const Draft::Edge& a, const Draft::Edge& b) { return rank(a) < rank(b); });
  // A recorded edge stands before the inferred one that says the same; order in a lane is none.
  edges.erase(std::unique(edges.begin(), edges.end(),
                          [](const Draft::Edge& a, const Draft::Edge& b) {
                            return a.to == b.to && a.from == b.from;
                          }),
              edges.end());
  std::erase_if(edges, [&](const Draft::Edge& e) {
    return d.lane(e.from) == d.lane(e.to) || (e.inferred && inferred == InferredEdges::kDrop);
  });
  fill_edges(d, edges);
  for (const bool inferred_only : {true, false}) {
    const std::vector<bool> waits = stuck(d.out);
    const size_t before = edges.size();
    std::erase_if(edges, [&](const Draft::Edge& e) {
      return waits[e.to] && waits[e.from] && (e.inferred || !inferred_only);
    });
    if (edges.size() == before) continue;
    findings.add(
        "contradictory-order", Severity::kWarning, "rank " + std::to_string(d.rank.rank),
        "recorded times and the order of launches contradict each other (clocks of host and "
        "GPU apart?); that many edges were left out",
        before - edges.size());
    fill_edges(d, edges);
  }
}

// A host call that waited for a stream keeps as duration only what it did after the wait was over.
void measure_gaps(Draft& d, UnknownGaps unknown) {
  RankProgram& out = d.out;
  const Nanos origin = d.ops.size() == 0 ? 0 : d.ops.start.front();
  std::vector<Operators> operators = operators_of(d);
  for (LaneId lane = 0; lane < out.lanes.size(); ++lane) {
    const bool host = out.lanes[lane].kind == LaneKind::kHostThread;
    for (OpId op = out.lane_begin[lane]; op < out.lane_begin[lane + 1]; ++op) {
      const bool waits = out.kind[op] == OpKind::kSync;
      const bool first = d.first_of_lane(op);
      const Nanos free = first ? origin : d.end(op - 1);
      Nanos ready = free, released = d.start(op);
      for (const OpId before : out.predecessors(op)) {
        if (waits && out.on_gpu(d.lane(before))) {
          released = std::max(released, d.end(before));
        } else {
          ready = std::max(ready, d.end(before));
        }
      }
      out.gap[op] = std::clamp<Nanos>(d.start(op) - ready, 0, kLongestTime);
      const Nanos full = out.duration[op];
      if (waits) out.duration[op] = std::max<Nanos>(0, d.end(op) - released);
      if (!host) continue;
      if (waits) out.host.blocked += std::max<Nanos>(0, full - out.duration[op]);
      out.host.blocked += std::clamp<Nanos>(std::min(ready, d.start(op)) - free, 0, kLongestTime);
      const Nanos bare = out.gap[op] - operators[lane].covered(ready, d.start(op));
      // Before the first call of a thread there is no thread to speak of.
      const bool known = first || bare <= kGlue;
      if (known) {
        if (!first) out.host.work += out.gap[op];
        continue;
      }
      out.host.work += out.gap[op] - bare;
      out.host.unknown += bare;
      out.unknown_gaps.emplace_back(op, bare);
      if (unknown == UnknownGaps::kNone) out.gap[op] -= bare;
    }
  }
  std::sort(out.unknown_gaps.begin(), out.unknown_gaps.end());
}

void place_steps(Draft& d, uint32_t steps) {
  RankProgram& out = d.out;
  const size_t lanes = d.rank.lanes.size();
  out.step_begin.assign(lanes * (steps + 1), 0);
  // A stream operation belongs to the step in which it was launched.
  std::vector<Nanos> issued(d.source.size());
  for (OpId op = 0; op < d.source.size(); ++op) issued[op] = d.start(op);
  for (const Draft::Issued& i : d.issued) issued[i.op] = d.start(i.launch);
  for (LaneId l = 0; l < lanes; ++l) {
    OpId op = out.lane_begin[l];
    for (uint32_t s = 0; s <= steps; ++s) {
      Nanos from = std::numeric_limits<Nanos>::min();
      if (steps > 0) from = s < steps ? d.rank.steps[s].start : d.rank.steps[steps - 1].end;
      while (op < out.lane_begin[l + 1] && issued[op] < from) ++op;
      out.step_begin[l * (steps + 1) + s] = op;
    }
  }
}

}  // namespace rehearse::traces
