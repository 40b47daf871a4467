// SPDX-License-Identifier: Apache-2.0
// Who is waited for. Arriving late is no guilt: in a pipeline a whole stage comes late because one rank of another stage did.
// So ranks are compared in what they do by themselves, compute and host time of a step (breakdown.cpp), with those that
// make the same calls: the last stage of a pipeline does more than the first, but no more than the last stage of another
// replica. A rank is named when its own work is longer than that of the middle one of its likes (the lower median) by a
// noticeable part of the step, and they wait that much longer than it does. Ranks that take turns are noise or input: over
// several steps none of them stands out.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/outcome/outcome.hpp"

namespace rehearse::sim {
namespace {

constexpr double kNoticeable = 0.05;  // of a step

// What tells roles apart: the calls of a rank one after the other. What a rank sends to whom in an all-to-all is input.
using Role = std::vector<std::tuple<traces::Collective, size_t, Bytes>>;

Role role_of(const traces::Program& program, const traces::RankProgram& rank) {
  Role role;
  role.reserve(rank.calls.size());
  for (const traces::Call& call : rank.calls) {
    const bool uneven = call.collective == traces::Collective::kAllToAll;
    role.emplace_back(call.collective, program.communicators[call.communicator].members.size(),
                      uneven ? 0 : std::max(call.bytes_in, call.bytes_out));
  }
  return role;
}

Nanos own_work(const pb::RankBreakdown& rank) { return rank.compute() + rank.host(); }

template <typename Of>
Nanos middle(const pb::Outcome& outcome, const std::vector<int>& likes, const Of& of) {
  std::vector<Nanos> all;
  all.reserve(likes.size());
  for (const int r : likes) all.push_back(of(outcome.breakdown(r)));
  const auto at = all.begin() + static_cast<std::ptrdiff_t>((all.size() - 1) / 2);
  std::nth_element(all.begin(), at, all.end());
  return *at;
}

}  // namespace

void fill_stragglers(const Evidence& evidence, pb::Outcome& out) {
  std::map<Role, std::vector<int>> roles;  // positions
  for (int r = 0; r < out.breakdown_size(); ++r) {
    roles[role_of(evidence.program, evidence.program.ranks[static_cast<size_t>(r)])].push_back(r);
  }
  std::vector<std::pair<int, std::string>> late;
  for (const auto& [role, likes] : roles) {
    if (likes.size() < 2 || role.empty()) continue;
    const Nanos usual = middle(out, likes, own_work);
    const Nanos waits = middle(out, likes, [](const auto& rank) { return rank.wait(); });
    for (const int r : likes) {
      const pb::RankBreakdown& rank = out.breakdown(r);
      const Nanos longer = std::min(own_work(rank) - usual, waits - rank.wait());
      if (static_cast<double>(longer) < kNoticeable * static_cast<double>(rank.step())) continue;
      late.emplace_back(
          r, fmt::format("works {} of a step, ranks that do the same {}; they wait {} longer",
                         format_duration(own_work(rank)), format_duration(usual),
                         format_duration(waits - rank.wait())));
    }
  }
  std::sort(late.begin(), late.end());
  for (const auto& [r, why] : late) {
    pb::Culprit& culprit = *out.add_culprits();
    culprit.set_kind("rank");
    culprit.set_rank(out.breakdown(r).rank());
    culprit.set_why(why);
  }
}

}  // namespace rehearse::sim
