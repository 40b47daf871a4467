// SPDX-License-Identifier: Apache-2.0
// Texts as numbers, for the life of the process (they survive a fork, so that handles given to NVTX stay
// right). Looking a known text up takes no lock; ids count from 1, 0 is "". Any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "traces/capture/spin_lock.hpp"

namespace rehearse::capture {

class Names {
 public:
  // Memory for the table; false when there is none. Once per process.
  [[nodiscard]] bool prepare();
  // Only the first 15,000 bytes count. 0 when the table is full.
  [[nodiscard]] uint32_t id(std::string_view text);
  [[nodiscard]] uint32_t id(const char* text) {
    return text == nullptr ? 0 : id(std::string_view(text));
  }
  // Ids given so far are 1 to count().
  [[nodiscard]] uint32_t count() const { return count_.load(std::memory_order_acquire); }
  [[nodiscard]] std::string_view text(uint32_t id) const;
  // In the child of a fork: whoever held the lock is not there.
  void forked() { lock_.unlock(); }

 private:
  static constexpr size_t kMostNames = size_t{1} << 17;
  static constexpr size_t kPlaces = size_t{1} << 18;
  static constexpr size_t kTextBytes = size_t{256} << 20;
  struct Entry {
    uint64_t hash;
    const char* text;
    uint32_t length;
  };
  // Index of the entry in a place is stored plus one.
  [[nodiscard]] uint32_t find(uint64_t hash, std::string_view text, size_t& place) const;

  SpinLock lock_;
  std::atomic<uint32_t> count_{0};
  std::atomic<uint32_t>* places_ = nullptr;
  Entry* entries_ = nullptr;
  char* texts_ = nullptr;
  size_t used_ = 0;
};

}  // namespace rehearse::capture
