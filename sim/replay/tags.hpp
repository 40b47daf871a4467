// SPDX-License-Identifier: Apache-2.0
// Tags of the replay's timers and flows: what for (4 bits), part (28 bits), meeting or rank (32 bits).
#pragma once

#include <cstdint>

namespace rehearse::sim {

enum class Tag : uint64_t {
  kWhole,
  kHop,
  kMessage,
  kLateMember,
  kWake,
  kDirector,
  kBegin,
  kTransfer,
};

constexpr uint64_t kTagKind = uint64_t{0xf} << 60;
constexpr uint64_t kTagId = 0xffffffff;
constexpr uint64_t kTagPart = 0xfffffff;

constexpr uint64_t tag_of(Tag what, uint64_t part, uint64_t id) {
  return static_cast<uint64_t>(what) << 60 | (part & kTagPart) << 32 | id;
}
constexpr Tag kind_of(uint64_t tag) { return static_cast<Tag>(tag >> 60); }
constexpr uint32_t part_of(uint64_t tag) { return static_cast<uint32_t>(tag >> 32 & kTagPart); }
constexpr uint32_t id_of(uint64_t tag) { return static_cast<uint32_t>(tag & kTagId); }

}  // namespace rehearse::sim
