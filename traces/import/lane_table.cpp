// SPDX-License-Identifier: Apache-2.0
#include "traces/import/lane_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "traces/import/devices.hpp"
#include "traces/import/limits.hpp"

namespace rehearse::traces {

size_t LaneTable::Hash::operator()(const LaneKey& k) const {
  uint64_t h = static_cast<uint64_t>(k.id) * 0x9e3779b97f4a7c15ULL;
  h ^= (static_cast<uint64_t>(k.owner) + static_cast<uint64_t>(k.kind)) * 0xc2b2ae3d27d4eb4fULL;
  h ^= static_cast<uint64_t>(k.context) * 0x165667b19e3779f9ULL;
  return h ^ (h >> 29);
}

std::optional<LaneId> LaneTable::look_up(const LaneKey& key, std::vector<Lane>& lanes) {
  auto found = lanes_.find(key);
  if (found == lanes_.end()) {
    if (lanes.size() >= kMostLanes) return std::nullopt;
    found = lanes_.emplace(key, static_cast<LaneId>(lanes.size())).first;
    lanes.push_back({key.kind, key.id, 0});
    keys_.push_back(key);
  }
  recent_[key.kind == LaneKind::kStream ? 1 : 0] = {key, found->second};
  return found->second;
}

std::optional<LaneId> LaneTable::find(const LaneKey& key) const {
  const auto found = lanes_.find(key);
  return found == lanes_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<int64_t> LaneTable::devices() const {
  std::vector<int64_t> out;
  for (const LaneKey& key : keys_) {
    out.push_back(key.kind == LaneKind::kStream ? key.owner : kNoDevice);
  }
  return out;
}

void LaneTable::name(RankTrace& trace, const std::vector<int64_t>& communicating,
                     Strings& strings) const {
  const auto own = [&](int64_t gpu) {
    if (communicating.size() < 2) return gpu == int64_t{trace.gpu};
    return std::binary_search(communicating.begin(), communicating.end(), gpu);
  };
  std::map<std::pair<int64_t, int64_t>, int> contexts;  // (GPU, stream) in how many contexts
  for (const LaneKey& key : keys_) {
    if (key.kind == LaneKind::kStream) ++contexts[{key.owner, key.id}];
  }
  for (size_t i = 0; i < keys_.size() && i < trace.lanes.size(); ++i) {
    const LaneKey& key = keys_[i];
    std::string name;
    if (key.kind == LaneKind::kStream) {
      name = fmt::format("stream {}", key.id);
      if (contexts[{key.owner, key.id}] > 1) name = fmt::format("context {} {}", key.context, name);
      if (!own(key.owner)) name = fmt::format("gpu {} {}", key.owner, name);
    } else if (const auto label = labels_.find(key); label != labels_.end()) {
      trace.lanes[i].name = label->second;
      continue;
    } else {
      name = fmt::format("thread {}", key.id);
    }
    trace.lanes[i].name = strings.intern(name);
  }
}

}  // namespace rehearse::traces
