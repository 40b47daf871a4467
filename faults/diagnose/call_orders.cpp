// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/call_orders.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_map>

namespace rehearse::faults {
namespace {

constexpr int kNotIssued = -1;

struct Issued {
  size_t purpose = 0;    // number of what its group is for
  int64_t sequence = 0;  // in the group
  bool p2p = false;      // its order is its own affair
};

struct IssuedCalls {
  uint32_t rank = 0;
  bool whole = false;                                // from the first call on
  std::vector<Issued> calls;                         // as they were put into queues
  std::vector<std::unordered_map<int64_t, int>> at;  // place in `calls`, by purpose and sequence
  std::vector<std::set<uint32_t>> members;           // by purpose

  [[nodiscard]] int place(const Issued& call) const {
    if (call.purpose >= at.size()) return kNotIssued;
    const auto found = at[call.purpose].find(call.sequence);
    return found == at[call.purpose].end() ? kNotIssued : found->second;
  }
  [[nodiscard]] bool with(uint32_t peer, size_t purpose) const {
    return purpose < members.size() && members[purpose].count(peer) > 0;
  }
};

IssuedCalls issued_by(const pb::FlightRecorder& recorder, std::map<std::string, size_t>& purposes) {
  IssuedCalls own;
  own.rank = recorder.rank();
  own.whole = recorder.entries_total() <= static_cast<uint64_t>(recorder.entries_size());
  std::map<std::string, size_t> purpose_of;  // by name of the group
  for (const pb::FlightGroup& group : recorder.groups()) {
    const std::string& what = group.description().empty() ? group.name() : group.description();
    const size_t purpose = purposes.emplace(what, purposes.size()).first->second;
    purpose_of[group.name()] = purpose;
    if (own.members.size() <= purpose) own.members.resize(purpose + 1);
    own.members[purpose].insert(group.ranks().begin(), group.ranks().end());
  }
  std::vector<const pb::FlightEntry*> entries;
  for (const pb::FlightEntry& entry : recorder.entries()) entries.push_back(&entry);
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto* a, const auto* b) { return a->record_id() < b->record_id(); });
  own.at.resize(own.members.size());
  for (const pb::FlightEntry* entry : entries) {
    const auto purpose = purpose_of.find(entry->group_name());
    if (purpose == purpose_of.end()) continue;
    const Issued call{purpose->second, entry->collective_seq(), entry->p2p()};
    if (!call.p2p) own.at[call.purpose][call.sequence] = static_cast<int>(own.calls.size());
    own.calls.push_back(call);
  }
  return own;
}

bool neighbours_of_two_groups(const Issued& a, const Issued& b) {
  return !a.p2p && !b.p2p && a.purpose != b.purpose;
}

// Whether most peers that recorded both calls issued the second before the first.
bool most_reverse(const IssuedCalls& own, const Issued& first, const Issued& second,
                  const std::vector<IssuedCalls>& all) {
  size_t reverse = 0, same = 0;
  for (const IssuedCalls& peer : all) {
    const int a = peer.place(first), b = peer.place(second);
    if (a == kNotIssued || b == kNotIssued || peer.rank == own.rank) continue;
    if (!own.with(peer.rank, first.purpose) && !own.with(peer.rank, second.purpose)) continue;
    ++(b < a ? reverse : same);
  }
  return reverse > same;
}

CallOrder order_of(const IssuedCalls& own, const std::vector<IssuedCalls>& all) {
  CallOrder out{.rank = own.rank, .other = false, .pair = std::nullopt};
  for (size_t i = 0; i + 1 < own.calls.size(); ++i) {
    const Issued &a = own.calls[i], &b = own.calls[i + 1];
    if (!neighbours_of_two_groups(a, b) || !most_reverse(own, a, b, all)) continue;
    out.other = true;
    if (!own.whole) return out;
    std::vector<Issued> usual(own.calls.begin(), own.calls.begin() + static_cast<long>(i));
    usual.push_back(b);
    int64_t pair = 0;
    for (size_t k = 0; k + 1 < usual.size(); ++k) {
      pair += neighbours_of_two_groups(usual[k], usual[k + 1]) ? 1 : 0;
    }
    out.pair = pair;
    return out;
  }
  return out;
}

}  // namespace

std::vector<CallOrder> call_orders(const pb::Outcome& run) {
  std::map<std::string, size_t> purposes;
  std::vector<IssuedCalls> all;
  for (const pb::FlightRecorder& recorder : run.flight_records()) {
    all.push_back(issued_by(recorder, purposes));
  }
  std::vector<CallOrder> out;
  out.reserve(all.size());
  for (const IssuedCalls& own : all) out.push_back(order_of(own, all));
  return out;
}

std::optional<CallOrder> only_other_order(const pb::Outcome& run) {
  std::optional<CallOrder> found;
  for (const CallOrder& row : call_orders(run)) {
    if (!row.other) continue;
    if (found) return std::nullopt;
    found = row;
  }
  return found;
}

}  // namespace rehearse::faults
