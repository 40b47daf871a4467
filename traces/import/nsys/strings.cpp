// SPDX-License-Identifier: Apache-2.0
#include "traces/import/nsys/strings.hpp"

#include <array>

#include "traces/import/limits.hpp"

namespace rehearse::traces::nsys {
namespace {

constexpr std::array<const char*, 2> kIdAndValue = {"id", "value"};

}  // namespace

Result<void> StringIds::load() {
  if (!database_.has("StringIds") || database_.is_key("StringIds", "id")) return {};
  is_loaded_ = true;
  return database_.each("StringIds", kIdAndValue, [&](const Row& row) {
    if (const auto id = row.integer(0)) {
      loaded_.emplace(*id, row.bytes(1).substr(0, kLongestName));
    }
  });
}

std::optional<std::string> StringIds::find(int64_t id) {
  if (is_loaded_) {
    const auto at = loaded_.find(id);
    return at == loaded_.end() ? std::nullopt : std::optional(at->second);
  }
  if (!database_.has("StringIds", "id") || !database_.has("StringIds", "value"))
    return std::nullopt;
  auto found = database_.text_of("StringIds", "id", "value", id);
  if (!found) {
    if (!error_) error_ = std::move(found).error();
    return std::nullopt;
  }
  if (*found && (*found)->size() > kLongestName) (*found)->resize(kLongestName);
  return *found;
}

uint32_t StringIds::at(int64_t id) {
  const auto known = known_.find(id);
  if (known != known_.end()) {
    if (known->second == 0) ++missing_;
    return known->second;
  }
  const auto found = find(id);
  const uint32_t name = found ? strings_.intern(*found) : 0;
  if (!found) ++missing_;
  known_.emplace(id, name);
  return name;
}

std::string_view StringIds::text(int64_t id) {
  Cached& cached = cache_[static_cast<uint64_t>(id) % cache_.size()];
  if (cached.id == id && id >= 0) return cached.text;
  const auto found = find(id);
  if (!found) ++missing_;
  cached = {id, found.value_or("")};
  return cached.text;
}

}  // namespace rehearse::traces::nsys
