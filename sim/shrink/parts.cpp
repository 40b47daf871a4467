// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "sim/scenario/places.hpp"
#include "sim/shrink/job.hpp"
#include "sim/shrink/keep_operations.hpp"

namespace rehearse::sim {
namespace {

using Kind = Part::Kind;
using Marks = std::vector<std::vector<bool>>;  // by rank and operation

// The calls that meet, by what they are counted under and their number.
std::vector<Part> collectives_of(const Job& job) {
  // Communicator, sender and receiver (of pairs), number.
  using Key = std::tuple<uint32_t, int64_t, int64_t, uint32_t>;
  std::map<Key, Part> found;
  for (uint32_t r = 0; r < job.ranks.size(); ++r) {
    std::map<std::tuple<uint32_t, int64_t, int64_t>, uint32_t> count;
    const JobRank& rank = job.ranks[r];
    for (uint32_t i = 0; i < rank.ops.size(); ++i) {
      const auto& call = rank.ops[i].call;
      if (!call) continue;
      int64_t from = -1, to = -1;
      if (traces::is_point_to_point(call->collective)) {
        const bool send = call->collective == traces::Collective::kSend;
        const auto peer = static_cast<int64_t>(rank.ops[i].peer.value_or(0));
        from = send ? rank.rank : peer;
        to = send ? peer : rank.rank;
      }
      const uint32_t number = count[{call->communicator, from, to}]++;
      found[{call->communicator, from, to, number}].ops.emplace_back(r, i);
    }
  }
  std::vector<Part> out;
  for (auto& [key, part] : found) {
    part.kind = Kind::kCollective;
    part.id = static_cast<uint32_t>(out.size());
    out.push_back(std::move(part));
  }
  return out;
}

void add_variables(const google::protobuf::Map<std::string, std::string>& env, uint32_t id,
                   std::vector<Part>& out) {
  const std::map<std::string, std::string> sorted(env.begin(), env.end());
  for (const auto& [name, value] : sorted) out.push_back({Kind::kVariable, id, name});
}

constexpr uint32_t kAllRanks = UINT32_MAX;  // id of a variable of every rank

void drop_ops(Job& job, const Marks& keep) {
  for (size_t r = 0; r < job.ranks.size(); ++r) keep_operations(job.ranks[r], keep[r]);
}

Marks all_kept(const Job& job) {
  Marks keep;
  for (const JobRank& rank : job.ranks) keep.emplace_back(rank.ops.size(), true);
  return keep;
}

// What patches say of ranks and nodes that are gone goes too.
void keep_patches(Job& job) {
  Numbering same{{}, {}, job.nodes_before};
  for (const JobRank& rank : job.ranks) same.ranks.emplace(rank.rank, rank.rank);
  for (const uint32_t node : job.nodes) same.nodes.emplace(node, node);
  std::vector<pb::Patch> kept;
  for (const pb::Patch& patch : job.patches) {
    if (auto left = renumbered(patch, same)) kept.push_back(std::move(*left));
  }
  job.patches = std::move(kept);
}

bool drop_ranks(Job& job, const std::set<uint32_t>& gone) {
  std::erase_if(job.ranks, [&](const JobRank& rank) { return gone.count(rank.rank) > 0; });
  if (job.ranks.empty()) return false;
  for (traces::Communicator& communicator : job.communicators) {
    std::erase_if(communicator.members, [&](traces::RankId r) { return gone.count(r) > 0; });
  }
  Marks keep = all_kept(job);
  for (size_t r = 0; r < job.ranks.size(); ++r) {
    for (size_t i = 0; i < job.ranks[r].ops.size(); ++i) {
      JobOp& op = job.ranks[r].ops[i];
      if (!op.call) continue;
      const auto& members = job.communicators[op.call->communicator].members;
      const bool lost = op.peer && gone.count(*op.peer) > 0;
      if (members.size() < 2 || (lost && traces::is_point_to_point(op.call->collective))) {
        keep[r][i] = false;
      } else if (lost) {
        op.peer = members.front();  // another root
      }
    }
  }
  drop_ops(job, keep);
  keep_patches(job);
  return true;
}

bool drop_nodes(Job& job, const std::set<uint32_t>& gone) {
  std::erase_if(job.nodes, [&](uint32_t node) { return gone.count(node) > 0; });
  if (job.nodes.empty()) return false;
  std::set<std::pair<uint32_t, uint32_t>> taken;
  for (const JobRank& rank : job.ranks) taken.emplace(rank.seat.node(), rank.seat.gpu());
  for (JobRank& rank : job.ranks) {
    if (gone.count(rank.seat.node()) == 0) continue;
    bool seated = false;
    for (const uint32_t node : job.nodes) {
      for (uint32_t gpu = 0; gpu < job.gpus_per_node && !seated; ++gpu) {
        if (!taken.emplace(node, gpu).second) continue;
        rank.seat.set_node(node);
        rank.seat.set_gpu(gpu);
        seated = true;
      }
    }
    if (!seated) return false;
  }
  std::erase_if(job.settings, [&](const Setting& setting) {
    return setting.node >= 0 && gone.count(static_cast<uint32_t>(setting.node)) > 0;
  });
  for (const pb::Patch& patch : job.patches) {
    if (std::any_of(gone.begin(), gone.end(), [&](uint32_t n) { return names_node(patch, n); })) {
      return false;
    }
  }
  keep_patches(job);
  return true;
}

void drop_steps(Job& job, const std::set<uint32_t>& gone) {
  // Where a step goes after those before it have gone.
  const auto moved = [&](int step) {
    const auto before = std::count_if(gone.begin(), gone.end(),
                                      [step](uint32_t s) { return static_cast<int>(s) < step; });
    return step - static_cast<int>(before);
  };
  const auto is_gone = [&](int step) {
    return step >= 0 && gone.count(static_cast<uint32_t>(step));
  };
  Marks keep = all_kept(job);
  for (size_t r = 0; r < job.ranks.size(); ++r) {
    JobRank& rank = job.ranks[r];
    for (size_t i = 0; i < rank.ops.size(); ++i) {
      keep[r][i] = !is_gone(rank.ops[i].step);
      rank.ops[i].step = moved(rank.ops[i].step);
    }
    rank.steps = static_cast<uint32_t>(moved(static_cast<int>(rank.steps)));
    std::erase_if(rank.allocations, [&](const JobAllocation& a) { return is_gone(a.step); });
    for (JobAllocation& allocation : rank.allocations) allocation.step = moved(allocation.step);
  }
  drop_ops(job, keep);
  job.steps -= static_cast<uint32_t>(gone.size());
}

void drop_variables(Job& job, std::span<const Part> parts) {
  for (const Part& part : parts) {
    if (part.id == kAllRanks) job.document.mutable_launch()->mutable_env()->erase(part.name);
    for (JobRank& rank : job.ranks) {
      if (rank.rank == part.id) rank.seat.mutable_env()->erase(part.name);
    }
  }
}

template <typename T>
void drop_positions(std::vector<T>& list, std::span<const Part> parts) {
  std::set<size_t> gone;
  for (const Part& part : parts) gone.insert(part.id);
  size_t at = 0;
  std::erase_if(list, [&](const T&) { return gone.count(at++) > 0; });
}

}  // namespace

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::kRank:
      return "rank";
    case Kind::kNode:
      return "node";
    case Kind::kStep:
      return "step";
    case Kind::kCollective:
      return "collective";
    case Kind::kOperation:
      return "operation";
    case Kind::kAllocation:
      return "allocation";
    case Kind::kSetting:
      return "setting";
    case Kind::kVariable:
      return "variable";
    case Kind::kPatch:
      return "patch";
  }
  return "part";
}

std::vector<Part> parts_of(const Job& job, Kind kind) {
  std::vector<Part> out;
  const auto number = [&](size_t count) {
    for (uint32_t i = 0; i < count; ++i) out.push_back({kind, i});
  };
  switch (kind) {
    case Kind::kRank:
      for (const JobRank& rank : job.ranks) out.push_back({kind, rank.rank});
      break;
    case Kind::kNode:
      if (job.gpus_per_node == 0) break;
      for (const uint32_t node : job.nodes) out.push_back({kind, node});
      break;
    case Kind::kStep:
      number(job.steps);
      break;
    case Kind::kCollective:
      return collectives_of(job);
    case Kind::kOperation:
      for (uint32_t r = 0; r < job.ranks.size(); ++r) {
        for (uint32_t i = 0; i < job.ranks[r].ops.size(); ++i) {
          out.push_back({kind, static_cast<uint32_t>(out.size()), {}, {{r, i}}});
        }
      }
      break;
    case Kind::kAllocation:
      for (uint32_t r = 0; r < job.ranks.size(); ++r) {
        for (uint32_t i = 0; i < job.ranks[r].allocations.size(); ++i) {
          out.push_back({kind, static_cast<uint32_t>(out.size()), {}, {{r, i}}});
        }
      }
      break;
    case Kind::kSetting:
      number(job.settings.size());
      break;
    case Kind::kVariable:
      add_variables(job.document.launch().env(), kAllRanks, out);
      for (const JobRank& rank : job.ranks) add_variables(rank.seat.env(), rank.rank, out);
      break;
    case Kind::kPatch:
      number(job.patches.size());
      break;
  }
  return out;
}

std::optional<Job> without(const Job& job, std::span<const Part> parts) {
  if (parts.empty()) return job;
  Job out = job;
  std::set<uint32_t> ids;
  for (const Part& part : parts) ids.insert(part.id);
  switch (parts.front().kind) {
    case Kind::kRank:
      if (!drop_ranks(out, ids)) return std::nullopt;
      break;
    case Kind::kNode:
      if (!drop_nodes(out, ids)) return std::nullopt;
      break;
    case Kind::kStep:
      drop_steps(out, ids);
      break;
    case Kind::kCollective:
    case Kind::kOperation: {
      Marks keep = all_kept(out);
      for (const Part& part : parts) {
        for (const auto& [r, i] : part.ops) keep[r][i] = false;
      }
      drop_ops(out, keep);
      break;
    }
    case Kind::kAllocation: {
      std::vector<std::set<size_t>> gone(out.ranks.size());
      for (const Part& part : parts) {
        for (const auto& [r, i] : part.ops) gone[r].insert(i);
      }
      for (size_t r = 0; r < out.ranks.size(); ++r) {
        size_t at = 0;
        std::erase_if(out.ranks[r].allocations,
                      [&](const JobAllocation&) { return gone[r].count(at++) > 0; });
      }
      break;
    }
    case Kind::kSetting:
      drop_positions(out.settings, parts);
      break;
    case Kind::kVariable:
      drop_variables(out, parts);
      break;
    case Kind::kPatch:
      drop_positions(out.patches, parts);
      break;
  }
  return out;
}

JobSize size_of(const Job& job) {
  JobSize size{job.ranks.size(),
               job.nodes.size(),
               job.steps,
               0,
               0,
               job.patches.size() + job.settings.size()};
  for (const JobRank& rank : job.ranks) {
    size.operations += rank.ops.size();
    size.most_per_rank = std::max(size.most_per_rank, rank.ops.size());
  }
  return size;
}

}  // namespace rehearse::sim
