// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/rooted.hpp"

#include <algorithm>

namespace rehearse::sim {

RootedCall::RootedCall(const DeclaredShape& shape, traces::Collective collective,
                       const std::vector<bool>& absent)
    : shape_(shape),
      chain_(collective == traces::Collective::kBroadcast ||
             collective == traces::Collective::kReduce),
      hops_(shape.hops.size()) {
  for (const DeclaredHop& hop : shape.hops) {
    for (const uint32_t member : {hop.from, hop.to}) seats_.push_back({member});
  }
  const auto by_member = [](const Seat& a, const Seat& b) { return a.member < b.member; };
  std::sort(seats_.begin(), seats_.end(), by_member);
  const auto same = [](const Seat& a, const Seat& b) { return a.member == b.member; };
  seats_.erase(std::unique(seats_.begin(), seats_.end(), same), seats_.end());
  for (Seat& seat : seats_) seat.here = absent[seat.member];
  for (uint32_t h = 0; h < shape.hops.size(); ++h) {
    Seat& from = seats_[seat_of(shape.hops[h].from)];
    Seat& to = seats_[seat_of(shape.hops[h].to)];
    from.position = h;
    to.position = h + 1;
    ++from.open_hops;
    ++to.open_hops;
  }
}

size_t RootedCall::seat_of(uint32_t member) const {
  const auto at = std::lower_bound(seats_.begin(), seats_.end(), member,
                                   [](const Seat& seat, uint32_t m) { return seat.member < m; });
  return at != seats_.end() && at->member == member ? static_cast<size_t>(at - seats_.begin())
                                                    : seats_.size();
}

void RootedCall::arrive(uint32_t member) {
  if (const size_t at = seat_of(member); at < seats_.size()) seats_[at].here = true;
}

RootedCall::Hops RootedCall::take_startable() {
  Hops out;
  const auto hops = static_cast<uint32_t>(shape_.hops.size());
  if (!chain_) {
    for (uint32_t h = 0; h < hops; ++h) {
      const DeclaredHop& hop = shape_.hops[h];
      if (hops_[h].started || !seats_[seat_of(hop.from)].here) continue;
      if (!seats_[seat_of(hop.to)].here && shape_.bytes > shape_.credit) continue;
      hops_[h].started = true;
      out.push_back(h);
    }
    return out;
  }
  const uint32_t members = hops + 1;
  const auto at = [&](uint32_t position) {
    return position < hops ? shape_.hops[position].from : shape_.hops[hops - 1].to;
  };
  while (prefix_ < members && seats_[seat_of(at(prefix_))].here) ++prefix_;
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
  if (hops_[hop].done) return;
  hops_[hop].done = true;
  --seats_[seat_of(shape_.hops[hop].from)].open_hops;
  --seats_[seat_of(shape_.hops[hop].to)].open_hops;
  while (done_prefix_ < hops_.size() && hops_[done_prefix_].done) ++done_prefix_;
}

void RootedCall::all_hops_ended() {
  for (uint32_t h = 0; h < hops_.size(); ++h) hop_ended(h);
}

bool RootedCall::may_leave(uint32_t member) const {
  const size_t at = seat_of(member);
  if (at == seats_.size()) return true;  // nothing comes from it or goes to it
  const Seat& seat = seats_[at];
  if (!seat.here) return false;
  if (!chain_) return seat.open_hops == 0;
  return done_prefix_ >= std::min<size_t>(seat.position + 1, hops_.size());
}

}  // namespace rehearse::sim
