// SPDX-License-Identifier: Apache-2.0
#include "traces/capture/nvtx_ranges.hpp"

#include <algorithm>

#include "traces/capture/activity.hpp"
#include "traces/capture/recorder.hpp"

namespace rehearse::capture::nvtx {
namespace {

Recorder& recorder() { return Recorder::instance(); }

// What begins a step may open or close the stretch that is recorded.
void look_for_step(uint32_t name, int64_t at) {
  Window& w = recorder().window();
  if (!w.by_steps()) return;
  const int64_t step = Window::step_of(recorder().names().text(name));
  if (step < 0) return;
  const bool before = w.holds(at);
  w.step_began(step, at);
  if (!before && w.holds(at)) activity::stretch_began();
}

// Writes a range that has begun at range.start and ends now, when it lies in the stretch.
void finish(capture_file::Range& range) {
  const int64_t at = now();
  const int64_t began = range.start + recorder().origin();
  range.duration = std::max<int64_t>(at - began, 0);
  Window& w = recorder().window();
  if (w.by_steps()) {
    const int64_t step = Window::step_of(recorder().names().text(range.name));
    if (step >= 0) w.step_ended(step, at);
  }
  if (w.holds(began)) recorder().put(Lost::kNvtx, range);
}

}  // namespace

int Ranges::push(uint64_t domain, capture_file::Range& range) {
  Thread* const t = recorder().thread();
  if (t == nullptr) return -1;
  const int64_t at = now();
  look_for_step(range.name, at);
  range.start = recorder().since_origin(at);
  range.thread = t->id;
  range.domain = static_cast<uint32_t>(domain);
  // The writer reads open ranges when the process ends.
  if (!t->lock.lock()) return -1;
  int depth = 0;
  if (t->depth == kDeepestRange) {
    ++t->too_deep;
    depth = static_cast<int>(kDeepestRange);
  } else {
    for (size_t i = 0; i < t->depth; ++i) depth += t->domains[i] == domain ? 1 : 0;
    t->ranges[t->depth] = range;
    t->domains[t->depth++] = domain;
  }
  const bool lost = t->too_deep > 0;
  t->lock.unlock();
  if (lost) recorder().lose(Lost::kNvtx, 1);
  return depth;
}

int Ranges::pop(uint64_t domain) {
  Thread* const t = recorder().thread();
  if (t == nullptr || !t->lock.lock()) return -1;
  if (t->too_deep > 0) {
    --t->too_deep;
    t->lock.unlock();
    return static_cast<int>(kDeepestRange);
  }
  size_t i = t->depth;
  while (i > 0 && t->domains[i - 1] != domain) --i;
  if (i == 0) {
    t->lock.unlock();
    return -1;
  }
  capture_file::Range range = t->ranges[i - 1];
  int depth = 0;
  for (size_t k = 0; k + 1 < i; ++k) depth += t->domains[k] == domain ? 1 : 0;
  std::copy(t->ranges.begin() + static_cast<ptrdiff_t>(i),
            t->ranges.begin() + static_cast<ptrdiff_t>(t->depth),
            t->ranges.begin() + static_cast<ptrdiff_t>(i - 1));
  std::copy(t->domains.begin() + static_cast<ptrdiff_t>(i),
            t->domains.begin() + static_cast<ptrdiff_t>(t->depth),
            t->domains.begin() + static_cast<ptrdiff_t>(i - 1));
  --t->depth;
  t->lock.unlock();
  finish(range);
  return depth;
}

uint64_t Ranges::start(uint64_t domain, capture_file::Range& range) {
  const uint64_t id = next_.fetch_add(1, std::memory_order_relaxed);
  Thread* const t = recorder().thread();
  const int64_t at = now();
  look_for_step(range.name, at);
  range.start = recorder().since_origin(at);
  range.thread = t == nullptr ? 0 : t->id;
  range.domain = static_cast<uint32_t>(domain);
  range.process_wide = true;
  if (!lock_.lock()) return id;
  Open& place = open_[id % kMostOpen];
  const bool free = place.id == 0;
  if (free) place = {id, range};
  lock_.unlock();
  if (!free) recorder().lose(Lost::kNvtx, 1);
  return id;
}

void Ranges::end(uint64_t id) {
  if (!lock_.lock()) return;
  Open& place = open_[id % kMostOpen];
  const bool mine = id != 0 && place.id == id;
  capture_file::Range range{};
  if (mine) {
    range = place.range;
    place.id = 0;
  }
  lock_.unlock();
  if (mine) finish(range);
}

void Ranges::mark(uint64_t domain, capture_file::Range& range) {
  Thread* const t = recorder().thread();
  const int64_t at = now();
  look_for_step(range.name, at);
  if (t == nullptr || !recorder().window().holds(at)) return;
  range.start = recorder().since_origin(at);
  range.thread = t->id;
  range.domain = static_cast<uint32_t>(domain);
  recorder().put(Lost::kNvtx, range);
}

}  // namespace rehearse::capture::nvtx
