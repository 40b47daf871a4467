// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "traces/import/chakra/builder.hpp"
#include "traces/import/chakra/schedule.hpp"
#include "traces/import/limits.hpp"

namespace rehearse::traces::chakra {
std::vector<Dependency> Builder::resolve(const std::vector<Pending>& pending) {
  std::vector<Dependency> out;
  uint64_t missing = 0;
  for (const Pending& p : pending) {
    const auto on = by_id_.find(p.on);
    if (on == by_id_.end()) {
      ++missing;
    } else if (on->second != p.op) {
      out.push_back({p.op, on->second});
    } else {
      context_.findings.add("dependency-on-itself", Severity::kWarning, file_, "ignored");
    }
  }
  if (missing > 0) {
    context_.findings.add("dependency-missing", Severity::kWarning, file_,
                          "nodes depend on ids that are not in the file; those are ignored",
                          missing);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// Schema 1.1 files of some converters give GPU nodes the host thread as tid and no stream: compute and
// communication would queue behind each other.
void Builder::unmix_streams() {
  if (exact_ || has_streams_) return;
  RankTrace& rank = part_.trace;
  const std::vector<LaneKey>& keys = lanes_.keys();
  const bool threads = std::any_of(keys.begin(), keys.end(), [&](const LaneKey& key) {
    return key.kind == LaneKind::kStream && lanes_.find({LaneKind::kHostThread, 0, 0, key.id});
  });
  const bool single = std::count_if(rank.lanes.begin(), rank.lanes.end(),
                                    [](const Lane& l) { return l.kind == LaneKind::kStream; }) == 1;
  if (!threads && !single) return;
  if (rank.ops.calls.empty()) return;
  const auto compute = static_cast<uint16_t>(rank.lanes.size());
  rank.lanes.push_back({LaneKind::kStream, 0, context_.strings.intern("compute")});
  rank.lanes.push_back({LaneKind::kStream, 1, context_.strings.intern("communication")});
  // Ranks that send to each other must not wait for their own receive to come up behind.
  rank.lanes.push_back({LaneKind::kStream, 2, context_.strings.intern("send")});
  rank.lanes.push_back({LaneKind::kStream, 3, context_.strings.intern("receive")});
  const auto lane_of = [&](size_t op) {
    const Call* call = rank.ops.call(op);
    if (call == nullptr) return compute;
    const int offset = call->collective == Collective::kSend   ? 2
                       : call->collective == Collective::kRecv ? 3
                                                               : 1;
    return static_cast<uint16_t>(compute + offset);
  };
  for (size_t op = 0; op < rank.ops.size(); ++op) {
    if (rank.lanes[rank.ops.lane[op]].kind == LaneKind::kStream) rank.ops.lane[op] = lane_of(op);
  }
  // Lanes that are left without operations go.
  std::vector<int32_t> place(rank.lanes.size(), -1);
  for (const uint16_t lane : rank.ops.lane) place[lane] = 0;
  std::vector<Lane> kept;
  for (size_t l = 0; l < rank.lanes.size(); ++l) {
    if (place[l] < 0) continue;
    place[l] = static_cast<int32_t>(kept.size());
    kept.push_back(rank.lanes[l]);
  }
  for (uint16_t& lane : rank.ops.lane) lane = static_cast<uint16_t>(place[lane]);
  rank.lanes = std::move(kept);
  context_.findings.add("streams-unknown", Severity::kInfo, file_,
                        "GPU nodes do not tell their stream; computation, collectives, sends and "
                        "receives are taken as a stream each");
}

void Builder::place_in_time(std::vector<Dependency>& dependencies) {
  if (has_times_) return;
  Operations& ops = part_.trace.ops;
  Schedule schedule = earliest_starts(ops.lane, ops.duration, dependencies, kLatest);
  ops.start = std::move(schedule.start);
  context_.findings.add(
      "times-computed", Severity::kInfo, file_,
      "the file tells durations and dependencies only; starts are the earliest that these allow");
  if (schedule.cycles == 0) return;
  context_.findings.add(
      "dependency-cycle", Severity::kError,
      fmt::format("{}: {}", file_, context_.strings.at(ops.name[schedule.first_in_cycle])),
      "these nodes wait for each other and could never start; one of each cycle was let go",
      schedule.cycles);
}

// The last host node that a GPU node depends on launched it.
void Builder::find_launches(std::vector<Dependency>& dependencies) {
  Operations& ops = part_.trace.ops;
  const auto on_gpu = [&](uint32_t op) {
    return part_.trace.lanes[ops.lane[op]].kind == LaneKind::kStream;
  };
  const auto later = [&](uint32_t a, uint32_t b) {
    return std::tie(ops.start[a], a) > std::tie(ops.start[b], b);
  };
  for (auto first = dependencies.begin(); first != dependencies.end();) {
    const uint32_t op = first->op;
    auto last = first;
    std::optional<uint32_t> launch;
    for (; last != dependencies.end() && last->op == op; ++last) {
      if (on_gpu(op) && !on_gpu(last->on) && (!launch || later(last->on, *launch)))
        launch = last->on;
    }
    if (launch && ops.kind[*launch] != OpKind::kAnnotation) {
      ops.correlation[op] = ops.correlation[*launch] = int64_t{*launch} + 1;
      ops.kind[*launch] = OpKind::kLaunch;
    }
    first = last;
  }
}

// Of several dependencies on one lane the latest says all; order in a lane and launches are known anyway.
void Builder::keep_latest(std::vector<Dependency>& dependencies) {
  const Operations& ops = part_.trace.ops;
  std::vector<Dependency> kept;
  uint64_t contradictions = 0;
  for (auto first = dependencies.begin(); first != dependencies.end();) {
    const uint32_t op = first->op;
    std::map<uint16_t, uint32_t> latest;
    auto at = first;
    for (; at != dependencies.end() && at->op == op; ++at) {
      const uint32_t on = at->on;
      const auto key = [&](uint32_t o) { return std::tuple(ops.start[o], ops.lane[o], o); };
      if (key(on) > key(op)) {
        ++contradictions;
        continue;
      }
      if (ops.lane[on] == ops.lane[op] || ops.kind[on] == OpKind::kAnnotation ||
          (ops.correlation[op] != 0 && ops.correlation[on] == ops.correlation[op])) {
        continue;
      }
      const auto [slot, added] = latest.emplace(ops.lane[on], on);
      if (!added && key(on) > key(slot->second)) slot->second = on;
    }
    for (const auto& [lane, on] : latest) kept.push_back({op, on});
    first = at;
  }
  if (contradictions > 0) {
    context_.findings.add("dependency-contradicts-times", Severity::kWarning, file_,
                          "nodes start before those that they depend on; the times are believed",
                          contradictions);
  }
  dependencies = std::move(kept);
}

void Builder::complete_calls() {
  std::vector<Call>& calls = part_.trace.ops.calls;
  for (ProcessGroup& pg : groups_) {
    const auto index = static_cast<uint32_t>(part_.communicators.size());
    if (communicators_.emplace(pg.name, index).second) {
      part_.communicators.push_back(std::move(pg.communicator));
      part_.members_unknown.push_back(false);
    }
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    const auto [found, added] = communicators_.emplace(
        group_of_call_[i], static_cast<uint32_t>(part_.communicators.size()));
    if (added) {
      const std::string& name = group_of_call_[i];
      part_.communicators.push_back({name.empty() ? "default" : name, "", {}, ""});
      part_.members_unknown.push_back(!name.empty());
    }
    Call& call = calls[i];
    call.communicator = found->second;
    const std::vector<RankId>& members = part_.communicators[call.communicator].members;
    const auto size = static_cast<Bytes>(members.size());
    if (!exact_ && size > 1) {
      if (call.collective == Collective::kAllGather) call.bytes_out = gathered(call.bytes_in, size);
      if (call.collective == Collective::kReduceScatter) call.bytes_out = call.bytes_in / size;
    }
    const int64_t peer = peer_rank_[i];
    if (peer < 0 || peer >= kMostRank) continue;
    const auto member = std::find(members.begin(), members.end(), static_cast<RankId>(peer));
    if (members.empty()) {
      call.peer = static_cast<int32_t>(peer);
    } else if (member != members.end()) {
      call.peer = static_cast<int32_t>(member - members.begin());
    } else {
      context_.findings.add("peer-outside-group", Severity::kWarning,
                            fmt::format("{}: rank {} is not in {}", file_, peer, group_of_call_[i]),
                            "the peer of these calls is not known");
    }
  }
}

void Builder::name_lanes() {
  for (Lane& lane : part_.trace.lanes) {
    if (lane.name != 0) continue;
    lane.name = context_.strings.intern(
        fmt::format("{} {}", lane.kind == LaneKind::kStream ? "stream" : "thread", lane.id));
  }
}

RankPart Builder::finish() {
  Operations& ops = part_.trace.ops;
  notes_.flush();
  std::vector<Dependency> dependencies = resolve(std::exchange(data_, {}));
  // Control dependencies are calls of functions, not an order in time, and schema 1.0.1 numbers them in a
  // space of their own; they count where there is no other.
  if (dependencies.empty()) dependencies = resolve(std::exchange(control_, {}));
  control_ = {};
  by_id_ = {};
  unmix_streams();
  place_in_time(dependencies);
  if (!exact_) {
    find_launches(dependencies);
    keep_latest(dependencies);
  }
  complete_calls();
  name_lanes();
  std::unordered_map<int64_t, Nanos> launches;
  part_.launched.assign(ops.calls.size(), 0);
  for (size_t op = 0; op < ops.size(); ++op) {
    if (ops.correlation[op] != 0 && part_.trace.lanes[ops.lane[op]].kind == LaneKind::kHostThread) {
      launches.emplace(ops.correlation[op], ops.start[op]);
    }
  }
  for (size_t op = 0; op < ops.size(); ++op) {
    if (ops.kind[op] != OpKind::kCall) continue;
    const auto launch = launches.find(ops.correlation[op]);
    part_.launched[ops.detail[op] - 1] = launch == launches.end() ? ops.start[op] : launch->second;
  }
  ops.dependencies = std::move(dependencies);
  ops.sort();
  std::erase_if(ops.dependencies, [](const Dependency& d) { return d.on >= d.op; });
  return std::move(part_);
}

}  // namespace rehearse::traces::chakra
