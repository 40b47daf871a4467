// SPDX-License-Identifier: Apache-2.0
#include "sim/fabric/lone_route.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace rehearse::sim {

void LoneRoute::serve(Nanos now) {
  if (flows_.empty()) {
    served_ = 0;  // small numbers are exact
  } else {
    const double time = static_cast<double>(now - as_of_) - past_;
    served_ += rate_ * time / static_cast<double>(flows_.size());
  }
  as_of_ = now;
  past_ = 0;
}

void LoneRoute::start(Nanos now, double bytes, uint64_t tag) {
  serve(now);
  flows_.push_back({served_ + bytes, order_++, tag});
  std::push_heap(flows_.begin(), flows_.end(), std::greater<>());
}

bool LoneRoute::halt(Nanos now, uint64_t mask, uint64_t bits) {
  serve(now);
  const size_t gone =
      std::erase_if(flows_, [&](const Flow& flow) { return (flow.tag & mask) == bits; });
  std::make_heap(flows_.begin(), flows_.end(), std::greater<>());
  return gone > 0;
}

double LoneRoute::to_next_end() const {
  const double left = std::max(0.0, flows_.front().until - served_);
  return past_ + left * static_cast<double>(flows_.size()) / rate_;
}

Nanos LoneRoute::next_end() const {
  if (flows_.empty() || !(rate_ > 0)) return -1;
  const double time = std::nearbyint(to_next_end());
  constexpr Nanos kLatest = std::numeric_limits<Nanos>::max();
  if (!(time < static_cast<double>(kLatest / 2)) || as_of_ > kLatest / 2) return kLatest;
  return as_of_ + static_cast<Nanos>(time);
}

std::vector<uint64_t> LoneRoute::take_ended(Nanos now) {
  std::vector<Flow> ended;
  if (!flows_.empty()) {
    // The end itself lies within half a nanosecond of `now`.
    past_ = to_next_end() - static_cast<double>(now - as_of_);
    as_of_ = now;
    served_ = std::max(served_, flows_.front().until);
    // What differs by less than is moved in a nanosecond ends together.
    const double until = served_ + rate_ * 0.5 / static_cast<double>(flows_.size());
    while (!flows_.empty() && flows_.front().until <= until) {
      ended.push_back(flows_.front());
      std::pop_heap(flows_.begin(), flows_.end(), std::greater<>());
      flows_.pop_back();
    }
  }
  std::sort(ended.begin(), ended.end(),
            [](const Flow& a, const Flow& b) { return a.order < b.order; });
  std::vector<uint64_t> tags;
  for (const Flow& flow : ended) tags.push_back(flow.tag);
  return tags;
}

}  // namespace rehearse::sim
