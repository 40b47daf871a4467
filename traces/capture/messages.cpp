// SPDX-License-Identifier: Apache-2.0
#include "traces/capture/messages.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "traces/capture/spin_lock.hpp"

namespace rehearse::capture {
namespace {

constexpr size_t kMostMessages = 16;

struct Messages {
  SpinLock lock;
  std::atomic<size_t> count{0};
  char texts[kMostMessages][kLongestMessage] = {};
};
constinit Messages g_messages;

// A line to stderr. Nobody may be reading it any more: SIGPIPE must not end the program then.
void tell(const char* text) {
  char line[kLongestMessage + 32];
  const int length = std::snprintf(line, sizeof line, "rehearse capture: %s\n", text);
  sigset_t broken, before, pending;
  sigemptyset(&broken);
  sigaddset(&broken, SIGPIPE);
  if (::pthread_sigmask(SIG_BLOCK, &broken, &before) != 0) return;
  sigemptyset(&pending);
  ::sigpending(&pending);
  const bool was_pending = sigismember(&pending, SIGPIPE) == 1;
  if (::write(STDERR_FILENO, line, static_cast<size_t>(length)) < 0 && !was_pending) {
    const timespec now{};
    ::sigtimedwait(&broken, nullptr, &now);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

void complain(const char* format, ...) {
  char text[kLongestMessage];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  Messages& m = g_messages;
  if (!m.lock.lock()) return;
  const size_t count = m.count.load(std::memory_order_relaxed);
  bool is_new = count < kMostMessages;
  for (size_t i = 0; i < count && is_new; ++i) is_new = std::strcmp(m.texts[i], text) != 0;
  if (is_new) {
    std::strcpy(m.texts[count], text);
    m.count.store(count + 1, std::memory_order_release);
  }
  m.lock.unlock();
  if (is_new) tell(text);
}

size_t messages() { return g_messages.count.load(std::memory_order_acquire); }
const char* message(size_t i) { return g_messages.texts[i]; }

}  // namespace rehearse::capture
