// SPDX-License-Identifier: Apache-2.0
// The memory that records go through: a fixed number of blocks, each filled by one thread, queued when
// full, written and given back by the writer. When none is left, threads lose records; they never wait.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "traces/capture/spin_lock.hpp"

namespace rehearse::capture {

constexpr size_t kBlockBytes = size_t{64} << 10;

struct Block {
  Block* next;
  size_t used;       // bytes
  uint64_t records;  // in them
  uint8_t bytes[kBlockBytes - 24];
  [[nodiscard]] std::span<const uint8_t> content() const { return {bytes, used}; }
};
static_assert(sizeof(Block) == kBlockBytes);

class Blocks {
 public:
  // False when there is no memory. Called again (in the child of a fork) it frees all.
  [[nodiscard]] bool prepare(size_t bytes);
  // nullptr when none is left.
  [[nodiscard]] Block* take();
  void give_back(Block* block);
  void queue(Block* full);
  // All queued so far, oldest first, linked by `next`.
  [[nodiscard]] Block* queued();

 private:
  SpinLock lock_;
  Block* memory_ = nullptr;
  size_t count_ = 0;
  size_t fresh_ = 0;  // blocks never used yet; their pages are not taken up
  Block* free_ = nullptr;
  Block* first_ = nullptr;
  Block* last_ = nullptr;
};

}  // namespace rehearse::capture
