// SPDX-License-Identifier: Apache-2.0
// Horovod's background loop (horovod/common/operations.cc, controller.cc, response_cache.cc): every
// HOROVOD_CYCLE_TIME it agrees with all ranks on the tensors that are ready everywhere, packs them
// into buffers of at most HOROVOD_FUSION_THRESHOLD and starts one collective per buffer.
//
//   negotiation   with the response cache (steady state) two all-reduces of bit vectors, else a
//                 gather of requests to rank 0 and a broadcast of responses; each is rounds of
//                 log2(ranks) messages of the controller (MPI or Gloo)
//   wait          a tensor becomes ready at any moment of a cycle: half a cycle on average
//   fusion        happens where tensors are known: in the job that was recorded, or in the generator
//                 (traces/synth/gradients.cpp, `synth --framework horovod --fusion SIZE --cycle TIME`);
//                 a call of a trace is taken as fused already
//
// Blind spots: autotuning; hierarchical and torus all-reduce. Pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "sim/nccl/traffic.hpp"

namespace rehearse::sim {

struct HorovodSettings {
  Nanos cycle = 1'000'000;          // HOROVOD_CYCLE_TIME, milliseconds
  Bytes fusion = Bytes{128} << 20;  // HOROVOD_FUSION_THRESHOLD; 0: no fusion
  int64_t cache = 1024;             // HOROVOD_CACHE_CAPACITY; 0: off
  double message_us = 5;            // one message of the controller; 30 by Gloo over TCP (priors)
  std::vector<std::string> notes;   // values that could not be read
};

[[nodiscard]] HorovodSettings horovod_settings(const std::map<std::string, std::string>& env);

// What a collective waits for before it starts, in steady state.
[[nodiscard]] std::vector<LatencyPart> negotiation(const HorovodSettings& settings, uint32_t ranks);

// What a call waits longer than under Horovod's defaults, which a recording already contains: the
// difference of both negotiations where it is positive, else nothing. A recording cannot be made to
// wait less: its own waits are part of the host's lanes.
[[nodiscard]] std::vector<LatencyPart> longer_negotiation(const HorovodSettings& settings,
                                                          uint32_t ranks);

}  // namespace rehearse::sim
