// SPDX-License-Identifier: Apache-2.0
#include "traces/import/symmetric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/text.hpp"
#include "base/units.hpp"
#include "traces/program/clones.hpp"

namespace rehearse::traces {
namespace {

// Ranks beyond which clones would fill the memory rather than help.
constexpr size_t kMostOperations = 400'000'000;

// A regular split of the ranks of a job into groups: digits of the rank number that vary inside a group.
// {0, 1, 4, 5} of 8 ranks is two digits, of stride 1 and 4 and two values each.
struct Split {
  struct Digit {
    RankId stride = 1;
    RankId size = 1;
    // NOLINTNEXTLINE(modernize-use-nullptr): a comparison with 0
    auto operator<=>(const Digit&) const = default;
  };
  std::vector<Digit> digits;  // ascending
  // NOLINTNEXTLINE(modernize-use-nullptr): a comparison with 0
  auto operator<=>(const Split&) const = default;

  [[nodiscard]] std::vector<RankId> group_of(RankId rank) const {
    RankId base = rank;
    for (const Digit& d : digits) base -= rank / d.stride % d.size * d.stride;
    std::vector<RankId> members = {base};
    for (const Digit& d : digits) {
      const size_t n = members.size();
      for (RankId i = 1; i < d.size; ++i) {
        for (size_t k = 0; k < n; ++k) members.push_back(members[k] + i * d.stride);
      }
    }
    return members;
  }
  // Position in its group.
  [[nodiscard]] RankId place_of(RankId rank) const {
    RankId place = 0, weight = 1;
    for (const Digit& d : digits) {
      place += rank / d.stride % d.size * weight;
      weight *= d.size;
    }
    return place;
  }
};

// The split that has `members` as one of its groups and goes evenly into `world`.
std::optional<Split> split_of(const std::vector<RankId>& members, RankId world) {
  if (members.empty()) return std::nullopt;
  Split split;
  for (size_t unit = 1; unit < members.size();) {  // members that the digits so far make up
    if (members[unit] <= members[0]) return std::nullopt;
    const RankId stride = members[unit] - members[0];
    RankId size = 1;
    while (size * unit < members.size() &&
           members[size * unit] == members[0] + uint64_t{size} * stride) {
      ++size;
    }
    if (world % (uint64_t{stride} * size) != 0) return std::nullopt;
    split.digits.push_back({stride, size});
    unit *= size;
  }
  if (split.group_of(members[0]) != members) return std::nullopt;
  return split;
}

class Symmetry {
 public:
  Symmetry(Trace& trace, Findings& findings)
      : trace_(trace), findings_(findings), world_(trace.header.world_size()) {
    for (const RankTrace& r : trace.ranks) recorded_.insert(r.rank);
  }

  void fill(uint64_t seed) {
    if (recorded_.size() >= world_) return;
    find_splits();
    measure_shortest();
    for (const RankTrace& r : trace_.ranks) sources_[role_of(r.rank)].push_back(r.rank);
    std::vector<RankTrace> clones;
    std::vector<uint32_t> without;
    size_t operations = trace_.operations();
    for (RankId rank = 0; rank < world_; ++rank) {
      if (recorded_.contains(rank)) continue;
      const auto role = sources_.find(role_of(rank));
      if (role == sources_.end()) {
        without.push_back(rank);
        continue;
      }
      const RankTrace& source = find(role->second[rank % role->second.size()]);
      operations += source.ops.size();
      if (operations > kMostOperations) {
        findings_.add("clones-too-many", Severity::kDataLoss, fmt::format("rank {}", rank),
                      "the clones would have more operations than a trace can hold; import fewer "
                      "steps");
        break;
      }
      if (auto clone = clone_of(source, rank)) {
        clone->env[kSeedVariable] = std::to_string(seed);
        (*trace_.header.mutable_cloned_from())[rank] = source.rank;
        clones.push_back(std::move(*clone));
      }
    }
    for (RankTrace& clone : clones) trace_.ranks.push_back(std::move(clone));
    std::sort(trace_.ranks.begin(), trace_.ranks.end(),
              [](const RankTrace& a, const RankTrace& b) { return a.rank < b.rank; });
    tell(without);
  }

 private:
  using Role = std::vector<RankId>;  // place in each point-to-point split
  using ShapeOfCall = std::tuple<uint32_t, Collective, Bytes, Bytes>;

  [[nodiscard]] const RankTrace& find(RankId rank) const {
    return *std::lower_bound(trace_.ranks.begin(), trace_.ranks.end(), rank,
                             [](const RankTrace& r, RankId id) { return r.rank < id; });
  }

  void find_splits() {
    splits_.resize(trace_.communicators.size());
    for (size_t c = 0; c < splits_.size(); ++c) {
      splits_[c] = split_of(trace_.communicators[c].members, world_);
    }
    for (const RankTrace& r : trace_.ranks) {
      for (const Call& call : r.ops.calls) {
        if (is_point_to_point(call.collective) && splits_[call.communicator]) {
          stages_.insert(*splits_[call.communicator]);
        }
      }
    }
  }

  [[nodiscard]] Role role_of(RankId rank) const {
    Role role;
    for (const Split& s : stages_) role.push_back(s.place_of(rank));
    return role;
  }

  void measure_shortest() {
    for (const RankTrace& r : trace_.ranks) {
      for (size_t op = 0; op < r.ops.size(); ++op) {
        const Call* call = r.ops.call(op);
        if (call == nullptr) continue;
        const auto [at, fresh] = shortest_.emplace(shape_of(*call), r.ops.duration[op]);
        if (!fresh) at->second = std::min(at->second, r.ops.duration[op]);
      }
    }
  }

  [[nodiscard]] static ShapeOfCall shape_of(const Call& call) {
    return {call.communicator, call.collective, call.bytes_in, call.bytes_out};
  }

  [[nodiscard]] bool all_recorded(uint32_t communicator) {
    const auto [known, fresh] = complete_.emplace(communicator, true);
    if (fresh) {
      for (const RankId member : trace_.communicators[communicator].members) {
        known->second &= recorded_.contains(member);
      }
    }
    return known->second;
  }

  // The communicator of `rank` that stands for `communicator` of its source.
  std::optional<uint32_t> counterpart(uint32_t communicator, RankId rank) {
    const std::vector<RankId>& members = trace_.communicators[communicator].members;
    if (std::find(members.begin(), members.end(), rank) != members.end()) return communicator;
    if (!splits_[communicator]) return std::nullopt;
    const std::vector<RankId> group = splits_[communicator]->group_of(rank);
    const std::string description = trace_.communicators[communicator].description;
    const auto key = std::make_tuple(communicator, group);
    if (const auto made = made_.find(key); made != made_.end()) return made->second;
    const auto count = static_cast<uint32_t>(trace_.communicators.size());
    for (uint32_t c = 0; c < count; ++c) {
      if (trace_.communicators[c].members == group &&
          trace_.communicators[c].description == description && c < splits_.size()) {
        return made_[key] = c;
      }
    }
    Communicator fresh = trace_.communicators[communicator];
    fresh.id = fmt::format("{}/{}", fresh.id, format_ranks(group));
    fresh.members = group;
    trace_.communicators.push_back(std::move(fresh));
    return made_[key] = count;
  }

  std::optional<RankTrace> clone_of(const RankTrace& source, RankId rank) {
    RankTrace clone = source;
    clone.rank = rank;
    clone.host.clear();
    if (clone.env.contains("RANK")) clone.env["RANK"] = std::to_string(rank);
    clone.env.erase("LOCAL_RANK");
    std::map<uint32_t, uint32_t> communicators;
    for (size_t op = 0; op < clone.ops.size(); ++op) {
      const Call* recorded = source.ops.call(op);
      if (recorded == nullptr) continue;
      auto known = communicators.find(recorded->communicator);
      if (known == communicators.end()) {
        const auto other = counterpart(recorded->communicator, rank);
        if (!other) {
          findings_.add("communicator-not-regular", Severity::kDataLoss,
                        fmt::format("{}: who takes part for rank {}?",
                                    trace_.communicators[recorded->communicator].id, rank),
                        "its members are not a regular split of all ranks, so this rank is not "
                        "cloned; import a rank of that group");
          return std::nullopt;
        }
        known = communicators.emplace(recorded->communicator, *other).first;
      }
      if (!all_recorded(recorded->communicator)) {
        const Nanos wait = clone.ops.duration[op] - shortest_.at(shape_of(*recorded));
        clone.ops.start[op] += wait;
        clone.ops.duration[op] -= wait;
        if (wait > 0) {
          ++waits_;
          waited_ += wait;
        }
      }
      clone.ops.calls[clone.ops.detail[op] - 1].communicator = known->second;
    }
    clone.ops.sort();
    return clone;
  }

  void tell(const std::vector<uint32_t>& without) {
    const auto clones = static_cast<size_t>(trace_.header.cloned_from_size());
    if (!without.empty()) {
      findings_.add("role-without-sample", Severity::kWarning,
                    fmt::format("ranks {}", format_ranks(without)),
                    "no rank of their pipeline stage was recorded, so they are missing; import one "
                    "rank per stage",
                    without.size());
    }
    if (clones == 0) return;
    findings_.add(
        "symmetric-assumed", Severity::kWarning,
        fmt::format("{} of {} ranks are clones of {} recorded", clones, world_, recorded_.size()),
        "no rank can differ from its role here: a straggler among the ranks that were not "
        "recorded does not show",
        clones);
    if (waits_ > 0) {
      findings_.add("exogenous-wait", Severity::kWarning,
                    fmt::format("{} in all, on average {} per call", format_duration(waited_),
                                format_duration(waited_ / static_cast<Nanos>(waits_))),
                    "recorded waits for ranks that are not here are kept as they were; a what-if "
                    "cannot shorten them",
                    waits_);
    }
    uint64_t single = 0;
    for (const auto& [role, ranks] : sources_) single += ranks.size() == 1 ? 1 : 0;
    if (single > 0) {
      findings_.add(
          "variance-unknown", Severity::kWarning,
          fmt::format("{} of {} roles have one recorded rank", single, sources_.size()),
          "how ranks of such a role differ is not known, which does not mean that they do "
          "not; import more ranks",
          single);
    }
  }

  Trace& trace_;
  Findings& findings_;
  RankId world_;
  std::set<RankId> recorded_;
  std::vector<std::optional<Split>> splits_;  // by recorded communicator
  std::set<Split> stages_;
  std::map<Role, std::vector<RankId>> sources_;
  std::map<ShapeOfCall, Nanos> shortest_;
  std::map<uint32_t, bool> complete_;
  std::map<std::tuple<uint32_t, std::vector<RankId>>, uint32_t> made_;
  uint64_t waits_ = 0;
  Nanos waited_ = 0;
};

}  // namespace

void assume_symmetric(Trace& trace, uint64_t seed, Findings& findings) {
  Symmetry(trace, findings).fill(seed);
}

}  // namespace rehearse::traces
