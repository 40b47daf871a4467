// SPDX-License-Identifier: Apache-2.0
// A lock for sections of some nanoseconds between a thread of the program and our own writer. It gives up
// instead of waiting for ever: a signal handler that records while its own thread holds the lock loses an
// event, not the program.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

namespace rehearse::capture {

class SpinLock {
 public:
  [[nodiscard]] bool lock() {
    for (int tries = 0; tries < kTries; ++tries) {
      if (taken_.exchange(1, std::memory_order_acquire) == 0) return true;
      // Whoever holds it was put aside by the scheduler.
      if (tries > kSpins) ::sched_yield();
    }
    return false;
  }
  void unlock() { taken_.store(0, std::memory_order_release); }

 private:
  static constexpr int kSpins = 200, kTries = 20000;
  std::atomic<uint32_t> taken_{0};
};

}  // namespace rehearse::capture
