// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/replay/evaluator.hpp"

namespace rehearse::sim {

void Evaluator::timer(Nanos when, uint64_t tag) {
  fabric_.timer(when, tag_of(Tag::kDirector, 0, 0) | tag);
}

bool Evaluator::set_capacity(LinkId link, BytesPerSec capacity) {
  return fabric_.set_capacity(link, capacity);
}

void Evaluator::start_flow(RouteId route, double bytes, uint64_t tag) {
  fabric_.start(route, bytes, tag_of(Tag::kDirector, 0, 0) | tag);
}

void Evaluator::set_gpu_speed(size_t r, double speed) {
  lanes_[r].set_rate(now(), {std::max(0.0, speed), lanes_[r].rate().beside});
  queue(r);
}

void Evaluator::stop_rank(size_t r) {
  lanes_[r].stop(now());
  const traces::RankProgram& rank = program_.ranks[r];
  for (size_t c = 0; c < rank.calls.size(); ++c) {
    if (out_.arrival[r][c] < 0 || out_.end[r][rank.call_op[c]] >= 0) continue;
    const uint32_t id = out_.meeting_of[r][c];
    out_.meetings[id].halted = true;
    for (Tag what : {Tag::kWhole, Tag::kHop, Tag::kMessage}) {
      fabric_.halt(kTagKind | kTagId, tag_of(what, 0, id));
    }
  }
  fabric_.halt(kTagKind | kTagId, tag_of(Tag::kTransfer, 0, r));
}

Nanos Evaluator::crossing_since(LinkId link) const {
  return sim::crossing_since(out_, shapes_, fabric_, link);
}

bool Evaluator::idle() const {
  return !fabric_.moves_other_than(kTagKind, tag_of(Tag::kDirector, 0, 0)) &&
         std::all_of(states_.begin(), states_.end(),
                     [&](const RankState& state) { return state.wake <= now(); });
}

}  // namespace rehearse::sim
