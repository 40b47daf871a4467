// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/recorders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/text.hpp"
#include "faults/diagnose/flight_entry.hpp"
#include "faults/symptoms/classifier.hpp"
#include "sim/scenario/transforms.hpp"

namespace rehearse::faults {
namespace {

// Which, and how many elements.
using SizedCall = std::pair<std::string, int64_t>;

// What one rank has of one group.
struct Member {
  std::map<int64_t, SizedCall> calls;  // by sequence, all that were recorded
  int64_t enqueued = -1;               // last call
  std::map<int64_t, int64_t> pending;  // sequence: elements of the inputs
  std::map<int64_t, std::string> names;
  std::set<int64_t> started;
};

struct Group {
  std::string name;
  std::vector<uint32_t> ranks;         // by configuration
  std::map<uint32_t, Member> members;  // those with a dump
};

using GroupKey = std::tuple<std::string, std::string, std::vector<uint32_t>>;

std::map<GroupKey, Group> groups_of(std::span<const pb::FlightRecorder> recorders) {
  std::map<GroupKey, Group> out;
  for (const pb::FlightRecorder& recorder : recorders) {
    if (!recorder.has_rank()) continue;
    std::map<std::string, Member*> by_name;
    for (const pb::FlightGroup& row : recorder.groups()) {
      std::vector<uint32_t> ranks(row.ranks().begin(), row.ranks().end());
      std::sort(ranks.begin(), ranks.end());
      if (ranks.size() < 2) continue;
      Group& group = out[{row.name(), row.description(), ranks}];
      group.name = row.description().empty() ? row.name() : row.description() + " " + row.name();
      group.ranks = ranks;
      Member& member = group.members[recorder.rank()];
      member.enqueued = std::max(member.enqueued, row.last_enqueued());
      by_name[row.name()] = &member;
    }
    for (const pb::FlightEntry& entry : recorder.entries()) {
      const auto found = by_name.find(entry.group_name());
      if (found == by_name.end() || entry.p2p() || entry.collective_seq() < 0) continue;
      Member& member = *found->second;
      member.enqueued = std::max(member.enqueued, entry.collective_seq());
      member.calls[entry.collective_seq()] = {entry.collective(), elements_of(entry.inputs())};
      if (!is_pending(entry)) continue;
      member.pending[entry.collective_seq()] = elements_of(entry.inputs());
      member.names[entry.collective_seq()] = entry.collective();
      if (entry.state() == "started") member.started.insert(entry.collective_seq());
    }
  }
  return out;
}

class Votes {
 public:
  void add(uint32_t rank, Divergence how, const std::string& why) {
    Diverging& row = votes_.try_emplace({how, rank}, Diverging{rank, how, 0, why}).first->second;
    ++row.groups;
  }
  // The rarest explanation that holds in a group is weighed by how many groups show it.
  [[nodiscard]] std::vector<Diverging> blamed(const std::set<uint32_t>& waiting) const {
    std::map<uint32_t, Diverging> best;
    for (const auto& [key, row] : votes_) {
      // Who waits elsewhere is held up itself.
      if (row.how == Divergence::kNeverEntered && waiting.count(row.rank)) continue;
      const auto [entry, fresh] = best.try_emplace(row.rank, row);
      if (!fresh && row.groups > entry->second.groups) entry->second = row;
    }
    const bool seen = std::any_of(best.begin(), best.end(), [](const auto& entry) {
      return entry.second.how != Divergence::kNoDump;
    });
    std::vector<Diverging> out;
    for (const auto& [rank, row] : best) {
      // What a rank did not leave says less than what others did.
      if (!seen || row.how != Divergence::kNoDump) out.push_back(row);
    }
    return out;
  }

 private:
  std::map<std::pair<Divergence, uint32_t>, Diverging> votes_;
};

std::map<int64_t, SizedCall> usual_sizes(const Group& group) {
  std::map<int64_t, std::map<SizedCall, size_t>> times;
  for (const auto& [rank, member] : group.members) {
    for (const auto& [sequence, call] : member.calls) ++times[sequence][call];
  }
  std::map<int64_t, SizedCall> out;
  for (const auto& [sequence, calls] : times) {
    out[sequence] = std::max_element(calls.begin(), calls.end(), [](const auto& a, const auto& b) {
                      return a.second < b.second;
                    })->first;
  }
  return out;
}

// How a member differs from its peers whose calls have other sizes from some call on: calls that were left out or made
// once more move all that follow, another size does not.
Divergence how_sizes_differ(const Member& member, const std::map<int64_t, SizedCall>& usual) {
  const auto first = std::find_if(member.calls.begin(), member.calls.end(), [&](const auto& call) {
    return usual.at(call.first) != call.second;
  });
  // Calls from `from` on that are, and that are not, those of its peers so many later.
  const auto moved_by = [&](int64_t later, auto from) {
    size_t same = 0, other = 0;
    for (auto call = from; call != member.calls.end(); ++call) {
      const auto peers = usual.find(call->first + later);
      if (peers == usual.end()) continue;
      ++(peers->second == call->second ? same : other);
    }
    return same > 0 && other == 0;
  };
  if (first == member.calls.end()) return Divergence::kOtherSize;
  if (moved_by(1, first)) return Divergence::kLeftOut;
  // The call that only it made stands before those that were moved.
  return !moved_by(0, std::next(first)) && moved_by(-1, std::next(first)) ? Divergence::kOneMore
                                                                          : Divergence::kOtherSize;
}

const char* in_words(Divergence how) {
  switch (how) {
    case Divergence::kLeftOut:
      return " and goes on with its peers' next ones: it left one out";
    case Divergence::kOneMore:
      return " and goes on with its peers' previous ones: it made one more";
    default:
      return "";
  }
}

void vote_on_entry(const Group& group, Votes& votes) {
  std::vector<uint32_t> pending, never;
  int64_t first = INT64_MAX;
  for (const auto& [rank, member] : group.members) {
    if (member.pending.empty()) continue;
    pending.push_back(rank);
    first = std::min(first, member.pending.begin()->first);
  }
  for (const auto& [rank, member] : group.members) {
    if (member.pending.empty() && member.enqueued < first) never.push_back(rank);
  }
  if (pending.empty()) return;
  const std::string what = fmt::format(
      "{} {} on {}", group.members.at(pending.front()).names.begin()->second, first, group.name);
  if (never.size() > pending.size()) {
    for (const uint32_t rank : pending) {
      votes.add(rank, Divergence::kAhead,
                fmt::format("waits in {}, which {} other ranks never issued", what, never.size()));
    }
    return;
  }
  for (const uint32_t rank : never) {
    votes.add(rank, Divergence::kNeverEntered,
              fmt::format("never issued {}; {} ranks wait in it", what, pending.size()));
  }
  // Peers saw calls end that it did not.
  int64_t most = first;
  for (const uint32_t rank : pending) {
    most = std::max(most, group.members.at(rank).pending.begin()->first);
  }
  for (const uint32_t rank : pending) {
    const int64_t own = group.members.at(rank).pending.begin()->first;
    if (own == first && most > first) {
      votes.add(
          rank, Divergence::kStoppedFirst,
          fmt::format("{} is pending on it while peers have ended it and wait in {}", what, most));
    }
  }
  if (!never.empty() || most > first) return;
  std::vector<uint32_t> idle;
  for (const uint32_t rank : pending) {
    if (!group.members.at(rank).started.count(first)) idle.push_back(rank);
  }
  for (const uint32_t rank : 2 * idle.size() < pending.size() ? idle : std::vector<uint32_t>{}) {
    votes.add(rank, Divergence::kNeverStarted,
              fmt::format("has {} queued, but it never ran there; {} ranks wait in it", what,
                          pending.size() - idle.size()));
  }
  std::map<int64_t, std::vector<uint32_t>> sizes;
  for (const uint32_t rank : pending)
    sizes[group.members.at(rank).pending.begin()->second].push_back(rank);
  const std::string& kind = group.members.at(pending.front()).names.begin()->second;
  if (sizes.size() == 2 && kind != "all_to_all" && pending.size() > 2) {
    const auto& few = sizes.begin()->second.size() < sizes.rbegin()->second.size()
                          ? sizes.begin()->second
                          : sizes.rbegin()->second;
    const auto usual = usual_sizes(group);
    for (const uint32_t rank : few) {
      const Divergence how = how_sizes_differ(group.members.at(rank), usual);
      votes.add(rank, how, fmt::format("comes to {} with another size{}", what, in_words(how)));
    }
  }
  if (group.members.size() < group.ranks.size()) {
    for (const uint32_t rank : group.ranks) {
      if (group.members.count(rank)) continue;
      votes.add(rank, Divergence::kNoDump,
                fmt::format("left no dump; {} ranks wait in {}", pending.size(), what));
    }
  }
}

// Patches that make a rank diverge in that way.
bool makes(const pb::Patch& patch, Divergence how) {
  using sim::Parting;
  switch (how) {
    case Divergence::kNeverEntered:
    case Divergence::kNeverStarted:
      return sim::parts(patch, Parting::kFewer) ||
             (sim::parts(patch, Parting::kEnds) && patch.stop_rank().silent());
    case Divergence::kStoppedFirst:
    case Divergence::kNoDump:
      return sim::parts(patch, Parting::kEnds);
    case Divergence::kLeftOut:
      // Who ends early makes no calls after those that it leaves out.
      return sim::parts(patch, Parting::kFewer) && !patch.has_end_early();
    case Divergence::kAhead:
    case Divergence::kOneMore:
      return sim::parts(patch, Parting::kMore);
    case Divergence::kOtherSize:
      return sim::parts(patch, Parting::kOtherSize);
  }
  return false;
}

// 1 for a fault that does nothing else; a process that stands still shows in all its groups, a call that was left
// out in one.
double score_of(const pb::Fault& fault, const std::vector<Diverging>& blamed) {
  const Diverging& first = blamed.front();
  double score = 0;
  for (const pb::Patch& patch : fault.patch()) {
    if (!makes(patch, first.how)) continue;
    score = 0.6;
    if (first.how == Divergence::kNeverEntered && patch.has_stop_rank() == (first.groups > 1)) {
      score = 0.8;
    }
    if (first.how == Divergence::kNeverStarted && patch.has_stop_rank()) score = 0.8;
    // GPUs fail in the middle of a call.
    if (first.how == Divergence::kStoppedFirst && !patch.stop_rank().text().empty()) {
      score = 0.8;
    }
    if (first.how == Divergence::kAhead || first.how == Divergence::kOtherSize ||
        first.how == Divergence::kLeftOut || first.how == Divergence::kOneMore) {
      score = 0.9;
    }
  }
  // A fault that is known for other symptoms is a guess.
  const auto known = [&](std::string_view symptom) {
    return std::find(fault.symptoms().begin(), fault.symptoms().end(), symptom) !=
           fault.symptoms().end();
  };
  if (!known("D2.1")) score *= known("D1.1") ? 0.95 : 0.7;
  return fault.patch_size() > 1 ? 0.8 * score : score;
}

}  // namespace

std::vector<Diverging> compare_recorders(std::span<const pb::FlightRecorder> recorders) {
  const auto groups = groups_of(recorders);
  Votes votes;
  std::set<uint32_t> waiting;
  for (const auto& [key, group] : groups) {
    for (const auto& [rank, member] : group.members) {
      if (!member.pending.empty()) waiting.insert(rank);
    }
    vote_on_entry(group, votes);
  }
  return votes.blamed(waiting);
}

pb::Diagnosis diagnose_recorders(std::span<const pb::FlightRecorder> recorders,
                                 const FaultCatalogue& catalogue) {
  pb::Diagnosis diagnosis;
  diagnosis.set_schema("rehearse.diagnosis/1");
  size_t pending = 0;
  for (const pb::FlightRecorder& recorder : recorders) {
    pending +=
        std::any_of(recorder.entries().begin(), recorder.entries().end(), is_pending) ? 1 : 0;
  }
  pb::Symptom& symptom = *diagnosis.mutable_symptom();
  symptom.set_id(pending > 0 ? "D2.1" : std::string(kHealthy));
  symptom.set_label(std::string(symptom_label(symptom.id())));
  symptom.add_reasons(fmt::format("{} of {} ranks have calls pending", pending, recorders.size()));
  if (pending == 0) return diagnosis;
  const std::vector<Diverging> blamed = compare_recorders(recorders);
  diagnosis.set_unknown(blamed.empty());
  if (blamed.empty()) return diagnosis;
  std::vector<pb::Cause> causes;
  for (const auto& entry : catalogue.entries()) {
    const double score = score_of(entry->fault, blamed);
    if (score <= 0) continue;
    pb::Cause& cause = causes.emplace_back();
    cause.set_fault(entry->fault.id());
    cause.set_name(entry->fault.name());
    cause.set_use(entry->fault.id());
    cause.set_score(score);
    for (const Diverging& row : blamed) {
      pb::Culprit& culprit = *cause.add_culprits();
      culprit.set_kind("rank");
      culprit.set_rank(row.rank);
      culprit.set_why(row.why);
      cause.add_evidence(fmt::format("rank {} {} (in {} groups)", row.rank, row.why, row.groups));
    }
  }
  std::stable_sort(causes.begin(), causes.end(),
                   [](const pb::Cause& a, const pb::Cause& b) { return a.score() > b.score(); });
  for (pb::Cause& cause : causes) *diagnosis.add_causes() = std::move(cause);
  const std::vector<uint32_t> who = [&] {
    std::vector<uint32_t> out;
    out.reserve(blamed.size());
    for (const Diverging& row : blamed) out.push_back(row.rank);
    return out;
  }();
  diagnosis.add_collect_next(fmt::format(
      "the standard error, a stack trace (py-spy dump) and the kernel log (dmesg, Xid) of rank {}",
      format_ranks(who)));
  return diagnosis;
}

}  // namespace rehearse::faults
