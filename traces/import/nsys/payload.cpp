// SPDX-License-Identifier: Apache-2.0
#include "traces/import/nsys/payload.hpp"

#include <array>
#include <cstring>
#include <nlohmann/json.hpp>

namespace rehearse::traces::nsys {
namespace {

constexpr size_t kMostEntries = 4096;
constexpr size_t kLongestJson = 64 << 10;
// domain u32, flags u32, schema u32, flags u32, payload size u64, total size u64.
constexpr size_t kHead = 32;

void set(std::string_view field, int64_t value, activity::RangeFacts& facts) {
  const auto small = [&](int64_t v) { return v >= 0 && v < (int64_t{1} << 24); };
  if (field == "NCCL communicator ID") {
    facts.call.communicator = static_cast<uint64_t>(value);
  } else if (field.starts_with("Message size")) {
    facts.call.message = value;
  } else if (field == "Reduction operation") {
    facts.call.reduction = activity::reduction_of(value);
  } else if (field == "Peer rank" || field.starts_with("Root")) {
    facts.call.peer = small(value) ? static_cast<int32_t>(value) : -1;
  } else if (field == "No. of ranks" && small(value)) {
    facts.ranks = static_cast<uint32_t>(value);
  } else if (field == "Rank" && small(value)) {
    facts.rank = static_cast<uint32_t>(value);
  }
}

// Of NVTX_PAYLOAD_ENTRY_TYPE_*: long, long long, int64, double, size and address. Ranks, roots and
// enumerations take four bytes.
bool is_wide(int64_t type) {
  return (type >= 7 && type <= 10) || type == 17 || type == 18 || type == 20 || type == 22 ||
         type == 23;
}

Reduction reduction_named(std::string_view name) {
  for (const auto& [text, reduction] :
       {std::pair<std::string_view, Reduction>{"Sum", Reduction::kSum},
        {"Prod", Reduction::kProduct},
        {"Product", Reduction::kProduct},
        {"Max", Reduction::kMax},
        {"Min", Reduction::kMin},
        {"Avg", Reduction::kAverage}}) {
    if (name.ends_with(text)) return reduction;
  }
  return Reduction::kNone;
}

// Numbers of a JSON payload may be text, with separators of thousands.
std::optional<int64_t> number_of(const nlohmann::json& value) {
  if (value.is_number_unsigned()) return static_cast<int64_t>(value.get<uint64_t>());
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  const bool hex = text.starts_with("0x");
  uint64_t number = 0;
  bool any = false;
  for (const char c : std::string_view(text).substr(hex ? 2 : 0)) {
    if (c == ',') continue;
    int digit = -1;
    if (c >= '0' && c <= '9') digit = c - '0';
    if (hex && c >= 'a' && c <= 'f') digit = c - 'a' + 10;
    if (hex && c >= 'A' && c <= 'F') digit = c - 'A' + 10;
    if (digit < 0) return std::nullopt;
    number = number * (hex ? 16 : 10) + static_cast<uint64_t>(digit);
    any = true;
  }
  return any ? std::optional(static_cast<int64_t>(number)) : std::nullopt;
}

}  // namespace

Result<void> Payloads::load(Database& database) {
  constexpr std::array<const char*, 4> kColumns = {"schemaId", "name", "type", "offset"};
  size_t entries = 0;
  return database.each("NVTX_PAYLOAD_SCHEMA_ENTRIES", kColumns, [&](const Row& row) {
    const auto schema = row.integer(0);
    const int64_t offset = row.integer(3, 0);
    if (!schema || offset < 0 || ++entries > kMostEntries) return;
    schemas_[*schema].push_back(
        {std::string(row.bytes(1)), row.integer(2, 0), static_cast<uint64_t>(offset)});
  });
}

bool Payloads::from_json(std::string_view text, activity::RangeFacts& facts) {
  if (text.size() > kLongestJson) return false;
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return false;
  for (const auto& [key, value] : json.items()) {
    if (key == "Reduction operation" && value.is_string()) {
      facts.call.reduction = reduction_named(value.get_ref<const std::string&>());
    } else if (const auto number = number_of(value)) {
      set(key, *number, facts);
    }
  }
  return true;
}

bool Payloads::from_bytes(std::string_view bytes, activity::RangeFacts& facts) const {
  if (bytes.size() < kHead) return false;
  uint32_t id = 0;
  std::memcpy(&id, bytes.data() + 8, sizeof id);
  const auto schema = schemas_.find(id);
  if (schema == schemas_.end()) return false;
  const std::string_view payload = bytes.substr(kHead);
  for (const Entry& e : schema->second) {
    const size_t width = is_wide(e.type) ? 8 : 4;
    if (e.offset > payload.size() || payload.size() - e.offset < width) return false;
    if (width == 8) {
      uint64_t value = 0;
      std::memcpy(&value, payload.data() + e.offset, width);
      set(e.name, static_cast<int64_t>(value), facts);
    } else {
      int32_t value = 0;
      std::memcpy(&value, payload.data() + e.offset, width);
      set(e.name, value, facts);
    }
  }
  return true;
}

}  // namespace rehearse::traces::nsys
