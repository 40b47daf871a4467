// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/evaluator.hpp"

namespace rehearse::sim {

void Evaluator::on_timer(uint64_t tag) {
  if ((++events_ & 0xfff) == 0 && reporter_.interrupted()) return fabric_.stop();
  timer_fired(tag);
  settle_queued();
}

void Evaluator::timer_fired(uint64_t tag) {
  const uint32_t id = id_of(tag), part = part_of(tag);
  switch (kind_of(tag)) {
    case Tag::kWhole:
      return start_whole(id);
    case Tag::kHop:
      return start_hop(id, part, tag);
    case Tag::kLateMember:
      return leave_those_who_may(id);
    case Tag::kWake:
      return queue(id);
    case Tag::kDirector:
      return options_.director->on_timer(*this, tag & ~kTagKind);
    case Tag::kBegin:
      return options_.director->begin(*this);
    case Tag::kTransfer:
      if (!lanes_[id].stopped() && transfers_.start(tag, fabric_, out_)) end_transfer(tag);
      return;
    case Tag::kMessage:
      return;  // flows only
  }
}

void Evaluator::on_flow_end(uint64_t tag) {
  flow_ended(tag);
  settle_queued();
}

void Evaluator::flow_ended(uint64_t tag) {
  const uint32_t id = id_of(tag), part = part_of(tag);
  switch (kind_of(tag)) {
    case Tag::kWhole:
      if (--out_.meetings[id].flows_left == 0) whole_ended(id);
      return;
    case Tag::kHop:
      return hop_ended(id, part);
    case Tag::kMessage:
      return message_ended(id, part);
    case Tag::kTransfer:
      if (transfers_.flow_ended(tag)) end_transfer(tag);
      return;
    case Tag::kDirector:
      return options_.director->on_flow_end(*this, tag & ~kTagKind);
    default:
      return;
  }
}

void Evaluator::end_transfer(uint64_t tag) {
  lanes_[id_of(tag)].leave(transfers_.operation(tag), now());
  --states_[id_of(tag)].open;
  queue(id_of(tag));
}

void Evaluator::on_soon(uint64_t tag, Soon how) const {
  const uint32_t id = id_of(tag);
  switch (kind_of(tag)) {
    case Tag::kWake:
      return how == Soon::kNext ? lanes_[id].fetch() : fetch(id);
    case Tag::kWhole:
    case Tag::kHop:
    case Tag::kLateMember:
      __builtin_prefetch(&out_.meetings[id]);
      if (how == Soon::kLater) return __builtin_prefetch(&out_.calls_begin[id]);
      // The others of a larger call are fetched one by one as they are settled.
      for (uint32_t i = 0; i < 2 && out_.calls_begin[id] + i < out_.calls_begin[id + 1]; ++i) {
        fetch(out_.calls_of[out_.calls_begin[id] + i].rank);
      }
      return;
    default:
      return;
  }
}

}  // namespace rehearse::sim
