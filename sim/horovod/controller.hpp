// SPDX-License-Identifier: Apache-2.0
// Horovod's background loop (horovod/common/operations.cc, controller.cc, response_cache.cc): every
// HOROVOD_CYCLE_TIME it agrees with all ranks on the tensors that are ready everywhere, packs them
// into buffers of at most HOROVOD_FUSION_THRESHOLD and starts one collective per buffer.
//
//   negotiation   with the response cache (steady state) two all-reduces of bit vectors, else a
//                 gather of requests to rank 0 and a broadcast of responses; each is rounds of
//                 log2(ranks) messages of the controller (MPI or Gloo)
//   wait          a tensor becomes ready at any moment of a cycle: half a cycle on average
//   fusion        what is ready in one cycle goes into buffers: an edit of the job (fusion.hpp)
//   copies        of tensors into the fusion buffer and out of it: one kernel for up to 160 of them, with
//                 HOROVOD_BATCH_D2D_MEMCOPIES=0 one copy each (horovod/common/ops/gpu_operations.cc)
//
// How a fused buffer is then reduced, on which stream, and what autotuning does to cycles are edits of the
// program (two_levels.hpp, streams.hpp, autotune.hpp). Pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "sim/nccl/traffic.hpp"
#include "sim/proto/scenario.pb.h"

namespace rehearse::sim {

struct HorovodSettings {
  Nanos cycle = 1'000'000;          // HOROVOD_CYCLE_TIME, milliseconds; 5 before 0.21
  Bytes fusion = Bytes{128} << 20;  // HOROVOD_FUSION_THRESHOLD; 0: no fusion; 64 MiB before 0.21
  int64_t cache = 1024;             // HOROVOD_CACHE_CAPACITY; 0: off
  double message_us = 5;            // one message of the controller; 30 by Gloo over TCP (priors)
  bool mpi = true;                  // may use MPI; HOROVOD_CONTROLLER=gloo: it may not
  bool hierarchical_allreduce = false;
  bool hierarchical_allgather = false;
  bool torus_allreduce = false;
  uint32_t streams = 1;        // HOROVOD_NUM_NCCL_STREAMS
  bool batched_copies = true;  // HOROVOD_BATCH_D2D_MEMCOPIES
  bool autotune = false;
  bool cycle_told = false;  // HOROVOD_CYCLE_TIME is set: autotuning leaves it alone
  bool fusion_told = false;
  uint32_t warmup_samples = 3, steps_per_sample = 10, tuning_samples = 20;  // HOROVOD_AUTOTUNE_...
  std::vector<std::string> notes;  // values that could not be read
};

// Of a release ("0.28"; "": a current one), whose defaults hold where `env` says nothing.
[[nodiscard]] HorovodSettings horovod_settings(const std::map<std::string, std::string>& env,
                                               std::string_view release);
[[nodiscard]] HorovodSettings horovod_settings(const pb::Launch& launch,
                                               const pb::RankLaunch& rank);

// What a collective waits for before it starts, in steady state.
[[nodiscard]] std::vector<LatencyPart> negotiation(const HorovodSettings& settings, uint32_t ranks);

// What a call waits longer than under Horovod's defaults, which a recording already contains: the
// difference of both negotiations (without their cycles, see fusion.hpp) where it is positive, else
// nothing. A recording cannot be made to wait less: its own waits are part of the host's lanes.
[[nodiscard]] std::vector<LatencyPart> longer_negotiation(const HorovodSettings& settings,
                                                          uint32_t ranks);

// What a tensor of a recorded job is taken to have where only fused buffers were recorded (ResNet-50 has
// 161 in 98 MiB of fp32).
constexpr Bytes kMeanTensor = Bytes{512} << 10;

// What copying a fused buffer of so many bytes takes longer than in batches, twice: in and out. How
// many tensors it holds is not recorded: one of kMeanTensor each.
[[nodiscard]] std::vector<LatencyPart> longer_copies(const HorovodSettings& settings, Bytes bytes);

// Both, for a call of so many bytes among `ranks`.
[[nodiscard]] Nanos longer_start(const HorovodSettings& settings, uint32_t ranks, Bytes bytes);

}  // namespace rehearse::sim
