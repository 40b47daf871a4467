// SPDX-License-Identifier: Apache-2.0
#include "traces/import/match.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "traces/import/limits.hpp"
#include "traces/import/match_by_time.hpp"

namespace rehearse::traces {
namespace {

// Indices of calls in the order in which they were launched.
std::vector<uint32_t> launch_order(const RankPart& part) {
  const Operations& ops = part.trace.ops;
  std::vector<Nanos> when(ops.calls.size(), 0);
  for (size_t op = 0; op < ops.size(); ++op) {
    if (ops.kind[op] == OpKind::kCall && ops.detail[op] > 0)
      when[ops.detail[op] - 1] = ops.start[op];
  }
  if (part.launched.size() == when.size()) when = part.launched;
  std::vector<uint32_t> order(when.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return when[a] < when[b]; });
  return order;
}

// Two tellings of the same collective: NCCL runs all-to-all, gather and scatter as sends and
// receives.
bool compatible(Collective call, Collective row) {
  const auto exchange = [](Collective c) {
    return c == Collective::kAllToAll || c == Collective::kSend || c == Collective::kRecv ||
           c == Collective::kGather || c == Collective::kScatter;
  };
  // A barrier of PyTorch is a small all-reduce.
  return call == row || (exchange(call) && exchange(row)) ||
         (call == Collective::kAllReduce && row == Collective::kBarrier);
}

// Where in `rows` the calls stand, or nothing.
std::optional<size_t> place_of(const std::vector<uint32_t>& order, const std::vector<Call>& calls,
                               const std::vector<CallSizes::Row>& rows) {
  if (order.empty() || rows.size() < order.size()) return std::nullopt;
  for (size_t first = 0; first + order.size() <= rows.size(); ++first) {
    bool fits = true;
    for (size_t i = 0; fits && i < order.size(); ++i) {
      fits = compatible(calls[order[i]].collective, rows[first + i].collective);
    }
    if (fits) return first;
  }
  return std::nullopt;
}

// Where a communicator stands among others, by name; of namesakes the first.
using ByName = std::map<std::string, uint32_t>;

ByName by_name(const std::vector<Communicator>& communicators) {
  ByName out;
  for (size_t i = 0; i < communicators.size(); ++i) {
    out.emplace(communicators[i].id, static_cast<uint32_t>(i));
  }
  return out;
}

const Communicator* group_named(const CallSizes& sizes, const ByName& groups,
                                const std::string& name) {
  const auto at = groups.find(name);
  return name.empty() || at == groups.end() ? nullptr : &sizes.groups[at->second];
}

// Moves a call to the group that the execution trace tells; the peer is a place among its members.
void regroup(Call& call, const Communicator& group, ByName& known, RankPart& part) {
  const auto [named, fresh] =
      known.emplace(group.id, static_cast<uint32_t>(part.communicators.size()));
  const uint32_t index = named->second;
  if (fresh) part.communicators.push_back(group);
  if (call.peer >= 0) {
    const std::vector<RankId>& before = part.communicators[call.communicator].members;
    const auto at = static_cast<size_t>(call.peer);
    const auto peer = at < before.size() ? before[at] : static_cast<RankId>(call.peer);
    const std::vector<RankId>& members = part.communicators[index].members;
    const auto place = std::find(members.begin(), members.end(), peer);
    call.peer = static_cast<int32_t>(members.empty() ? peer : place - members.begin());
    if (!members.empty() && place == members.end()) call.peer = -1;
  }
  call.communicator = index;
}

bool is_p2p(const Call& c) { return is_point_to_point(c.collective); }

// True when every collective of this communicator on every rank has its own recorded number.
std::set<uint32_t> numbered_communicators(std::span<RankPart> ranks, size_t communicators) {
  std::set<uint32_t> numbered;
  for (uint32_t c = 0; c < communicators; ++c) numbered.insert(c);
  for (const RankPart& part : ranks) {
    std::set<std::pair<uint32_t, int64_t>> seen;
    const std::vector<Call>& calls = part.trace.ops.calls;
    for (size_t i = 0; i < calls.size(); ++i) {
      if (is_p2p(calls[i])) continue;
      const int64_t number = i < part.recorded_sequence.size() ? part.recorded_sequence[i] : -1;
      if (number < 0 || !seen.emplace(calls[i].communicator, number).second) {
        numbered.erase(calls[i].communicator);
      }
    }
  }
  return numbered;
}

bool all_recorded(std::span<RankPart> ranks, const Communicator& communicator) {
  return std::all_of(communicator.members.begin(), communicator.members.end(), [&](RankId member) {
    return std::any_of(ranks.begin(), ranks.end(),
                       [&](const RankPart& p) { return p.trace.rank == member; });
  });
}

// Communicators on which the order of calls does not match ranks: they call different types under the
// same number, or not equally often. Windows of equal calls are trusted only where nearly all ends meet.
void match_windows(std::span<RankPart> ranks, const std::set<uint32_t>& numbered,
                   const Trace& trace, Findings& findings) {
  std::map<std::pair<uint32_t, int64_t>, Collective> first;
  std::map<uint32_t, std::map<RankId, uint64_t>> counts;
  std::set<uint32_t> contradictory;
  for (const RankPart& part : ranks) {
    for (const Call& c : part.trace.ops.calls) {
      if (is_p2p(c) || numbered.contains(c.communicator)) continue;
      ++counts[c.communicator][part.trace.rank];
      const auto [seen, added] = first.emplace(std::pair(c.communicator, c.sequence), c.collective);
      if (!added && seen->second != c.collective) contradictory.insert(c.communicator);
    }
  }
  for (const auto& [communicator, by_rank] : counts) {
    const bool differs = contradictory.contains(communicator);
    const bool even =
        std::all_of(by_rank.begin(), by_rank.end(),
                    [n = by_rank.begin()->second](const auto& r) { return r.second == n; });
    if (by_rank.size() < 2 || (even && !differs)) continue;
    const auto match = match_by_time(ranks, communicator, differs ? 0.3 : 0.8);
    if (!match) continue;
    findings.add(
        "matched-by-time", Severity::kWarning,
        fmt::format("{}: {} calls end together, {} were recorded by one rank only",
                    trace.communicators[communicator].id, match->matched, match->unmatched),
        "the recordings cover different parts of the run, so collectives are matched by the "
        "times at which they end; record the same steps on all ranks",
        match->matched);
  }
}

void compare_ranks(std::span<RankPart> ranks, const Trace& trace, Findings& findings) {
  struct Seen {
    Collective collective;
    RankId rank;
  };
  std::map<std::pair<uint32_t, int64_t>, Seen> first;
  std::map<uint32_t, std::map<RankId, uint64_t>> counts;
  for (const RankPart& part : ranks) {
    for (const Call& c : part.trace.ops.calls) {
      if (is_p2p(c)) continue;
      ++counts[c.communicator][part.trace.rank];
      const auto [seen, added] =
          first.emplace(std::pair(c.communicator, c.sequence), Seen{c.collective, part.trace.rank});
      if (!added && seen->second.collective != c.collective) {
        // Only where everybody was recorded is it the job that is wrong.
        const bool whole = all_recorded(ranks, trace.communicators[c.communicator]);
        findings.add(
            "collective-mismatch", whole ? Severity::kError : Severity::kWarning,
            fmt::format("{} #{}: rank {} calls {}, rank {} {}",
                        trace.communicators[c.communicator].id, c.sequence, seen->second.rank,
                        name_of(seen->second.collective), part.trace.rank, name_of(c.collective)),
            "ranks disagree about what they do together: the recordings cover different parts of "
            "the run, or the job is wrong");
      }
    }
  }
  for (const auto& [communicator, by_rank] : counts) {
    const auto [least, most] =
        std::minmax_element(by_rank.begin(), by_rank.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; });
    if (least->second == most->second) continue;
    findings.add(
        "collective-count-differs", Severity::kWarning,
        fmt::format("{}: {} on rank {}, {} on rank {}", trace.communicators[communicator].id,
                    least->second, least->first, most->second, most->first),
        "the recordings cover different parts of the run; the surplus is not matched",
        most->second - least->second);
  }
}

}  // namespace

void join_sizes(const CallSizes& sizes, RankPart& part, Findings& findings) {
  const std::vector<uint32_t> order = launch_order(part);
  std::vector<Call>& calls = part.trace.ops.calls;
  if (order.empty() && sizes.rows.empty()) return;
  const auto first = place_of(order, calls, sizes.rows);
  if (!first) {
    findings.add("execution-trace-mismatch", Severity::kWarning,
                 fmt::format("{}: {} collectives, the profile of rank {} has {}", sizes.file,
                             sizes.rows.size(), part.trace.rank, order.size()),
                 "the two files do not tell of the same steps; sizes are not taken from it");
    return;
  }
  if (sizes.rows.size() != order.size()) {
    findings.add("execution-trace-longer", Severity::kInfo,
                 fmt::format("{}: {} collectives, the profile has {}", sizes.file,
                             sizes.rows.size(), order.size()),
                 "the first stretch with the same collectives is taken");
  }
  part.sized.resize(calls.size(), true);
  const ByName groups = by_name(sizes.groups);
  ByName known = by_name(part.communicators);
  for (size_t i = 0; i < order.size(); ++i) {
    const CallSizes::Row& row = sizes.rows[*first + i];
    Call& call = calls[order[i]];
    if (part.sized[order[i]] && call.bytes_in != row.bytes_in) {
      findings.add("size-contradiction", Severity::kWarning,
                   fmt::format("{}: collective {} has {} bytes, the profile says {}", sizes.file, i,
                               row.bytes_in, call.bytes_in),
                   "the execution trace is believed");
    }
    call.collective = row.collective;
    call.bytes_in = row.bytes_in;
    call.bytes_out = row.bytes_out;
    if (row.dtype != DType::kUnknown) call.dtype = row.dtype;
    part.sized[order[i]] = true;
    if (order[i] < part.grouped.size() && !part.grouped[order[i]]) {
      if (const Communicator* const group = group_named(sizes, groups, row.group)) {
        regroup(call, *group, known, part);
        part.grouped[order[i]] = true;
      }
    }
    if (call.peer < 0) call.peer = row.peer;
  }
}

std::optional<RankPart> rank_of_sizes(const CallSizes& sizes, Strings& strings,
                                      Findings& findings) {
  if (sizes.rows.empty()) return std::nullopt;
  RankPart part;
  part.trace.rank = sizes.rank.value_or(0);
  part.trace.lanes.push_back({LaneKind::kHostThread, 0, strings.intern("execution trace")});
  const ByName told_groups = by_name(sizes.groups);
  ByName groups;
  for (size_t i = 0; i < sizes.rows.size(); ++i) {
    const CallSizes::Row& row = sizes.rows[i];
    const auto [group, added] = groups.emplace(row.group, static_cast<uint32_t>(groups.size()));
    if (added) {
      const Communicator* const told = group_named(sizes, told_groups, row.group);
      part.communicators.push_back(told != nullptr ? *told : Communicator{"default", "", {}, ""});
      part.places.push_back({row.group_size, -1});
    }
    Call call;
    call.communicator = group->second;
    call.collective = row.collective;
    call.bytes_in = row.bytes_in;
    call.bytes_out = row.bytes_out;
    call.dtype = row.dtype;
    call.peer = row.peer;
    part.trace.ops.add_call(0, strings.intern(name_of(row.collective)), static_cast<Nanos>(i), 0, 0,
                            call);
  }
  findings.add(
      "no-times", Severity::kDataLoss, sizes.file,
      "an execution trace has no times and no kernels: only the order and the sizes of the "
      "collectives are here; import the profile of the same rank beside it");
  return part;
}

void match_calls(std::span<RankPart> ranks, const Trace& trace, Findings& findings) {
  const std::set<uint32_t> numbered = numbered_communicators(ranks, trace.communicators.size());
  std::map<uint32_t, int64_t> lowest;
  for (const RankPart& part : ranks) {
    const std::vector<Call>& calls = part.trace.ops.calls;
    for (size_t i = 0; i < calls.size(); ++i) {
      if (is_p2p(calls[i]) || !numbered.contains(calls[i].communicator)) continue;
      const auto [at, added] = lowest.emplace(calls[i].communicator, part.recorded_sequence[i]);
      if (!added) at->second = std::min(at->second, part.recorded_sequence[i]);
    }
  }
  uint64_t unsized = 0;
  std::string first_unsized;
  for (RankPart& part : ranks) {
    std::map<std::tuple<uint32_t, int, int32_t>, int64_t> next;
    std::vector<Call>& calls = part.trace.ops.calls;
    for (const uint32_t i : launch_order(part)) {
      Call& c = calls[i];
      if (is_p2p(c)) {
        c.sequence = next[{c.communicator, static_cast<int>(c.collective), c.peer}]++;
      } else if (numbered.contains(c.communicator)) {
        c.sequence = part.recorded_sequence[i] - lowest[c.communicator];
      } else {
        c.sequence = next[{c.communicator, -1, -1}]++;
      }
    }
    for (size_t i = 0; i < part.sized.size(); ++i) {
      if (part.sized[i]) continue;
      if (unsized++ == 0) first_unsized = fmt::format("rank {}", part.trace.rank);
    }
  }
  if (unsized > 0) {
    findings.add(
        "collective-without-size", Severity::kWarning, first_unsized,
        "import the execution trace of the same rank beside it, which has the sizes; an Nsight "
        "export has them in NCCL's payloads, a table in a column of bytes",
        unsized);
  }
  match_windows(ranks, numbered, trace, findings);
  compare_ranks(ranks, trace, findings);
}

}  // namespace rehearse::traces
