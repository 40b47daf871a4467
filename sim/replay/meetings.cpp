// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/meetings.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace rehearse::sim {
namespace {

using traces::Call;
using traces::Collective;

uint32_t present_members(const traces::Program& program, const traces::Communicator& communicator) {
  uint32_t n = 0;
  for (traces::RankId rank : communicator.members) n += program.find(rank) >= 0 ? 1 : 0;
  return n;
}

// Position of a rank among a communicator's members; -1: not a member.
int member_index(const traces::Communicator& communicator, traces::RankId rank) {
  const auto at = std::find(communicator.members.begin(), communicator.members.end(), rank);
  return at == communicator.members.end() ? -1
                                          : static_cast<int>(at - communicator.members.begin());
}

}  // namespace

bool agree(const Call& a, const Call& b) {
  if (traces::is_point_to_point(a.collective))
    return a.bytes_in == b.bytes_out || a.bytes_out == b.bytes_in;
  if (a.collective != b.collective) return false;
  switch (a.collective) {
    case Collective::kAllReduce:
    case Collective::kAllGather:
    case Collective::kReduceScatter:
      return a.bytes_in == b.bytes_in && a.bytes_out == b.bytes_out;
    case Collective::kBroadcast:
    case Collective::kReduce:
      return a.peer == b.peer &&
             std::max(a.bytes_in, a.bytes_out) == std::max(b.bytes_in, b.bytes_out);
    default:
      return true;  // sizes may differ by rank
  }
}

void arrange_meetings(const traces::Program& program, Replayed& out) {
  const size_t communicators = program.communicators.size();
  // Sequence numbers come from outside: they name meetings, they do not size tables.
  std::vector<std::vector<int64_t>> sequences(communicators);
  for (const auto& rank : program.ranks) {
    for (const Call& call : rank.calls) {
      if (traces::is_point_to_point(call.collective)) continue;
      std::vector<int64_t>& known = sequences[call.communicator];
      if (known.empty() || known.back() < call.sequence) {
        known.push_back(call.sequence);
      } else if (!std::binary_search(known.begin(), known.end(), call.sequence)) {
        known.insert(std::lower_bound(known.begin(), known.end(), call.sequence), call.sequence);
      }
    }
  }
  std::vector<uint32_t> first(communicators, 0);
  for (size_t c = 0; c < communicators; ++c) {
    first[c] = static_cast<uint32_t>(out.meetings.size());
    const uint32_t present = present_members(program, program.communicators[c]);
    for (int64_t sequence : sequences[c]) {
      Meeting meeting;
      meeting.communicator = static_cast<uint32_t>(c);
      meeting.sequence = sequence;
      meeting.expected = present;
      out.meetings.push_back(meeting);
    }
  }
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, int64_t>, uint32_t> pairs;
  out.meeting_of.resize(program.ranks.size());
  for (size_t r = 0; r < program.ranks.size(); ++r) {
    const traces::RankProgram& rank = program.ranks[r];
    for (const Call& call : rank.calls) {
      const traces::Communicator& communicator = program.communicators[call.communicator];
      if (!traces::is_point_to_point(call.collective)) {
        const std::vector<int64_t>& known = sequences[call.communicator];
        const auto at = std::lower_bound(known.begin(), known.end(), call.sequence);
        out.meeting_of[r].push_back(first[call.communicator] +
                                    static_cast<uint32_t>(at - known.begin()));
        continue;
      }
      const auto self = static_cast<uint32_t>(std::max(0, member_index(communicator, rank.rank)));
      const auto peer = static_cast<uint32_t>(std::max(0, call.peer));
      const bool send = call.collective == Collective::kSend;
      const auto key =
          std::make_tuple(call.communicator, send ? self : peer, send ? peer : self, call.sequence);
      const auto [at, fresh] = pairs.emplace(key, static_cast<uint32_t>(out.meetings.size()));
      if (fresh) {
        Meeting meeting;
        meeting.communicator = call.communicator;
        meeting.sequence = call.sequence;
        const bool both = peer < communicator.members.size() &&
                          program.find(communicator.members[peer]) >= 0 && peer != self;
        meeting.expected = both ? 2 : 1;
        out.meetings.push_back(meeting);
      }
      out.meeting_of[r].push_back(at->second);
    }
  }
}

}  // namespace rehearse::sim
