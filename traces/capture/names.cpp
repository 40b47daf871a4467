// SPDX-License-Identifier: Apache-2.0
#include "traces/capture/names.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

#include "traces/capture/pages.hpp"
#include "traces/capture_file/encoder.hpp"

namespace rehearse::capture {

bool Names::prepare() {
  if (texts_ != nullptr) return true;
  places_ = map_pages<std::atomic<uint32_t>>(kPlaces);
  entries_ = map_pages<Entry>(kMostNames);
  texts_ = map_pages<char>(kTextBytes);
  return places_ != nullptr && entries_ != nullptr && texts_ != nullptr;
}

uint32_t Names::find(uint64_t hash, std::string_view text, size_t& place) const {
  for (place = hash % kPlaces;; place = (place + 1) % kPlaces) {
    const uint32_t id = places_[place].load(std::memory_order_acquire);
    if (id == 0) return 0;
    const Entry& e = entries_[id - 1];
    if (e.hash == hash && e.length == text.size() &&
        std::memcmp(e.text, text.data(), text.size()) == 0) {
      return id;
    }
  }
}

uint32_t Names::id(std::string_view text) {
  if (text.empty()) return 0;
  text = text.substr(0, capture_file::kLongestText);
  const uint64_t hash = XXH3_64bits(text.data(), text.size());
  size_t place = 0;
  if (const uint32_t known = find(hash, text, place); known != 0) return known;
  if (!lock_.lock()) return 0;
  uint32_t id = find(hash, text, place);
  const uint32_t count = count_.load(std::memory_order_relaxed);
  if (id == 0 && count < kMostNames && text.size() <= kTextBytes - used_) {
    char* const copy = texts_ + used_;
    std::memcpy(copy, text.data(), text.size());
    used_ += text.size();
    entries_[count] = {hash, copy, static_cast<uint32_t>(text.size())};
    id = count + 1;
    // Counted before it can be found: what the writer sees used, it can write.
    count_.store(id, std::memory_order_release);
    places_[place].store(id, std::memory_order_release);
  }
  lock_.unlock();
  return id;
}

std::string_view Names::text(uint32_t id) const {
  if (id == 0 || id > count()) return {};
  return {entries_[id - 1].text, entries_[id - 1].length};
}

}  // namespace rehearse::capture
