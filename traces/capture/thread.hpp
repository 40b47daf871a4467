// SPDX-License-Identifier: Apache-2.0
// What belongs to one thread that records: the block it fills and its open NVTX ranges. Its owner and the
// writer share it under its lock; slots are used again when threads end.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "traces/capture/blocks.hpp"
#include "traces/capture/spin_lock.hpp"
#include "traces/capture_file/encoder.hpp"

namespace rehearse::capture {

constexpr size_t kMostThreads = 4096;
constexpr size_t kDeepestRange = 128;

struct Thread {
  SpinLock lock;
  std::atomic<bool> used{false};
  uint32_t id = 0;  // the kernel's
  Block* block = nullptr;
  capture_file::Encoder encoder{{}};
  // Ids of NCCL events, taken from the session in stretches.
  uint64_t next_event = 0, last_event = 0;
  // Ranges of all domains that are open, innermost last.
  std::array<capture_file::Range, kDeepestRange> ranges{};
  std::array<uint64_t, kDeepestRange> domains{};
  size_t depth = 0;
  uint64_t too_deep = 0;  // open ranges beyond
};

}  // namespace rehearse::capture
