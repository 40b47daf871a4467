// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/meetings.hpp"

#include <algorithm>
#include <tuple>

#include "sim/replay/agreement.hpp"

namespace rehearse::sim {
namespace {

using traces::Collective;

uint32_t present_members(const traces::Program& program, const traces::Communicator& communicator) {
  uint32_t n = 0;
  for (traces::RankId rank : communicator.members) n += program.find(rank) >= 0 ? 1 : 0;
  return n;
}

// A send or recv, by what it meets with.
struct Pair {
  uint32_t communicator, sender, receiver;
  int64_t sequence;
  uint32_t rank, call;
  [[nodiscard]] auto key() const { return std::tie(communicator, sender, receiver, sequence); }
};

// How ranks number their calls on a communicator. A rank counts without a gap, whatever it skips: a number that is missing
// between others is that of a call that was made and not recorded.
struct Numbering {
  bool gaps = false;
  traces::RankId rank = 0;  // whose calls are added
  int64_t low = 0, high = 0;
  uint64_t calls = 0;

  void add(traces::RankId by, int64_t sequence) {
    if (by != rank || calls == 0) {
      end_rank();
      *this = {gaps, by, sequence, sequence, 0};
    }
    low = std::min(low, sequence);
    high = std::max(high, sequence);
    ++calls;
  }
  // All calls of a rank have been added.
  void end_rank() {
    gaps |= calls > 0 && static_cast<uint64_t>(high) - static_cast<uint64_t>(low) >= calls;
  }
};

class Arranger {
 public:
  Arranger(const traces::Program& program, Replayed& out) : program_(program), out_(out) {}

  void arrange() {
    out_.meeting_of.resize(program_.ranks.size());
    for (size_t r = 0; r < program_.ranks.size(); ++r) {
      out_.meeting_of[r].assign(program_.ranks[r].calls.size(), UINT32_MAX);
    }
    collectives();
    pairs();
    list_calls();
  }

 private:
  // Sequence numbers come from outside: they name meetings, they do not size tables.
  void collectives() {
    std::vector<std::vector<int64_t>> sequences(program_.communicators.size());
    std::vector<Numbering> numbering(program_.communicators.size());
    for (const auto& rank : program_.ranks) {
      for (const traces::Call& call : rank.calls) {
        if (traces::is_point_to_point(call.collective)) continue;
        numbering[call.communicator].add(rank.rank, call.sequence);
        std::vector<int64_t>& known = sequences[call.communicator];
        if (known.empty() || known.back() < call.sequence) {
          known.push_back(call.sequence);
        } else if (!std::binary_search(known.begin(), known.end(), call.sequence)) {
          known.insert(std::lower_bound(known.begin(), known.end(), call.sequence), call.sequence);
        }
      }
    }
    size_t meetings = 0;
    for (const auto& known : sequences) meetings += known.size();
    for (Numbering& of : numbering) of.end_rank();
    out_.meetings.reserve(meetings);
    std::vector<uint32_t> first(sequences.size(), 0);
    for (size_t c = 0; c < sequences.size(); ++c) {
      first[c] = static_cast<uint32_t>(out_.meetings.size());
      if (sequences[c].empty()) continue;
      const uint32_t present = present_members(program_, program_.communicators[c]);
      for (int64_t sequence : sequences[c]) {
        add(static_cast<uint32_t>(c), sequence, numbering[c].gaps ? 0 : present);
      }
    }
    for (size_t r = 0; r < program_.ranks.size(); ++r) {
      const auto& calls = program_.ranks[r].calls;
      for (size_t i = 0; i < calls.size(); ++i) {
        if (traces::is_point_to_point(calls[i].collective)) continue;
        const std::vector<int64_t>& known = sequences[calls[i].communicator];
        const auto at = std::lower_bound(known.begin(), known.end(), calls[i].sequence);
        const uint32_t id =
            first[calls[i].communicator] + static_cast<uint32_t>(at - known.begin());
        out_.meeting_of[r][i] = id;
        if (numbering[calls[i].communicator].gaps) ++out_.meetings[id].expected;
      }
    }
  }

  void pairs() {
    std::vector<Pair> all;
    for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
      const traces::RankProgram& rank = program_.ranks[r];
      for (uint32_t i = 0; i < rank.calls.size(); ++i) {
        const traces::Call& call = rank.calls[i];
        if (!traces::is_point_to_point(call.collective)) continue;
        const auto self = static_cast<uint32_t>(
            std::max(0, member_index(program_.communicators[call.communicator], rank.rank)));
        const auto peer = static_cast<uint32_t>(std::max(0, call.peer));
        const bool send = call.collective == Collective::kSend;
        all.push_back(
            {call.communicator, send ? self : peer, send ? peer : self, call.sequence, r, i});
      }
    }
    std::sort(all.begin(), all.end(), [](const Pair& a, const Pair& b) {
      return a.key() != b.key() ? a.key() < b.key()
                                : std::tie(a.rank, a.call) < std::tie(b.rank, b.call);
    });
    const auto begins = [&](size_t i) { return i == 0 || all[i - 1].key() != all[i].key(); };
    size_t meetings = out_.meetings.size();
    for (size_t i = 0; i < all.size(); ++i) meetings += begins(i) ? 1 : 0;
    out_.meetings.reserve(meetings);
    for (size_t i = 0; i < all.size(); ++i) {
      const Pair& pair = all[i];
      if (begins(i)) {
        const auto& members = program_.communicators[pair.communicator].members;
        const auto present = [&](uint32_t member) {
          return member < members.size() && program_.find(members[member]) >= 0;
        };
        const bool both =
            pair.sender != pair.receiver && present(pair.sender) && present(pair.receiver);
        add(pair.communicator, pair.sequence, both ? 2 : 1);
      }
      out_.meeting_of[pair.rank][pair.call] = static_cast<uint32_t>(out_.meetings.size() - 1);
    }
  }

  void add(uint32_t communicator, int64_t sequence, uint32_t expected) {
    Meeting meeting;
    meeting.communicator = communicator;
    meeting.sequence = sequence;
    meeting.expected = expected;
    out_.meetings.push_back(meeting);
  }

  void list_calls() {
    out_.calls_begin.assign(out_.meetings.size() + 1, 0);
    for (const auto& meetings : out_.meeting_of) {
      for (uint32_t id : meetings) ++out_.calls_begin[id + 1];
    }
    for (size_t id = 0; id < out_.meetings.size(); ++id) {
      out_.calls_begin[id + 1] += out_.calls_begin[id];
    }
    out_.calls_of.resize(out_.calls_begin.back());
    std::vector<uint32_t> next(out_.calls_begin.begin(), out_.calls_begin.end() - 1);
    for (uint32_t r = 0; r < out_.meeting_of.size(); ++r) {
      for (uint32_t c = 0; c < out_.meeting_of[r].size(); ++c) {
        out_.calls_of[next[out_.meeting_of[r][c]]++] = {r, c, program_.ranks[r].call_op[c]};
      }
    }
  }

  const traces::Program& program_;
  Replayed& out_;
};

}  // namespace

void note_arrival(Meeting& meeting, const Arrival& arrival, const traces::Call& call,
                  Bytes credit) {
  if (meeting.arrived++ > 0) {
    const Agreement agreed = agreement(meeting.call, call, credit);
    meeting.mismatch |= agreed == Agreement::kNeverEnds;
    meeting.corrupt |= agreed == Agreement::kCorrupts;
  }
  // Members may be noted in any order: ranks run ahead of each other.
  const auto before = [&](Nanos when, uint32_t rank) {
    return arrival.when != when ? arrival.when < when : arrival.rank < rank;
  };
  if (meeting.first_arriver == UINT32_MAX || before(meeting.first_arrival, meeting.first_arriver)) {
    meeting.call = call;
    meeting.first_arrival = arrival.when;
    meeting.first_arriver = arrival.rank;
  }
  if (meeting.last_arriver == UINT32_MAX || arrival.when > meeting.last_arrival ||
      (arrival.when == meeting.last_arrival && arrival.rank < meeting.last_arriver)) {
    meeting.last_arrival = arrival.when;
    meeting.last_arriver = arrival.rank;
    meeting.last_op = arrival.op;
  }
}

std::vector<bool> absent_members(const traces::Program& program, uint32_t communicator) {
  std::vector<bool> out;
  for (traces::RankId rank : program.communicators[communicator].members) {
    out.push_back(program.find(rank) < 0);
  }
  return out;
}

int member_index(const traces::Communicator& communicator, traces::RankId rank) {
  const auto& members = communicator.members;
  auto at = std::lower_bound(members.begin(), members.end(), rank);
  if (at == members.end() || *at != rank) at = std::find(members.begin(), members.end(), rank);
  return at == members.end() ? -1 : static_cast<int>(at - members.begin());
}

void arrange_meetings(const traces::Program& program, Replayed& out) {
  Arranger(program, out).arrange();
}

}  // namespace rehearse::sim
