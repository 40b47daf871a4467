// SPDX-License-Identifier: Apache-2.0
#include "traces/inspect/call_matching.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "traces/program/split.hpp"

namespace rehearse::traces {
namespace {

// The size that all ranks of a collective must agree on; 0 where they need not (or it was not
// recorded).
Bytes comparable_bytes(const Call& call) {
  switch (call.collective) {
    case Collective::kAllReduce:
    case Collective::kReduceScatter:
      return call.bytes_in;
    case Collective::kAllGather:
      return call.bytes_out;
    case Collective::kBroadcast:
    case Collective::kReduce:
      return std::max(call.bytes_in, call.bytes_out);
    default:
      return 0;
  }
}

uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

size_t CallMatching::Hash::operator()(const Key& key) const {
  return mixed(mixed(mixed(key.where) ^ key.pair) ^ static_cast<uint64_t>(key.sequence));
}

CallMatching::CallMatching(std::span<const Communicator> communicators,
                           std::span<const RankId> recorded)
    : communicators_(communicators),
      recorded_(recorded.begin(), recorded.end()),
      members_(communicators.size()) {
  for (size_t i = 0; i < communicators.size(); ++i) {
    Members& members = members_[i];
    members.sorted = communicators[i].members;
    std::sort(members.sorted.begin(), members.sorted.end());
    members.sorted.erase(std::unique(members.sorted.begin(), members.sorted.end()),
                         members.sorted.end());
    for (const RankId rank : members.sorted) {
      if (!is_recorded(rank)) continue;
      ++members.recorded;
      members.recorded_sum += rank;
    }
  }
}

bool CallMatching::is_recorded(RankId rank) const {
  return std::binary_search(recorded_.begin(), recorded_.end(), rank);
}

void CallMatching::add(const RankTrace& rank, Interval wanted) {
  if (rank.ops.calls.empty()) return;
  rank_ = rank.rank;
  const Operations& ops = rank.ops;
  const auto is_stream = [&](size_t op) {
    return rank.lanes[ops.lane[op]].kind == LaneKind::kStream;
  };
  on_stream_.assign(communicators_.size(), 0);
  for (size_t i = 0; i < ops.size(); ++i) {
    const Call* call = ops.call(i);
    if (call != nullptr && is_stream(i)) on_stream_[call->communicator] = 1;
  }
  for (size_t i = 0; i < ops.size(); ++i) {
    const Call* call = ops.call(i);
    if (call == nullptr || (on_stream_[call->communicator] != 0 && !is_stream(i))) continue;
    const Interval span{ops.start[i], ops.start[i] + ops.duration[i]};
    const bool counts = span.start >= wanted.start && span.start < wanted.end;
    if (is_point_to_point(call->collective)) {
      add_pair(*call, counts);
    } else {
      add_collective(*call, span, counts);
    }
  }
}

void CallMatching::add_collective(const Call& call, Interval span, bool wanted) {
  const std::vector<RankId>& members = members_[call.communicator].sorted;
  if (!members.empty() && !std::binary_search(members.begin(), members.end(), rank_)) {
    findings_.add(
        "call-of-non-member", Severity::kWarning,
        fmt::format("rank {} on communicator {}", rank_, communicators_[call.communicator].id),
        "the members of the communicator were recorded wrongly; import with all ranks");
  }
  const auto [place, is_new] = row_of_.try_emplace(Key{call.communicator, 0, call.sequence},
                                                   static_cast<uint32_t>(rows_.size()));
  const Bytes compared = comparable_bytes(call);
  if (is_new) {
    CallRow row;
    row.facts = {call.communicator, call.sequence, call.collective, 0,        0,
                 span.start,        span.start,    rank_,           span.end, span.end};
    row.next_start = row.origin = span.start;
    rows_.push_back(row);
  }
  CallRow& row = rows_[place->second];
  MatchedCollective& facts = row.facts;
  row.wanted |= wanted;
  if (!is_new && row.seen_last == rank_) {
    row.repeated = true;
    return;
  }
  row.seen_last = rank_;
  if (call.collective != facts.collective) {
    if (!row.kind_differs) row.odd_rank = rank_;
    row.kind_differs = true;
  } else if (compared > 0 && row.compared > 0 && compared != row.compared) {
    if (!row.bytes_differ && !row.kind_differs) row.odd_rank = rank_;
    row.bytes_differ = true;
  }
  if (row.compared == 0) row.compared = compared;
  facts.bytes = std::max({facts.bytes, call.bytes_in, call.bytes_out});
  if (!is_new) {
    if (span.start > facts.last_start) {
      row.next_start = facts.last_start;
      facts.last_start = span.start;
      facts.last_arriver = rank_;
    } else {
      // With two ranks so far the last but one is the first of them.
      row.next_start = facts.ranks == 1 ? span.start : std::max(row.next_start, span.start);
    }
  }
  ++facts.ranks;
  row.after_first += span.start - row.origin;
  row.rank_sum += rank_;
  facts.first_start = std::min(facts.first_start, span.start);
  facts.first_end = std::min(facts.first_end, span.end);
  facts.last_end = std::max(facts.last_end, span.end);
}

void CallMatching::add_pair(const Call& call, bool wanted) {
  const std::vector<RankId>& members = communicators_[call.communicator].members;
  const auto peer = static_cast<size_t>(call.peer);
  if (call.peer < 0 || (!members.empty() && peer >= members.size())) {
    findings_.add(
        "peer-unknown", Severity::kWarning,
        fmt::format("rank {} on communicator {}", rank_, communicators_[call.communicator].id),
        "sends and receives without a peer cannot be matched");
    return;
  }
  const RankId other = members.empty() ? static_cast<RankId>(peer) : members[peer];
  const bool sends = call.collective == Collective::kSend;
  const RankId from = sends ? rank_ : other, to = sends ? other : rank_;
  const auto [place, is_new] =
      pair_of_.try_emplace(Key{call.communicator, (uint64_t{from} << 32) | to, call.sequence},
                           static_cast<uint32_t>(pairs_.size()));
  if (is_new) pairs_.push_back({call.communicator, from, to, call.sequence, 0, 0, 0, 0, false});
  PairRow& row = pairs_[place->second];
  row.wanted |= wanted;
  ++(sends ? row.sends : row.receives);
  (sends ? row.sent_bytes : row.received_bytes) = std::max(call.bytes_in, call.bytes_out);
}

void CallMatching::judge(const CallRow& row, Inspection& out) const {
  const MatchedCollective& facts = row.facts;
  const Members& members = members_[facts.communicator];
  const auto place = [&] {
    return fmt::format("{} {} on communicator {}", name_of(facts.collective), facts.sequence,
                       communicators_[facts.communicator].id);
  };
  if (!members.sorted.empty() && facts.ranks < members.recorded) {
    const uint64_t missing = members.recorded - facts.ranks;
    out.findings.add(
        "collective-member-missing", Severity::kWarning,
        missing == 1 ? fmt::format("{}: rank {} never called it", place(),
                                   members.recorded_sum - row.rank_sum)
                     : fmt::format("{}: {} of {} recorded ranks never called it", place(), missing,
                                   members.recorded),
        "record all ranks over the same steps; where they were, those ranks took another path");
  }
  if (row.kind_differs) {
    out.findings.add("collective-type-mismatch", Severity::kError,
                     fmt::format("{}: rank {} called another type", place(), row.odd_rank),
                     "ranks ran different code or a rank skipped a collective; such a run hangs");
  }
  if (row.bytes_differ) {
    out.findings.add(
        "collective-bytes-mismatch", Severity::kError,
        fmt::format("{}: rank {} gave another size", place(), row.odd_rank),
        "check shapes and bucket sizes of that rank; such a run hangs or corrupts data");
  }
  if (row.repeated) {
    out.findings.add("collective-sequence-repeated", Severity::kWarning,
                     fmt::format("{}: by one rank", place()),
                     "only the first call counts; sequence numbers were recorded wrongly");
  }
}

void CallMatching::judge(const PairRow& row, Inspection& out) const {
  const auto place = [&] {
    return fmt::format("{} from rank {} to rank {} on communicator {}", row.sequence, row.from,
                       row.to, communicators_[row.communicator].id);
  };
  if (row.sends != row.receives && is_recorded(row.from) && is_recorded(row.to)) {
    out.findings.add("send-receive-unmatched", Severity::kWarning,
                     fmt::format("{} {}", row.sends > row.receives ? "send" : "receive", place()),
                     "record both ranks over the same steps");
  }
  if (row.sends > 0 && row.receives > 0 && row.sent_bytes != row.received_bytes) {
    out.findings.add(
        "send-receive-bytes-mismatch", Severity::kError,
        fmt::format("{}: {} bytes sent, {} received", place(), row.sent_bytes, row.received_bytes),
        "check the shapes on both sides");
  }
}

// Wait and transfer by the last arriver.
void CallMatching::split(CallRow& row) const {
  MatchedCollective& facts = row.facts;
  const size_t members = members_[facts.communicator].sorted.size();
  if (!synchronises(facts.collective) || members == 0 || facts.ranks < members) return;
  facts.wait = static_cast<Nanos>(facts.ranks) * (facts.last_start - row.origin) - row.after_first;
  facts.transfer = std::max<Nanos>(0, facts.last_end - facts.last_start);
}

void CallMatching::finish(Inspection& out) {
  out.communicators.clear();
  for (size_t i = 0; i < communicators_.size(); ++i) {
    const Communicator& c = communicators_[i];
    out.communicators.push_back(
        {c.id, c.description, c.backend, c.members, members_[i].recorded, {}});
  }
  const auto count = [&](uint32_t communicator, Collective type, const CollectiveTotals& one) {
    for (TotalsByType* totals : {&out.communicators[communicator].totals, &out.totals}) {
      CollectiveTotals& row = (*totals)[static_cast<size_t>(type)];
      ++row.collectives;
      row.calls += one.calls;
      row.bytes += one.bytes;
      row.wait += one.wait;
      row.transfer += one.transfer;
    }
  };
  out.findings.merge(findings_);
  std::map<RankId, LastArriver> late;
  for (CallRow& row : rows_) {
    if (!row.wanted) continue;
    ++out.collectives;
    split(row);
    count(row.facts.communicator, row.facts.collective,
          {1, row.facts.ranks, row.facts.bytes, std::max<Nanos>(row.facts.wait, 0),
           std::max<Nanos>(row.facts.transfer, 0)});
    judge(row, out);
    if (out.options.list_collectives) out.matched.push_back(row.facts);
    const Members& members = members_[row.facts.communicator];
    if (row.facts.ranks < 2 || row.facts.ranks < members.recorded) continue;
    LastArriver& last = late[row.facts.last_arriver];
    last.rank = row.facts.last_arriver;
    ++last.times;
    last.after_first += row.facts.last_start - row.facts.first_start;
    last.after_next += row.facts.last_start - row.next_start;
  }
  for (const PairRow& row : pairs_) {
    if (!row.wanted) continue;
    ++out.point_to_point;
    count(row.communicator, Collective::kSend,
          {1, row.sends + row.receives, std::max(row.sent_bytes, row.received_bytes), 0, 0});
    judge(row, out);
  }
  for (const auto& [rank, last] : late) out.late.push_back(last);
  std::stable_sort(
      out.late.begin(), out.late.end(),
      [](const LastArriver& a, const LastArriver& b) { return a.after_next > b.after_next; });
  std::stable_sort(out.matched.begin(), out.matched.end(),
                   [](const MatchedCollective& a, const MatchedCollective& b) {
                     return std::tie(a.first_start, a.communicator, a.sequence) <
                            std::tie(b.first_start, b.communicator, b.sequence);
                   });
}

}  // namespace rehearse::traces
