// SPDX-License-Identifier: Apache-2.0
#include "traces/import/kineto/groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "traces/import/kineto/decimal.hpp"
#include "traces/import/limits.hpp"

namespace rehearse::traces::kineto {
namespace {

// "[0, 1, 2]" whole, or nothing ("[0, 1, ...]" is cut by the profiler at 30 entries).
std::vector<RankId> parse_ranks(std::string_view text) {
  std::vector<RankId> ranks;
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return ranks;
  text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const auto rank = parse_integer(text.substr(0, comma));
    if (!rank || *rank < 0 || *rank > kMostOfOne) return {};
    ranks.push_back(static_cast<RankId>(*rank));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return ranks;
}

std::vector<RankId> members_listed(const ProcessGroup& pg) {
  return pg.size < 0 || std::cmp_equal(pg.ranks.size(), pg.size) ? pg.ranks : std::vector<RankId>{};
}

}  // namespace

std::vector<RankId> members_of(const CallFacts& f) {
  std::vector<RankId> ranks = parse_ranks(f.ranks);
  if (!ranks.empty() && (f.group_size <= 0 || std::cmp_equal(ranks.size(), f.group_size)))
    return ranks;
  ranks.clear();
  if (f.group_size > 0 && f.group_size <= kMostOfOne && f.rank_start >= 0 &&
      f.rank_start <= kMostOfOne && f.rank_stride > 0 && f.rank_stride <= kMostOfOne &&
      f.rank_start + (f.group_size - 1) * f.rank_stride <= kMostOfOne) {
    for (int64_t i = 0; i < f.group_size; ++i) {
      ranks.push_back(static_cast<RankId>(f.rank_start + i * f.rank_stride));
    }
  }
  return ranks;
}

Groups::Groups(const Metadata& metadata, const Sizes& sizes, std::vector<Communicator>& table)
    : table_(table),
      backend_(metadata.backend),
      rank_(metadata.rank),
      world_(metadata.world_size.value_or(0)) {
  const auto most = std::max_element(
      sizes.begin(), sizes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != sizes.end()) consecutive_ = most->first;
  for (const ProcessGroup& pg : metadata.groups) {
    const auto index = static_cast<uint32_t>(table_.size());
    if (!by_name_.emplace(pg.name, index).second) continue;
    table_.push_back({pg.name, pg.description, members_listed(pg), pg.backend});
    const bool whole = pg.description == "default_pg" ||
                       (metadata.world_size && std::cmp_equal(pg.size, *metadata.world_size));
    if (whole && !default_) default_ = index;
  }
}

uint32_t Groups::of(const CallFacts& f) {
  if (f.group.empty()) {
    const std::vector<RankId> members = members_of(f);
    if (!members.empty()) return named("", f.description, members);
    return of_size(f.group_size);
  }
  return named(f.group, f.description, members_of(f));
}

// PyTorch 2.1 and 2.2 tell the size of a group and not who is in it. The size that most calls name is taken as that
// of consecutive ranks, as tensor parallelism has them, others as of ranks an even distance apart.
uint32_t Groups::of_size(int64_t size) {
  if (!rank_ || size <= 0 || size > kMostOfOne || size >= world_ || world_ % size != 0) {
    return whole_job();
  }
  const int64_t stride = size == consecutive_ ? 1 : world_ / size;
  const int64_t first = stride == 1 ? *rank_ / size * size : *rank_ % stride;
  const std::string name = fmt::format("{} ranks from {} on, {} apart", size, first, stride);
  if (const auto known = by_name_.find(name); known != by_name_.end()) return known->second;
  std::vector<RankId> members;
  for (int64_t i = 0; i < size; ++i) members.push_back(static_cast<RankId>(first + i * stride));
  assumed_.insert(size);
  return named(name, "", members);
}

uint32_t Groups::whole_job() {
  if (!default_) {
    default_ = static_cast<uint32_t>(table_.size());
    table_.push_back({"default", "all ranks", {}, backend_});
  }
  return *default_;
}

uint32_t Groups::named(const std::string& name, const std::string& description,
                       const std::vector<RankId>& members) {
  std::string key = name;
  if (name.empty()) {
    for (const RankId r : members) key += " " + std::to_string(r);
  }
  const auto [found, added] = by_name_.emplace(key, static_cast<uint32_t>(table_.size()));
  if (added) table_.push_back({name.empty() ? "ranks" + key : name, description, {}, backend_});
  Communicator& group = table_[found->second];
  // Beyond the limit they are everybody, of whom the merge has a limit too.
  if (group.members.empty() && held_ + members.size() <= kMostMembers) {
    held_ += members.size();
    group.members = members;
  }
  return found->second;
}

}  // namespace rehearse::traces::kineto
