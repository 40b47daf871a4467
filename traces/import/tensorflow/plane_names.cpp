// SPDX-License-Identifier: Apache-2.0
// Fields of tsl/profiler/protobuf/xplane.proto that are used, by number:
//   XPlane name 2, event_metadata 4 (map), stat_metadata 5 (map), stats 6
//   XStat metadata_id 1, double 2, uint64 3, int64 4, str 5, bytes 6, ref 7
//   XEventMetadata id 1, name 2, display_name 4; XStatMetadata id 1, name 2
#include "traces/import/tensorflow/plane_names.hpp"

#include <array>
#include <bit>
#include <utility>

#include "traces/import/limits.hpp"
#include "traces/import/wire.hpp"

namespace rehearse::traces::tensorflow {
namespace {

constexpr std::array<std::pair<std::string_view, StatUse>, 8> kStatUses = {
    {{"correlation_id", StatUse::kCorrelation},
     {"memcpy_details", StatUse::kCopy},
     {"memset_details", StatUse::kMemset},
     {"kernel_details", StatUse::kKernel},
     {"step_num", StatUse::kStep},
     {"memory_size", StatUse::kMemory},
     {"device_type_string", StatUse::kModel},
     {"profile_start_time", StatUse::kProfileStart}}};

StatUse use_of_name(std::string_view name) {
  for (const auto& [known, use] : kStatUses) {
    if (known == name) return use;
  }
  return StatUse::kNone;
}

}  // namespace

Stat parse_stat(std::string_view message) {
  Stat out;
  WireReader reader(message);
  for (WireField f; reader.next(f);) {
    switch (f.number) {
      case 1:
        out.id = f.value;
        break;
      case 2: {
        const auto value = std::bit_cast<double>(f.value);
        if (value > -9e18 && value < 9e18) out.number = static_cast<int64_t>(value);
        break;
      }
      case 3:
      case 4:
        out.number = static_cast<int64_t>(f.value);
        break;
      case 5:
      case 6:
        out.text = f.bytes;
        break;
      case 7:
        out.ref = f.value;
        break;
      default:
        break;
    }
  }
  return out;
}

bool PlaneNames::add(uint32_t field, std::string_view bytes, Strings& strings) {
  if (field == 2) {
    name = bytes.substr(0, 256);
    plane = plane_of(bytes);
  }
  if (field == 6 && own_stats.size() < 1000 && bytes.size() < 4096) own_stats.emplace_back(bytes);
  if (field != 4 && field != 5) return true;
  uint64_t key = 0;
  std::string_view value, text, display;
  WireReader pair(bytes);
  for (WireField f; pair.next(f);) {
    if (f.number == 1) key = f.value;
    if (f.number == 2 && f.type == WireType::kBytes) value = f.bytes;
  }
  WireReader message(value);
  for (WireField f; message.next(f);) {
    if (f.number == 2 && f.type == WireType::kBytes) text = f.bytes;
    if (f.number == 4 && f.type == WireType::kBytes) display = f.bytes;
  }
  if (pair.broken() || message.broken()) return false;
  if (field == 4) {
    const std::string_view shown = text.empty() ? display : text;
    events[key] = strings.intern(shown.substr(0, kLongestName));
  } else {
    stats[key] = {use_of_name(text), strings.intern(text.substr(0, kLongestName))};
  }
  return true;
}

StatUse PlaneNames::use_of(const Stat& stat) const {
  const auto known = stats.find(stat.id);
  return known == stats.end() ? StatUse::kNone : known->second.use;
}

std::string_view PlaneNames::text_of(const Stat& stat, const Strings& strings) const {
  if (!stat.ref) return stat.text;
  const auto target = stats.find(*stat.ref);
  return target == stats.end() ? std::string_view() : strings.at(target->second.text);
}

}  // namespace rehearse::traces::tensorflow
