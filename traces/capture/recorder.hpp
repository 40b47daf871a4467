// SPDX-License-Identifier: Apache-2.0
// Records of one process on their way to its file. A door (CUPTI, NVTX, NCCL) asks on() first, which starts
// a session at the first call; put() then encodes into the calling thread's block, and a thread of our own
// writes the blocks out every second, when many are full, and at exit. Nothing here throws, waits for the
// disk on a thread of the program, or uses the program's allocator. What cannot be done is one message
// (messages.hpp) and recording goes on without it, or stops.
//
// There is one instance per process, because doors are C functions that nobody passes a context to. In the
// child of a fork everything is fresh again, and a session of its own begins when it records.
#pragma once

#include <pthread.h>
#include <semaphore.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <string_view>

#include "traces/capture/blocks.hpp"
#include "traces/capture/names.hpp"
#include "traces/capture/settings.hpp"
#include "traces/capture/thread.hpp"
#include "traces/capture/window.hpp"
#include "traces/capture/writer.hpp"
#include "traces/capture_file/records.hpp"

namespace rehearse::capture {

// Where records were lost (CaptureDrops.source).
enum class Lost : uint32_t { kByCupti = 1, kActivity = 2, kNvtx = 3, kNccl = 4, kOnDisk = 5 };
constexpr size_t kLostKinds = 6;

// Unix nanoseconds, the clock of CUPTI's records too.
inline int64_t now() {
  timespec t{};
  ::clock_gettime(CLOCK_REALTIME, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

class Recorder {
 public:
  [[nodiscard]] static Recorder& instance();

  // True while a session is open; opens one when there was none.
  [[nodiscard]] bool on() {
    return state_.load(std::memory_order_acquire) == State::kOn || start();
  }
  // Without opening one.
  [[nodiscard]] bool is_on() const { return state_.load(std::memory_order_acquire) == State::kOn; }

  // After on():
  [[nodiscard]] const Settings& settings() const { return settings_; }
  [[nodiscard]] int64_t origin() const { return origin_; }
  [[nodiscard]] int64_t since_origin(int64_t at) const { return at - origin_; }
  [[nodiscard]] Window& window() { return window_; }
  [[nodiscard]] Names& names() { return names_; }

  // The calling thread's slot; nullptr when there are too many threads.
  [[nodiscard]] Thread* thread();
  template <typename Record>
  bool put(Lost kind, const Record& record) {
    Thread* const t = thread();
    if (t == nullptr || !t->lock.lock()) return lose(kind, 1);
    bool done = t->encoder.put(record);
    if (!done && next_block(*t)) done = t->encoder.put(record);
    t->lock.unlock();
    return done || lose(kind, 1);
  }
  // Counts records that were lost; false.
  bool lose(Lost kind, uint64_t records) {
    lost_[static_cast<size_t>(kind)].fetch_add(records, std::memory_order_relaxed);
    return false;
  }
  // An id for an event of NCCL, from 1, never used twice in a session.
  [[nodiscard]] uint64_t event_id(Thread& t) {
    if (t.next_event == t.last_event) {
      t.next_event = events_.fetch_add(kIdsAtOnce, std::memory_order_relaxed);
      t.last_event = t.next_event + kIdsAtOnce;
    }
    return t.next_event++;
  }
  // The version of a library, as it gives it; told in the trace once.
  void found_cupti(uint32_t version) { found(cupti_version_, "cupti", version); }
  void found_nccl(uint32_t version) { found(nccl_version_, "nccl", version); }

  // Called by the writer before each flush; `last`: nothing will come after it.
  using BeforeFlush = void (*)(bool last);
  void before_flush(BeforeFlush what) { before_flush_.store(what, std::memory_order_release); }
  // Asks the writer for a last flush of what is recorded so far, and waits for it.
  void flush_at_exit() { ask(Wanted::kFlush); }

 private:
  friend class Writer;
  enum class State : uint8_t { kFresh, kOn, kOff };
  enum class Wanted : uint32_t { kNothing = 0, kFlush = 1, kEnd = 2 };
  static constexpr uint64_t kIdsAtOnce = 4096;

  [[nodiscard]] bool start();
  [[nodiscard]] bool start_locked();
  void put_variables();
  [[nodiscard]] Thread* new_thread();
  void release(Thread& t);
  // With the thread's lock held: its block is full, or there is none yet.
  [[nodiscard]] bool next_block(Thread& t);
  void hand_over(Thread& t);
  void found(std::atomic<uint32_t>& known, std::string_view name, uint32_t version);
  void ask(Wanted what);
  void end();
  void forked();

  std::atomic<State> state_{State::kFresh};
  pthread_mutex_t starting_ = PTHREAD_MUTEX_INITIALIZER;
  bool prepared_ = false;  // handlers of fork, exit and the end of threads are there
  pthread_key_t key_{};
  Settings settings_;
  Window window_;
  Names names_;
  Blocks blocks_;
  Thread* threads_ = nullptr;
  std::atomic<size_t> slots_{0};  // of threads_ that were ever used
  std::array<std::atomic<uint64_t>, kLostKinds> lost_{};
  std::atomic<uint64_t> events_{1};
  std::atomic<uint32_t> cupti_version_{0}, nccl_version_{0};
  std::atomic<BeforeFlush> before_flush_{nullptr};
  int64_t origin_ = 0;
  int process_ = 0;

  sem_t work_{}, answered_{};
  std::atomic<uint32_t> wanted_{0};
  Writer writer_;
};

}  // namespace rehearse::capture
