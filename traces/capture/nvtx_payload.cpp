// SPDX-License-Identifier: Apache-2.0
#include "traces/capture/nvtx_payload.hpp"

#include <cstring>
#include <string_view>

namespace rehearse::capture::nvtx {
namespace {

// NVTX_PAYLOAD_ENTRY_FLAG_*: pointers, arrays, offsets from elsewhere.
constexpr uint64_t kNotPlain = 0x1ff;

struct Width {
  uint8_t bytes;
  bool has_sign;
};
// NVTX_PAYLOAD_ENTRY_TYPE_*; types from 2^24 on are enumerations, which are ints.
Width width_of(uint64_t type) {
  constexpr uint64_t kFirstStaticSchema = 1 << 24;
  if (type >= kFirstStaticSchema) return {4, true};
  switch (type) {
    case 5:
    case 15:
      return {4, true};  // int, int32
    case 6:
    case 16:
      return {4, false};
    case 7:
    case 9:
    case 17:
      return {8, true};  // long, long long, int64
    case 8:
    case 10:
    case 18:
    case 22:
      return {8, false};  // unsigned long, unsigned long long, uint64, size_t
    default:
      return {0, false};
  }
}

}  // namespace

bool Schemas::field_of(const SchemaEntry& entry, Field& out) {
  if (entry.name == nullptr || (entry.flags & kNotPlain) != 0 || entry.offset > 4096) return false;
  const std::string_view name = entry.name;
  if (name == "NCCL communicator ID") {
    out.meaning = Meaning::kCommunicator;
  } else if (name.starts_with("Message size")) {
    out.meaning = Meaning::kBytes;
  } else if (name == "Reduction operation") {
    out.meaning = Meaning::kReduction;
  } else if (name == "Root") {
    out.meaning = Meaning::kRoot;
  } else if (name == "Peer rank") {
    out.meaning = Meaning::kPeer;
  } else if (name == "No. of ranks") {
    out.meaning = Meaning::kRanks;
  } else if (name == "Rank") {
    out.meaning = Meaning::kRank;
  } else if (name == "CUDA device") {
    out.meaning = Meaning::kDevice;
  } else {
    return false;
  }
  const Width width = width_of(entry.type);
  out.width = width.bytes;
  out.has_sign = width.has_sign;
  out.offset = static_cast<uint32_t>(entry.offset);
  return width.bytes != 0;
}

uint64_t Schemas::add(uint64_t domain, const SchemaAttributes& a) {
  const uint64_t id =
      (a.mask & kHasId) != 0 ? a.id : next_dynamic_.fetch_add(1, std::memory_order_relaxed);
  if ((a.mask & kHasEntries) == 0 || (a.mask & kHasCount) == 0 || !lock_.lock()) return id;
  const uint32_t count = count_.load(std::memory_order_relaxed);
  if (count < kMostSchemas) {
    Schema& s = schemas_[count];
    s = {domain, id, 0, {}};
    for (size_t i = 0; i < a.count && s.count < s.fields.size(); ++i) {
      if (field_of(a.entries[i], s.fields[s.count])) ++s.count;
    }
    count_.store(count + 1, std::memory_order_release);
  }
  lock_.unlock();
  return id;
}

int64_t Schemas::value_of(const Field& field, const uint8_t* bytes) {
  if (field.width == 8) {
    int64_t value = 0;
    std::memcpy(&value, bytes + field.offset, sizeof value);
    return value;
  }
  int32_t value = 0;
  std::memcpy(&value, bytes + field.offset, sizeof value);
  return field.has_sign ? int64_t{value} : int64_t{static_cast<uint32_t>(value)};
}

void Schemas::decode(uint64_t domain, const PayloadData& payload,
                     capture_file::Range& range) const {
  const uint32_t count = count_.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; ++i) {
    const Schema& s = schemas_[i];
    if (s.id != payload.schema || s.domain != domain) continue;
    for (uint32_t f = 0; f < s.count; ++f) {
      const Field& field = s.fields[f];
      // A size of -1 means "as the schema says".
      if (payload.size != SIZE_MAX && payload.size < field.offset + field.width) continue;
      const int64_t value = value_of(field, static_cast<const uint8_t*>(payload.bytes));
      switch (field.meaning) {
        case Meaning::kCommunicator:
          range.communicator = static_cast<uint64_t>(value);
          break;
        case Meaning::kBytes:
          range.bytes = value;
          break;
        case Meaning::kReduction:
          range.reduction = value;
          break;
        case Meaning::kRoot:
          range.root = value;
          break;
        case Meaning::kPeer:
          range.peer = value;
          break;
        case Meaning::kRanks:
          range.ranks = value;
          break;
        case Meaning::kRank:
          range.rank = value;
          break;
        case Meaning::kDevice:
          range.device = value;
          break;
      }
    }
    return;
  }
}

}  // namespace rehearse::capture::nvtx
