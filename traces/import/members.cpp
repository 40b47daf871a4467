// SPDX-License-Identifier: Apache-2.0
#include "traces/import/members.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>

#include "traces/import/limits.hpp"

namespace rehearse::traces {
namespace {

struct Known {
  uint32_t size = 0;
  std::map<uint32_t, RankId> at;  // position -> rank
  std::vector<RankId> users;      // all ranks that have it, ascending
};

// Groups that ranks are known to be in, smaller than the job.
using Settled = std::map<RankId, std::vector<std::vector<RankId>>>;

// Groups of a layout (tensor, pipeline, data parallel) cross each other in one rank only.
bool crosses_once(RankId rank, const std::vector<RankId>& members, const Settled& settled) {
  const auto groups = settled.find(rank);
  if (groups == settled.end()) return true;
  return std::all_of(groups->second.begin(), groups->second.end(), [&](const auto& other) {
    return std::count_if(members.begin(), members.end(), [&](RankId r) {
             return std::find(other.begin(), other.end(), r) != other.end();
           }) == 1;
  });
}

// Ranks first + i * stride that agree with every known place, in a layout that tiles the job.
std::optional<std::vector<RankId>> evenly(const Known& known, uint32_t world,
                                          const Settled& settled) {
  const int64_t size = known.size;
  const auto& [position, rank] = *known.at.begin();
  for (int64_t stride = 1; stride * size <= int64_t{world}; ++stride) {
    const int64_t first = int64_t{rank} - int64_t{position} * stride;
    if (first < 0 || world % (stride * size) != 0 || first % (stride * size) >= stride) continue;
    std::vector<RankId> members(known.size);
    for (int64_t i = 0; i < size; ++i) {
      members[static_cast<size_t>(i)] = static_cast<RankId>(first + i * stride);
    }
    const bool agrees = std::all_of(known.at.begin(), known.at.end(), [&](const auto& place) {
      return members[place.first] == place.second && crosses_once(place.second, members, settled);
    });
    if (agrees) return members;
    if (size == 1) break;
  }
  return std::nullopt;
}

std::vector<RankId> members_of(const std::string& id, const Known& known, uint32_t world,
                               const Settled& settled, Findings& findings) {
  if (known.size != 0 && known.size <= world && !known.at.empty()) {
    if (known.at.size() == known.size) {
      std::vector<RankId> members;
      for (const auto& [position, rank] : known.at) members.push_back(rank);
      return members;
    }
    if (known.size == world) {
      std::vector<RankId> everyone(world);
      std::iota(everyone.begin(), everyone.end(), 0u);
      return everyone;
    }
    if (auto members = evenly(known, world, settled)) {
      findings.add("members-assumed", Severity::kWarning,
                   fmt::format("{}: {} of {} members are here", id, known.at.size(), known.size),
                   "the other members of this communicator follow from an even layout of ranks; "
                   "import the other ranks to know them");
      return *members;
    }
  }
  if (known.users.size() > 1) {
    findings.add("members-assumed", Severity::kWarning,
                 fmt::format("{}: taken as the {} ranks that use it", id, known.users.size()),
                 "its creation was not recorded");
    return known.users;
  }
  findings.add("members-unknown", Severity::kWarning, id,
               "nothing tells who is in this communicator; it is taken as all ranks of the job");
  return {};
}

}  // namespace

void complete_members(std::span<RankPart* const> ranks, uint32_t world, Findings& findings) {
  std::map<std::string, Known> table;
  for (const RankPart* part : ranks) {
    for (size_t i = 0; i < part->places.size() && i < part->communicators.size(); ++i) {
      const CommunicatorPlace& place = part->places[i];
      if (!part->communicators[i].members.empty() || place.position == -1) continue;
      Known& known = table[part->communicators[i].id];
      known.users.push_back(part->trace.rank);
      if (place.position < 0 || place.position >= int64_t{place.size}) continue;
      if (known.size != 0 && known.size != place.size) {
        findings.add("communicator-contradiction", Severity::kWarning,
                     fmt::format("{}: {} ranks, elsewhere {}", part->communicators[i].id,
                                 place.size, known.size),
                     "ranks disagree about the size of a communicator; the first is taken");
        continue;
      }
      known.size = place.size;
      const auto [at, added] =
          known.at.emplace(static_cast<uint32_t>(place.position), part->trace.rank);
      if (!added && at->second != part->trace.rank) {
        findings.add(
            "communicator-contradiction", Severity::kWarning,
            fmt::format("{}: ranks {} and {} say that they are number {}",
                        part->communicators[i].id, at->second, part->trace.rank, place.position),
            "the files may be of different jobs");
      }
    }
  }
  std::map<std::string, std::vector<RankId>> members;
  // Larger groups first: they leave fewer choices to the smaller ones.
  std::vector<std::pair<uint32_t, std::string>> order;
  order.reserve(table.size());
  for (const auto& [id, known] : table) order.emplace_back(known.size, id);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  Settled settled;
  uint64_t held = 0;
  for (const auto& [size, id] : order) {
    const Known& known = table[id];
    if (held + std::min(size, world) > kMostMembers) continue;  // the merge refuses what is beyond
    members[id] = members_of(id, known, world, settled, findings);
    held += members[id].size();
    if (size == 0 || size >= world) continue;
    for (const RankId rank : known.users) settled[rank].push_back(members[id]);
  }
  for (RankPart* part : ranks) {
    for (size_t i = 0; i < part->places.size() && i < part->communicators.size(); ++i) {
      Communicator& c = part->communicators[i];
      if (c.members.empty() && part->places[i].position != -1) c.members = members[c.id];
    }
  }
}

void size_buffers(RankPart& part, uint32_t world) {
  std::vector<Call>& calls = part.trace.ops.calls;
  for (size_t i = 0; i < part.message_only.size() && i < calls.size(); ++i) {
    Call& c = calls[i];
    if (!part.message_only[i] || c.communicator >= part.communicators.size()) continue;
    const size_t known = part.communicators[c.communicator].members.size();
    const auto ranks = static_cast<Bytes>(known == 0 ? world : known);
    const Bytes message = c.bytes_in, all = gathered(message, ranks);
    const bool gathers = c.collective == Collective::kAllGather;
    const bool scatters = c.collective == Collective::kReduceScatter;
    const bool exchanges = c.collective == Collective::kAllToAll;
    if (scatters || exchanges || c.collective == Collective::kScatter) c.bytes_in = all;
    if (gathers || exchanges || c.collective == Collective::kGather) c.bytes_out = all;
  }
  part.message_only.clear();
}

}  // namespace rehearse::traces
