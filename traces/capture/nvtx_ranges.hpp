// SPDX-License-Identifier: Apache-2.0
// Ranges that are open: those of push and pop per thread, those of start and end in one table, because they
// may end on another thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "traces/capture/spin_lock.hpp"
#include "traces/capture_file/records.hpp"

namespace rehearse::capture::nvtx {

class Ranges {
 public:
  // `range` has a name and what its payload says; the rest is filled in. The depth it stands at.
  int push(uint64_t domain, capture_file::Range& range);
  // The depth that was left; -1 when nothing was open.
  int pop(uint64_t domain);
  [[nodiscard]] uint64_t start(uint64_t domain, capture_file::Range& range);
  void end(uint64_t id);
  void mark(uint64_t domain, capture_file::Range& range);

 private:
  struct Open {
    uint64_t id;  // 0: free
    capture_file::Range range;
  };
  static constexpr size_t kMostOpen = 4096;
  SpinLock lock_;
  std::array<Open, kMostOpen> open_{};
  std::atomic<uint64_t> next_{1};
};

}  // namespace rehearse::capture::nvtx
