// SPDX-License-Identifier: Apache-2.0
// HOROVOD_FUSION_THRESHOLD and HOROVOD_CYCLE_TIME: which gradients travel together. Horovod's thread looks once a cycle at
// what is ready on all ranks and packs it into buffers of at most the threshold.
//
//   cycle       ranks go through their cycles together: the longest one counts
//   threshold   with the response cache (steady state) every rank packs by its own, without it rank 0 packs for all
//               (horovod/common/controller.cc, ComputeResponseList); rounded up to whole elements for each rank of a
//               node, of 8 bytes and in 64s (TensorFusionThresholdBytes). Ranks that pack differently come to different
//               collectives, of which Horovod knows nothing
//
// A generated job is generated anew: its tensors and when they are ready are known. Of a recorded one the fused calls are
// known: calls within a cycle are taken together, one that is too large is cut, a tensor having kMeanTensor (controller.hpp).
// What is not told (no variable, nothing in the scenario's `synth`) is as it was recorded, else Horovod's default.
// Blind spots: readiness is that of the host in the recording, whatever patches do to the run.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/error.hpp"
#include "sim/horovod/controller.hpp"
#include "sim/scenario/scenario.hpp"
#include "traces/program/program.hpp"

namespace rehearse::sim {

struct Fusing {
  Bytes threshold = 0;
  Nanos cycle = 0;
  friend bool operator==(const Fusing&, const Fusing&) = default;
};

// How each rank of the trace packs, in their order, and how it did in the recording.
struct RankFusing {
  Fusing wanted, recorded;
};
[[nodiscard]] std::vector<RankFusing> fusing_of(const Scenario& scenario);

// Are ranks of a Horovod job told different thresholds, each of which counts?
[[nodiscard]] bool packs_differently(const pb::Launch& launch);

// The trace of a generated Horovod job with the tensors packed as its ranks are told; null: it is as it was generated, or
// was not generated.
[[nodiscard]] Result<std::shared_ptr<const traces::Trace>> fused_anew(const Scenario& scenario);

// Edits the calls of a recorded one. Finding of the program: "tensors-assumed".
[[nodiscard]] Result<void> fuse_recorded(const Scenario& scenario, traces::Program& program);

// What Horovod allocates on the GPU of each rank for its buffers, one per stream: as much as may go in. By rank id.
[[nodiscard]] std::map<uint32_t, Bytes> fusion_memory(const Scenario& scenario);

}  // namespace rehearse::sim
