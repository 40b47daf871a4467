// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/rooted.hpp"

#include <algorithm>

namespace rehearse::sim {

RootedCall::RootedCall(const DeclaredShape& shape, traces::Collective collective,
                       const std::vector<bool>& absent)
    : shape_(shape),
      chain_(collective == traces::Collective::kBroadcast ||
             collective == traces::Collective::kReduce),
      here_(absent),
      hop_started_(shape.hops.size(), false),
      hop_done_(shape.hops.size(), false) {
  if (chain_) {
    position_.assign(here_.size(), 0);
    for (uint32_t h = 0; h < shape.hops.size(); ++h) {
      position_[shape.hops[h].from] = h;
      position_[shape.hops[h].to] = h + 1;
    }
  } else {
    open_hops_.assign(here_.size(), 0);
    for (const DeclaredHop& hop : shape.hops) {
      ++open_hops_[hop.from];
      ++open_hops_[hop.to];
    }
  }
}

void RootedCall::arrive(uint32_t member) { here_[member] = true; }

std::vector<uint32_t> RootedCall::take_startable() {
  std::vector<uint32_t> out;
  const auto hops = static_cast<uint32_t>(shape_.hops.size());
  if (!chain_) {
    for (uint32_t h = 0; h < hops; ++h) {
      const DeclaredHop& hop = shape_.hops[h];
      if (hop_started_[h] || !here_[hop.from]) continue;
      if (!here_[hop.to] && shape_.bytes > shape_.credit) continue;
      hop_started_[h] = true;
      out.push_back(h);
    }
    return out;
  }
  const uint32_t members = hops + 1;
  const auto at = [&](uint32_t position) {
    return position < hops ? shape_.hops[position].from : shape_.hops[hops - 1].to;
  };
  while (prefix_ < members && here_[at(prefix_)]) ++prefix_;
  uint32_t may_start = hops;
  if (prefix_ < members) {
    const Bytes need = shape_.credit > 0
                           ? std::max<Bytes>(1, (shape_.bytes + shape_.credit - 1) / shape_.credit)
                           : members;
    const Bytes ahead = static_cast<Bytes>(prefix_) - need + 1;
    may_start = static_cast<uint32_t>(std::clamp<Bytes>(ahead, 0, prefix_));
  }
  for (; started_ < may_start; ++started_) out.push_back(started_);
  return out;
}

void RootedCall::hop_ended(uint32_t hop) {
  if (hop_done_[hop]) return;
  hop_done_[hop] = true;
  if (!chain_) {
    --open_hops_[shape_.hops[hop].from];
    --open_hops_[shape_.hops[hop].to];
  }
  while (done_prefix_ < hop_done_.size() && hop_done_[done_prefix_]) ++done_prefix_;
}

void RootedCall::all_hops_ended() {
  for (uint32_t h = 0; h < hop_done_.size(); ++h) hop_ended(h);
}

bool RootedCall::may_leave(uint32_t member) const {
  if (!here_[member]) return false;
  if (!chain_) return open_hops_[member] == 0;
  return done_prefix_ >= std::min<size_t>(position_[member] + 1, hop_done_.size());
}

}  // namespace rehearse::sim
