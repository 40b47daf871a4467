// SPDX-License-Identifier: Apache-2.0
#include "traces/capture/recorder.hpp"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "traces/capture/job.hpp"
#include "traces/capture/messages.hpp"
#include "traces/capture/other_library.hpp"
#include "traces/capture/pages.hpp"

namespace rehearse::capture {
namespace {

// Never destroyed: the writer and threads of the program go on while the process ends, and a destructor would close the
// file under them.
union Lasting {
  constexpr Lasting() : recorder() {}
  ~Lasting() {}  // NOLINT(modernize-use-equals-default): a union with such a member has none
  Lasting(const Lasting&) = delete;
  Lasting& operator=(const Lasting&) = delete;
  Recorder recorder;
};
constinit Lasting g_lasting;
thread_local Thread* t_thread = nullptr;
constexpr time_t kLongestExit = 30;  // seconds

}  // namespace

Recorder& Recorder::instance() { return g_lasting.recorder; }

bool Recorder::start() {
  if (state_.load(std::memory_order_acquire) == State::kOff) return false;
  ::pthread_mutex_lock(&starting_);
  if (state_.load(std::memory_order_acquire) == State::kFresh) {
    const bool started = start_locked();
    state_.store(started ? State::kOn : State::kOff, std::memory_order_release);
  }
  ::pthread_mutex_unlock(&starting_);
  return is_on();
}

bool Recorder::start_locked() {
  if (!prepared_) {
    if (another_library_records()) {
      complain("another capture library records this process; this one stays aside");
      return false;
    }
    read_settings(settings_);
    const auto thread_ends = [](void* t) { instance().release(*static_cast<Thread*>(t)); };
    threads_ = map_pages<Thread>(kMostThreads);
    if (threads_ == nullptr || !names_.prepare() || ::pthread_key_create(&key_, thread_ends) != 0) {
      complain("no memory; nothing is recorded");
      return false;
    }
    ::pthread_atfork(nullptr, nullptr, [] { instance().forked(); });
    std::atexit([] { instance().end(); });
    prepared_ = true;
  }
  if (!blocks_.prepare(settings_.buffer_bytes)) {
    complain("no memory for %zu MiB of buffers; nothing is recorded", settings_.buffer_bytes >> 20);
    return false;
  }
  origin_ = now();
  process_ = ::getpid();
  window_.start(settings_.stretch, origin_);
  ::sem_init(&work_, 0, 0);
  ::sem_init(&answered_, 0, 0);
  if (!writer_.open(settings_) || !writer_.start(*this)) return false;
  put_variables();
  return true;
}

// On a thread of the program: another thread could read them while the program changes them.
void Recorder::put_variables() {
  for (char** v = environ; v != nullptr && *v != nullptr; ++v) {
    const std::string_view whole = *v;
    const size_t equals = whole.find('=');
    if (equals == std::string_view::npos || !is_recorded_variable(whole.substr(0, equals)))
      continue;
    put(Lost::kNvtx, capture_file::Variable{whole.substr(0, equals), whole.substr(equals + 1)});
  }
}

Thread* Recorder::thread() { return t_thread != nullptr ? t_thread : new_thread(); }

Thread* Recorder::new_thread() {
  const auto take = [&](size_t i) {
    bool used = false;
    return threads_[i].used.compare_exchange_strong(used, true, std::memory_order_acq_rel);
  };
  size_t i = 0;
  while (i < kMostThreads && !take(i)) ++i;
  if (i == kMostThreads) return nullptr;
  size_t slots = slots_.load(std::memory_order_relaxed);
  while (slots <= i && !slots_.compare_exchange_weak(slots, i + 1, std::memory_order_release)) {
  }
  Thread& t = threads_[i];
  if (!t.lock.lock()) return nullptr;
  t.id = static_cast<uint32_t>(::syscall(SYS_gettid));
  t.next_event = t.last_event = 0;
  t.depth = 0;
  t.too_deep = 0;
  t.lock.unlock();
  t_thread = &t;
  ::pthread_setspecific(key_, &t);
  char name[32] = "";
  ::prctl(PR_GET_NAME, name);
  put(Lost::kNvtx, capture_file::Thread{t.id, names_.id(name)});
  return &t;
}

void Recorder::release(Thread& t) {
  t_thread = nullptr;
  if (t.lock.lock()) {
    if (t.block != nullptr) hand_over(t);
    t.lock.unlock();
  }
  t.used.store(false, std::memory_order_release);
}

void Recorder::hand_over(Thread& t) {
  t.block->used = t.encoder.bytes().size();
  t.block->records = t.encoder.records();
  blocks_.queue(t.block);
  t.block = nullptr;
  t.encoder = capture_file::Encoder({});
}

bool Recorder::next_block(Thread& t) {
  if (t.block != nullptr) {
    hand_over(t);
    ::sem_post(&work_);
  }
  t.block = blocks_.take();
  if (t.block == nullptr) return false;
  t.encoder = capture_file::Encoder(t.block->bytes);
  return true;
}

void Recorder::found(std::atomic<uint32_t>& known, std::string_view name, uint32_t version) {
  if (version == 0 || known.exchange(version, std::memory_order_relaxed) == version) return;
  put(Lost::kNvtx, capture_file::Library{name, version});
}

void Recorder::ask(Wanted what) {
  if (!is_on() || process_ != ::getpid()) return;
  wanted_.fetch_or(static_cast<uint32_t>(what), std::memory_order_acq_rel);
  ::sem_post(&work_);
  // A file system that hangs must not keep the program from ending.
  timespec deadline{};
  ::clock_gettime(CLOCK_MONOTONIC, &deadline);
  deadline.tv_sec += kLongestExit;
  while (::sem_clockwait(&answered_, CLOCK_MONOTONIC, &deadline) != 0 && errno == EINTR) {
  }
}

void Recorder::end() {
  if (!is_on() || process_ != ::getpid()) return;
  using Of = Stretch::Of;
  const Stretch& stretch = window_.stretch();
  if (stretch.of != Of::kAll && window_.phase(now()) == Window::Phase::kBefore) {
    if (stretch.of == Of::kSteps) {
      complain("no range named like step %lld was seen; name a stretch of time (10s-20s) instead",
               static_cast<long long>(stretch.first));
    } else {
      complain("the program ended before the stretch of time to record began");
    }
  }
  // Ranges that are open belong to the trace too.
  for (size_t i = 0; i < slots_.load(std::memory_order_acquire); ++i) {
    Thread& t = threads_[i];
    if (!t.used.load(std::memory_order_acquire) || !t.lock.lock()) continue;
    for (size_t d = 0; d < t.depth; ++d) {
      if (!t.encoder.put(t.ranges[d]) && next_block(t)) t.encoder.put(t.ranges[d]);
    }
    t.depth = 0;
    t.lock.unlock();
  }
  ask(Wanted::kEnd);
  state_.store(State::kOff, std::memory_order_release);
}

// Only the thread that forked is here, with copies of everything, locked or not.
void Recorder::forked() {
  t_thread = nullptr;
  ::pthread_setspecific(key_, nullptr);
  starting_ = PTHREAD_MUTEX_INITIALIZER;
  names_.forked();
  before_flush_.store(nullptr, std::memory_order_relaxed);
  for (size_t i = 0; i < slots_.load(std::memory_order_relaxed); ++i) {
    Thread& t = threads_[i];
    t.lock.unlock();
    t.block = nullptr;
    t.encoder = capture_file::Encoder({});
    t.depth = 0;
    t.used.store(false, std::memory_order_relaxed);
  }
  slots_.store(0, std::memory_order_relaxed);
  for (auto& lost : lost_) lost.store(0, std::memory_order_relaxed);
  wanted_.store(0, std::memory_order_relaxed);
  events_.store(1, std::memory_order_relaxed);
  writer_.forked();
  // A parent that failed to start leaves its child as silent.
  if (is_on()) state_.store(State::kFresh, std::memory_order_release);
}

}  // namespace rehearse::capture
