// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/recorded_waits.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "faults/diagnose/flight_entry.hpp"
#include "sim/outcome/expiry.hpp"

namespace rehearse::faults {
namespace {

using Waits = google::protobuf::RepeatedPtrField<pb::Wait>;

bool runs(const pb::FlightEntry& entry) {
  return entry.state() == "started" || entry.has_started_ns();
}

// The peer of "nccl:send 0->3" or "nccl:recv 0<-3": its place in the group.
std::optional<int> peer_in(const std::string& name) {
  size_t at = name.find("->");
  if (at == name.npos) at = name.find("<-");
  if (at == name.npos) return std::nullopt;
  int peer = 0;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + at + 2, end, peer);
  if (error != std::errc() || peer < 0) return std::nullopt;
  return peer;
}

// A call that a watchdog gave up, as it names it: of groups it does not speak.
struct GivenUp {
  int64_t sequence = 0;
  std::string kind;  // "ALLREDUCE"
  int64_t elements = 0;

  bool operator==(const GivenUp&) const = default;
};

// What stands between `before` and the next comma or bracket; empty: it is not there.
std::string_view between(std::string_view text, std::string_view before) {
  const size_t at = text.find(before);
  if (at == text.npos) return {};
  const std::string_view rest = text.substr(at + before.size());
  return rest.substr(0, rest.find_first_of(",)"));
}

// "... WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1024, ..." as PyTorch prints it.
std::optional<GivenUp> given_up_in(std::string_view text) {
  const auto number = [](std::string_view digits, int64_t& out) {
    return std::from_chars(digits.data(), digits.data() + digits.size(), out).ec == std::errc();
  };
  GivenUp out;
  out.kind = between(text, ", OpType=");
  if (!number(between(text, "WorkNCCL(SeqNum="), out.sequence) ||
      !number(between(text, ", NumelIn="), out.elements)) {
    return std::nullopt;
  }
  return out;
}

// What ranks printed, whether they left a dump or not.
std::map<uint32_t, GivenUp> given_up(const pb::Outcome& run) {
  std::map<uint32_t, GivenUp> out;
  const auto add = [&](const auto& rows) {
    for (const auto& row : rows) {
      if (auto call = given_up_in(row.text())) out.try_emplace(row.rank(), std::move(*call));
    }
  };
  add(run.timers());
  add(run.error_text());
  return out;
}

// How far the members of a group have come with its collectives.
struct OfGroup {
  std::map<uint32_t, int64_t> enqueued, entered;  // last sequence by rank
};

void raise(std::map<uint32_t, int64_t>& of, uint32_t rank, int64_t sequence) {
  int64_t& last = of.try_emplace(rank, -1).first->second;
  last = std::max(last, sequence);
}

class Dumps {
 public:
  explicit Dumps(const pb::Outcome& run) : given_up_(given_up(run)) {
    for (const pb::FlightRecorder& recorder : run.flight_records()) {
      if (recorder.has_rank()) read(recorder);
    }
  }

  void add_waits(const pb::FlightRecorder& recorder, Waits& out) const {
    for (const pb::FlightEntry& entry : recorder.entries()) {
      if (!is_pending(entry) || (timed_ && !runs(entry))) continue;
      add_wait(recorder, entry, out);
      if (!timed_) return;
    }
  }

 private:
  using Way = std::pair<uint32_t, uint32_t>;  // from, to

  void read(const pb::FlightRecorder& recorder) {
    const uint32_t rank = recorder.rank();
    for (const pb::FlightGroup& group : recorder.groups()) {
      OfGroup& own = groups_[group.name()];
      raise(own.enqueued, rank, group.last_enqueued());
      raise(own.entered, rank, std::max(group.last_started(), group.last_completed()));
    }
    for (const pb::FlightEntry& entry : recorder.entries()) {
      timed_ = timed_ || (is_pending(entry) && runs(entry));
      if (entry.p2p()) {
        const auto peer = peer_of(recorder, entry);
        if (peer && is_pending(entry) && runs(entry)) {
          (entry.collective() == "send" ? sending_ : receiving_).insert({rank, *peer});
        }
        continue;
      }
      OfGroup& own = groups_[entry.group_name()];
      raise(own.enqueued, rank, entry.collective_seq());
      if (runs(entry) || !is_pending(entry)) raise(own.entered, rank, entry.collective_seq());
    }
  }

  static const pb::FlightGroup* group_of(const pb::FlightRecorder& recorder,
                                         const pb::FlightEntry& entry) {
    for (const pb::FlightGroup& group : recorder.groups()) {
      if (group.name() == entry.group_name()) return &group;
    }
    return nullptr;
  }

  static std::optional<uint32_t> peer_of(const pb::FlightRecorder& recorder,
                                         const pb::FlightEntry& entry) {
    const pb::FlightGroup* group = group_of(recorder, entry);
    const auto peer = peer_in(entry.profiling_name());
    if (group == nullptr || !peer || *peer >= group->ranks_size()) return std::nullopt;
    return group->ranks(*peer);
  }

  void add_wait(const pb::FlightRecorder& recorder, const pb::FlightEntry& entry,
                Waits& out) const {
    pb::Wait& wait = *out.Add();
    wait.set_rank(recorder.rank());
    wait.set_communicator(entry.group_name());
    wait.set_operation(entry.collective());
    wait.set_sequence(entry.p2p() ? entry.p2p_seq() : entry.collective_seq());
    wait.set_since_ns(entry.started_ns());
    wait.set_elements_in(elements_of(entry.inputs()));
    wait.set_elements_out(elements_of(entry.outputs()));
    if (entry.p2p()) {
      const auto peer = peer_of(recorder, entry);
      const auto& opposite = entry.collective() == "send" ? receiving_ : sending_;
      if (peer && !opposite.contains(Way{*peer, recorder.rank()})) wait.add_for_ranks(*peer);
      return;
    }
    const pb::FlightGroup* group = group_of(recorder, entry);
    const auto found = groups_.find(entry.group_name());
    if (group == nullptr || found == groups_.end()) return;
    const auto& came = timed_ ? found->second.entered : found->second.enqueued;
    for (const uint32_t rank : group->ranks()) {
      const auto member = came.find(rank);
      const bool there =
          member == came.end() ? gave_up(rank, entry) : member->second >= entry.collective_seq();
      if (rank != recorder.rank() && !there) wait.add_for_ranks(rank);
    }
  }

  [[nodiscard]] bool gave_up(uint32_t rank, const pb::FlightEntry& entry) const {
    const auto call = given_up_.find(rank);
    return call != given_up_.end() &&
           call->second == GivenUp{entry.collective_seq(), sim::op_type_of(entry.collective()),
                                   elements_of(entry.inputs())};
  }

  std::map<uint32_t, GivenUp> given_up_;  // by rank
  std::map<std::string, OfGroup> groups_;
  std::set<Way> sending_, receiving_;  // that run and have not ended
  bool timed_ = false;                 // some dump tells that a call runs
};

Waits seen_waits(const pb::Outcome& run) {
  std::set<uint32_t> waiting;
  std::map<std::pair<std::string, int64_t>, std::set<uint32_t>> in_call;
  for (const pb::Wait& wait : run.waits()) {
    waiting.insert(wait.rank());
    in_call[{wait.communicator(), wait.sequence()}].insert(wait.rank());
  }
  const auto printed = given_up(run);
  for (const auto& [rank, call] : printed) waiting.insert(rank);
  const auto of_all = [&](const std::string& communicator) {
    return std::any_of(run.communicators().begin(), run.communicators().end(),
                       [&](const pb::CommunicatorUse& use) {
                         return use.id() == communicator && use.ranks() == run.ranks();
                       });
  };
  Waits out = run.waits();
  for (pb::Wait& wait : out) {
    wait.clear_for_ranks();
    // Before there are communicators a rank waits in a state of its start, for whom nobody can tell.
    if (wait.communicator().empty()) continue;
    std::set<uint32_t> there =
        of_all(wait.communicator()) ? in_call[{wait.communicator(), wait.sequence()}] : waiting;
    for (const auto& [rank, call] : printed) {
      // PyTorch counts from 1.
      if (call ==
          GivenUp{wait.sequence() + 1, sim::op_type_of(wait.operation()), wait.elements_in()})
        there.insert(rank);
    }
    for (uint32_t rank = 0; rank < run.ranks(); ++rank) {
      if (!there.contains(rank)) wait.add_for_ranks(rank);
    }
  }
  return out;
}

}  // namespace

Waits recorded_waits(const pb::Outcome& run) {
  if (run.flight_records().empty()) return seen_waits(run);
  Waits out;
  const Dumps dumps(run);
  for (const pb::FlightRecorder& recorder : run.flight_records()) {
    if (recorder.has_rank()) dumps.add_waits(recorder, out);
  }
  return out;
}

}  // namespace rehearse::faults
