// SPDX-License-Identifier: Apache-2.0
// Fully sharded data parallel (ZeRO 3): each unit's parameters are gathered before its forward and
// again before its backward pass, one unit ahead, and freed after; its gradients are
// reduce-scattered.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/synth/framework.hpp"

namespace rehearse::synth {

class Shards {
 public:
  // `units`: parameter bytes of each unit (a layer) in forward order.
  Shards(Framework& framework, const std::vector<Bytes>& units);
  // Around the forward pass of units first..last (inclusive), called in ascending order.
  void enter_forward(uint32_t unit, uint32_t last);
  void leave_forward(uint32_t unit);
  // Around the backward pass, called in descending order down to `first`.
  void enter_backward(uint32_t unit, uint32_t first);
  void leave_backward(uint32_t unit);
  // The compute stream waits for the gradients that are under way.
  void finish();

 private:
  void gather(uint32_t unit);
  void use(uint32_t unit);
  void release(uint32_t unit);

  struct Unit {
    Bytes bytes = 0;
    std::optional<EventSlot> gathering;
    uint32_t address = 0;  // of the gathered parameters; 0: not gathered
  };
  Framework& framework_;
  bool sharded_;
  std::vector<Unit> units_;
  std::vector<EventSlot> under_way_;
};

}  // namespace rehearse::synth
