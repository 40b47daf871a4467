// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "sim/horovod/fusion.hpp"
#include "sim/outcome/expiry.hpp"
#include "sim/outcome/outcome.hpp"
#include "sim/outcome/stuck.hpp"
#include "sim/replay/agreement.hpp"
#include "sim/scenario/environment.hpp"

namespace rehearse::sim {
namespace {

// Calls of the meeting's number in other communicators of its size, whose members are at one, that agree with `call`.
size_t made_elsewhere(const Evidence& evidence, const Meeting& meeting, const traces::Call& call) {
  const auto members = [&](const Meeting& of) {
    return evidence.program.communicators[of.communicator].members.size();
  };
  return static_cast<size_t>(
      std::ranges::count_if(evidence.replayed.meetings, [&](const Meeting& other) {
        return other.communicator != meeting.communicator && other.sequence == meeting.sequence &&
               other.arrived > 0 && !other.mismatch && !other.corrupt &&
               members(other) == members(meeting) && agree(other.call, call);
      }));
}

std::string describe(const traces::Call& call) {
  return fmt::format("{} of {} bytes of {}", name_of(call.collective),
                     std::max(call.bytes_in, call.bytes_out), name_of(call.dtype));
}

// Do all that came make as many calls on the communicator? If not, one has left one out.
bool in_step(const Evidence& evidence, uint32_t id) {
  const Replayed& replayed = evidence.replayed;
  std::set<std::ptrdiff_t> counts;
  for (uint32_t i = replayed.calls_begin[id]; i < replayed.calls_begin[id + 1]; ++i) {
    const auto& calls = evidence.program.ranks[replayed.calls_of[i].rank].calls;
    counts.insert(std::count_if(calls.begin(), calls.end(), [&](const traces::Call& call) {
      return call.communicator == replayed.meetings[id].communicator;
    }));
  }
  return counts.size() < 2;
}

// Do the ranks that came ask PyTorch to compare calls before they make them?
bool asks_detail(const Evidence& evidence, uint32_t id, const pb::Launch& launch) {
  const Replayed& replayed = evidence.replayed;
  std::set<uint32_t> there;
  for (uint32_t i = replayed.calls_begin[id]; i < replayed.calls_begin[id + 1]; ++i) {
    there.insert(evidence.program.ranks[replayed.calls_of[i].rank].rank);
  }
  const auto detail = [](const auto& env) {
    const auto at = env.find("TORCH_DISTRIBUTED_DEBUG");
    return at != env.end() && at->second == "DETAIL";
  };
  if (launch.ranks().empty()) return detail(launch.env());
  // All ranks exchange what they are about to do: one that does not waits in the call itself, and nobody compares.
  return std::all_of(launch.ranks().begin(), launch.ranks().end(), [&](const auto& rank) {
    return there.count(rank.rank()) == 0 || detail(environment_of(launch, rank));
  });
}

// Does the framework compare what members are about to do? Horovod joins tensors by name: one that
// is left out is missing, not different, and buffers that ranks pack differently hold the same tensors.
bool compared(const Evidence& evidence, uint32_t id, const pb::Launch& launch) {
  if (launch.framework() == pb::HOROVOD) return in_step(evidence, id) && !packs_differently(launch);
  return launch.framework() == pb::PYTORCH && asks_detail(evidence, id, launch);
}

std::string error_text(const pb::Launch& launch, uint32_t rank_a, const traces::Call& a,
                       uint32_t rank_b, const traces::Call& b, int64_t sequence) {
  const auto elements = [](const traces::Call& call) {
    return std::max(call.bytes_in, call.bytes_out) / std::max(1, traces::size_of(call.dtype));
  };
  if (launch.framework() == pb::HOROVOD) {
    if (a.dtype != b.dtype) {
      return fmt::format(
          "Mismatched data types: One rank had type {}, but another rank had type {}.",
          name_of(a.dtype), name_of(b.dtype));
    }
    return fmt::format(
        "Mismatched {} tensor shapes: One rank sent a tensor of shape [{}], but another rank sent "
        "a "
        "tensor of shape [{}].",
        op_type_of(name_of(a.collective)), elements(a), elements(b));
  }
  const auto print = [&](const traces::Call& call) {
    return fmt::format(
        "CollectiveFingerPrint(SequenceNumber={}, OpType={}, TensorShape=[{}], TensorDtypes={})",
        sequence, op_type_of(name_of(call.collective)), elements(call), name_of(call.dtype));
  };
  return fmt::format(
      "Detected mismatch between collectives on ranks. Rank {} is running collective: {}, but Rank "
      "{} is running collective: {}.",
      rank_a, print(a), rank_b, print(b));
}

}  // namespace

std::vector<std::vector<uint32_t>> parties(const Evidence& evidence, uint32_t id) {
  const Replayed& replayed = evidence.replayed;
  std::vector<std::vector<uint32_t>> out;
  const auto call_of = [&](uint32_t i) -> const traces::Call& {
    const MeetingCall& who = replayed.calls_of[i];
    return evidence.program.ranks[who.rank].calls[who.call];
  };
  for (uint32_t i = replayed.calls_begin[id]; i < replayed.calls_begin[id + 1]; ++i) {
    const MeetingCall& who = replayed.calls_of[i];
    if (replayed.arrival[who.rank][who.call] < 0) continue;
    const auto same = std::find_if(out.begin(), out.end(), [&](const auto& party) {
      return agree(call_of(party.front()), call_of(i));
    });
    if (same == out.end()) {
      out.push_back({i});
    } else {
      same->push_back(i);
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  if (out.size() < 2 || out[0].size() > out[1].size()) return out;
  const auto tied = std::find_if(
      out.begin(), out.end(), [&](const auto& party) { return party.size() < out.front().size(); });
  std::vector<size_t> elsewhere;
  for (auto at = out.begin(); at != tied; ++at) {
    elsewhere.push_back(made_elsewhere(evidence, replayed.meetings[id], call_of(at->front())));
  }
  const auto right = std::ranges::max_element(elsewhere) - elsewhere.begin();
  std::rotate(out.begin(), out.begin() + right, out.begin() + right + 1);
  return out;
}

void fill_disagreement(const Evidence& evidence, const pb::Launch& launch, pb::Outcome& out) {
  const Replayed& replayed = evidence.replayed;
  const bool completed = out.verdict() == pb::COMPLETED;
  uint64_t found = 0;
  std::string first;
  std::map<uint32_t, std::string> wrong;  // by rank
  for (uint32_t id = 0; id < replayed.meetings.size(); ++id) {
    const Meeting& meeting = replayed.meetings[id];
    if (!meeting.corrupt && !meeting.mismatch) continue;
    const auto groups = parties(evidence, id);
    if (groups.size() < 2) continue;
    const auto call_of = [&](uint32_t i) -> const traces::Call& {
      const MeetingCall& who = replayed.calls_of[i];
      return evidence.program.ranks[who.rank].calls[who.call];
    };
    const auto rank_of = [&](uint32_t i) {
      return evidence.program.ranks[replayed.calls_of[i].rank].rank;
    };
    const uint32_t right = groups[0].front(), other = groups[1].front();
    const std::string& communicator = evidence.program.communicators[meeting.communicator].id;
    if (found++ == 0) {
      first = fmt::format("call {} on {}: rank {} comes with {}, rank {} with {}", meeting.sequence,
                          communicator, rank_of(right), describe(call_of(right)), rank_of(other),
                          describe(call_of(other)));
      if (compared(evidence, id, launch)) {
        out.set_verdict(pb::CRASH);
        pb::ErrorText& error = *out.add_error_text();
        error.set_rank(rank_of(other));
        error.set_text(error_text(launch, rank_of(right), call_of(right), rank_of(other),
                                  call_of(other), meeting.sequence));
      }
    }
    for (size_t party = 1; party < groups.size(); ++party) {
      for (uint32_t i : groups[party]) {
        wrong.emplace(rank_of(i), fmt::format("comes to call {} on {} with {}; most others with {}",
                                              meeting.sequence, communicator, describe(call_of(i)),
                                              describe(call_of(right))));
      }
    }
  }
  if (found == 0) return;
  pb::OutcomeFinding& finding = *out.add_findings();
  finding.set_id("members-disagree");
  finding.set_severity(name_of(Severity::kError));
  finding.set_count(found);
  finding.set_first(first);
  finding.set_advice(
      "make all ranks call the same collectives in the same order with the same types");
  if (!completed) return;  // a hang names its culprits itself
  if (out.verdict() == pb::COMPLETED) out.set_verdict(pb::WRONG_SEMANTICS);
  for (const auto& [rank, why] : wrong) {
    pb::Culprit& culprit = *out.add_culprits();
    culprit.set_kind("rank");
    culprit.set_rank(rank);
    culprit.set_why(why);
  }
}

}  // namespace rehearse::sim
