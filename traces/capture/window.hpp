// SPDX-License-Identifier: Apache-2.0
// The part of a run that is recorded: all of it, a stretch of seconds, or from the mark of one step to the
// end of another. What is recorded is decided by time alone, so that every door cuts at the same moment.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "traces/capture/stretch.hpp"

namespace rehearse::capture {

class Window {
 public:
  // Before any other call, and again in the child of a fork. `origin` is Unix nanoseconds.
  void start(const Stretch& stretch, int64_t origin);
  [[nodiscard]] bool holds(int64_t at) const {
    return at >= from_.load(std::memory_order_relaxed) && at < to_.load(std::memory_order_relaxed);
  }
  // True when ranges have to be looked at for steps.
  [[nodiscard]] bool by_steps() const { return stretch_.of == Stretch::Of::kSteps; }
  // A range with this name began or ended; -1 when it is no step.
  [[nodiscard]] static int64_t step_of(std::string_view name);
  void step_began(int64_t step, int64_t at);
  void step_ended(int64_t step, int64_t at);

  enum class Phase : uint8_t { kBefore, kInside, kAfter };
  [[nodiscard]] Phase phase(int64_t at) const;
  // The next moment at which the phase changes by time, or INT64_MAX.
  [[nodiscard]] int64_t next_change(int64_t at) const;
  [[nodiscard]] const Stretch& stretch() const { return stretch_; }

 private:
  Stretch stretch_;
  std::atomic<int64_t> from_{0}, to_{INT64_MAX};
};

}  // namespace rehearse::capture
