// SPDX-License-Identifier: Apache-2.0
#include "traces/capture/window.hpp"

#include "traces/capture_file/step_names.hpp"

namespace rehearse::capture {
void Window::start(const Stretch& stretch, int64_t origin) {
  stretch_ = stretch;
  int64_t from = INT64_MIN, to = INT64_MAX;
  if (stretch.of == Stretch::Of::kTime) {
    from = origin + stretch.first;
    to = origin + stretch.last;
  } else if (stretch.of == Stretch::Of::kSteps) {
    from = INT64_MAX;
  }
  from_.store(from, std::memory_order_relaxed);
  to_.store(to, std::memory_order_relaxed);
}

int64_t Window::step_of(std::string_view name) {
  const auto step = capture_file::step_of(name);
  return step ? step->number : -1;
}

void Window::step_began(int64_t step, int64_t at) {
  int64_t closed = INT64_MAX;
  if (step >= stretch_.first && step <= stretch_.last) {
    from_.compare_exchange_strong(closed, at, std::memory_order_relaxed);
  } else if (step > stretch_.last && from_.load(std::memory_order_relaxed) != INT64_MAX) {
    to_.compare_exchange_strong(closed, at, std::memory_order_relaxed);
  }
}

void Window::step_ended(int64_t step, int64_t at) {
  int64_t closed = INT64_MAX;
  if (step == stretch_.last && from_.load(std::memory_order_relaxed) != INT64_MAX) {
    // The range itself belongs to the stretch.
    to_.compare_exchange_strong(closed, at + 1, std::memory_order_relaxed);
  }
}

Window::Phase Window::phase(int64_t at) const {
  if (at < from_.load(std::memory_order_relaxed)) return Phase::kBefore;
  return at < to_.load(std::memory_order_relaxed) ? Phase::kInside : Phase::kAfter;
}

int64_t Window::next_change(int64_t at) const {
  if (stretch_.of != Stretch::Of::kTime) return INT64_MAX;
  const int64_t from = from_.load(std::memory_order_relaxed),
                to = to_.load(std::memory_order_relaxed);
  return at < from ? from : at < to ? to : INT64_MAX;
}

}  // namespace rehearse::capture
