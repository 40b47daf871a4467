// SPDX-License-Identifier: Apache-2.0
#include "traces/synth/shards.hpp"

#include <utility>

namespace rehearse::synth {

using traces::Collective;

Shards::Shards(Framework& framework, const std::vector<Bytes>& units)
    : framework_(framework), sharded_(framework.size(Group::kData) > 1) {
  const Bytes unit_bytes = Bytes{framework.size(Group::kData)} * framework.costs().element();
  for (Bytes bytes : units)
    units_.push_back({(bytes + unit_bytes - 1) / unit_bytes * unit_bytes, std::nullopt, 0});
}

void Shards::gather(uint32_t unit) {
  Unit& u = units_[unit];
  if (u.address != 0) return;
  u.address = framework_.allocate("unsharded parameters", u.bytes);
  u.gathering =
      framework_.start({Group::kData, Collective::kAllGather, u.bytes, framework_.costs().dtype()});
}

void Shards::use(uint32_t unit) {
  Unit& u = units_[unit];
  if (u.gathering) framework_.join(*std::exchange(u.gathering, std::nullopt));
}

void Shards::release(uint32_t unit) {
  framework_.free("unsharded parameters", std::exchange(units_[unit].address, 0));
}

void Shards::enter_forward(uint32_t unit, uint32_t last) {
  if (!sharded_) return;
  gather(unit);
  if (unit < last) gather(unit + 1);
  use(unit);
}

void Shards::leave_forward(uint32_t unit) {
  if (sharded_) release(unit);
}

void Shards::enter_backward(uint32_t unit, uint32_t first) {
  if (!sharded_) return;
  gather(unit);
  if (unit > first) gather(unit - 1);
  use(unit);
}

void Shards::leave_backward(uint32_t unit) {
  if (!sharded_) return;
  release(unit);
  under_way_.push_back(framework_.start(
      {Group::kData, Collective::kReduceScatter, units_[unit].bytes, framework_.costs().dtype()}));
}

void Shards::finish() {
  for (EventSlot event : under_way_) framework_.join(event);
  under_way_.clear();
}

}  // namespace rehearse::synth
