// SPDX-License-Identifier: Apache-2.0
// The dictionaries of one plane of an XSpace: names of events, and names of stats, which tell what the value
// of a stat means.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "traces/import/tensorflow/planes.hpp"
#include "traces/model/trace.hpp"

namespace rehearse::traces::tensorflow {

// An XStat. `text` views the message.
struct Stat {
  uint64_t id = 0;
  std::optional<int64_t> number;
  std::optional<uint64_t> ref;  // the value is the name of that stat
  std::string_view text;
};
[[nodiscard]] Stat parse_stat(std::string_view message);

// What is used of the stats, by name.
enum class StatUse : uint8_t {
  kNone,
  kCorrelation,
  kCopy,
  kMemset,
  kKernel,
  kStep,
  kMemory,
  kModel,
  kProfileStart
};

struct PlaneNames {
  struct StatName {
    StatUse use = StatUse::kNone;
    uint32_t text = 0;  // string id of the name, which is also what a ref means
  };

  Plane plane;
  std::string name;
  std::unordered_map<uint64_t, uint32_t> events;  // string ids
  std::unordered_map<uint64_t, StatName> stats;
  std::vector<std::string> own_stats;  // of the plane itself, still encoded

  // Field `field` of the plane: its name, an entry of a dictionary or one of its own stats; others are
  // passed over. False when the entry is no such message.
  [[nodiscard]] bool add(uint32_t field, std::string_view bytes, Strings& strings);
  [[nodiscard]] StatUse use_of(const Stat& stat) const;
  [[nodiscard]] std::string_view text_of(const Stat& stat, const Strings& strings) const;
};

}  // namespace rehearse::traces::tensorflow
