// SPDX-License-Identifier: Apache-2.0
// A job of 2 nodes x 8 GPUs and a world whose step time is a sum one can do in the head: 100 ms of
// compute at full speed, plus 20 ms of all-reduce over the slowest NIC at 200 Gbps with GPUDirect.
#pragma once

#include "faults/world.hpp"
#include "sim/scenario/scenario.hpp"

namespace rehearse::faults::testing {

// Expanded: every node, GPU, NIC and rank stands for itself.
[[nodiscard]] sim::Scenario small_scenario();

// apply() assigns by path and remembers transforms; simulate() is the sum above: twice the
// all-reduce without GPUDirect on any node, eight times over sockets, half as much per NIC below
// 200 Gbps. A skipped collective hangs everybody else. `runs` counts simulations when not null.
[[nodiscard]] World small_world(int* runs = nullptr);

}  // namespace rehearse::faults::testing
