// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/transforms.hpp"

#include <algorithm>
#include <string>

#include "sim/scenario/grow.hpp"
#include "sim/scenario/regenerate.hpp"
#include "sim/scenario/transform.hpp"
#include "sim/scenario/undo.hpp"

namespace rehearse::sim {
namespace {

using P = pb::Patch;
using traces::Program;

constexpr uint8_t kLateHost = shows::kHost | shows::kIdle | shows::kCompute;

constexpr Transform kTransforms[] = {
    {.field = P::kSlowRank,
     .name = "slow-rank",
     .interval = true,
     .change = Change::kCompute,
     .shows = shows::kCompute,
     .straggling = Straggling::kEveryStep,
     .edit = [](Program& p, const P& how) { return slow_rank(p, how.slow_rank()); }},
    {.field = P::kSkipCollective,
     .name = "skip-collective",
     .other_traffic = true,
     .parting = Parting::kFewer,
     .edit = [](Program& p, const P& how) { return skip_collective(p, how.skip_collective()); }},
    {.field = P::kUndo,
     .name = "undo",
     .acts_on = ActsOn::kDocument,
     .apply = [](Scenario& s, const P& how) { return undo(s, how.undo()); }},
    {.field = P::kStopRank,
     .name = "stop-rank",
     .acts_on = ActsOn::kRun,
     .parting = Parting::kEnds},
    {.field = P::kPauseRank,
     .name = "pause-rank",
     .change = Change::kCompute,
     .shows = kLateHost,
     .straggling = Straggling::kSomeSteps,
     .edit = [](Program& p, const P& how) { return pause_rank(p, how.pause_rank()); }},
    {.field = P::kBackgroundTraffic,
     .name = "background-traffic",
     .acts_on = ActsOn::kRun,
     .interval = true,
     .change = Change::kBandwidth},
    {.field = P::kWriteCheckpoint,
     .name = "write-checkpoint",
     .edit = [](Program& p, const P& how) { return write_checkpoint(p, how.write_checkpoint()); }},
    {.field = P::kGrowDataParallel,
     .name = "grow-data-parallel",
     .acts_on = ActsOn::kDocument,
     .change = Change::kScale,
     .other_traffic = true,
     .apply = [](Scenario& s, const P& how) { return grow(s, how.grow_data_parallel()); }},
    {.field = P::kSteps,
     .name = "steps",
     .other_traffic = true,
     .edit = [](Program& p, const P& how) { return repeat_steps(p, how.steps().factor()); }},
    {.field = P::kEndEarly,
     .name = "end-early",
     .other_traffic = true,
     .parting = Parting::kFewer,
     .edit = [](Program& p, const P& how) { return end_early(p, how.end_early()); }},
    {.field = P::kExtraCollective,
     .name = "extra-collective",
     .other_traffic = true,
     .parting = Parting::kMore,
     .edit = [](Program& p, const P& how) { return extra_collective(p, how.extra_collective()); }},
    {.field = P::kResizeCollective,
     .name = "resize-collective",
     .other_traffic = true,
     .parting = Parting::kOtherSize,
     .edit = [](Program& p,
                const P& how) { return resize_collective(p, how.resize_collective()); }},
    {.field = P::kScaleCollectives,
     .name = "scale-collectives",
     .shows = shows::kBytes,
     .other_traffic = true,
     .edit = [](Program& p,
                const P& how) { return scale_collectives(p, how.scale_collectives()); }},
    {.field = P::kSwapCollectives,
     .name = "swap-collectives",
     .parting = Parting::kOtherOrder,
     .edit = [](Program& p, const P& how) { return swap_collectives(p, how.swap_collectives()); }},
    {.field = P::kDelayCalls,
     .name = "delay-calls",
     .change = Change::kCompute,
     .edit = [](Program& p, const P& how) { return delay_calls(p, how.delay_calls()); }},
    {.field = P::kSlowHost,
     .name = "slow-host",
     .change = Change::kCompute,
     .shows = kLateHost,
     .edit = [](Program& p, const P& how) { return slow_host(p, how.slow_host()); }},
    {.field = P::kSlowCopies,
     .name = "slow-copies",
     .change = Change::kCompute,
     .edit = [](Program& p, const P& how) { return slow_copies(p, how.slow_copies()); }},
    {.field = P::kVarySteps,
     .name = "vary-steps",
     .change = Change::kCompute,
     .shows = shows::kCompute,
     .straggling = Straggling::kDrawnSteps,
     .edit = [](Program& p, const P& how) { return vary_steps(p, how.vary_steps()); }},
    {.field = P::kNoOverlap,
     .name = "no-overlap",
     .edit = [](Program& p, const P& how) { return no_overlap(p, how.no_overlap()); }},
    {.field = P::kScaleMemory, .name = "scale-memory", .acts_on = ActsOn::kMemory},
    {.field = P::kLeakMemory, .name = "leak-memory", .acts_on = ActsOn::kMemory},
    {.field = P::kRegenerate,
     .name = "regenerate",
     .acts_on = ActsOn::kTrace,
     .change = Change::kLayout,
     .shows = shows::kCalls | shows::kCompute | shows::kMemory,
     .other_traffic = true,
     .apply = [](Scenario& s, const P& how) { return regenerate(s, how); }},
    {.field = P::kReadCheckpoint,
     .name = "read-checkpoint",
     .edit = [](Program& p, const P& how) { return read_checkpoint(p, how.read_checkpoint()); }},
    {.field = P::kLoadData,
     .name = "load-data",
     .shows = kLateHost,
     .straggling = Straggling::kSomeSteps,
     .edit = [](Program& p, const P& how) { return load_data(p, how.load_data()); }},
};

}  // namespace

std::span<const Transform> transforms() { return kTransforms; }

const Transform* transform_of(const pb::Patch& patch) {
  const auto at =
      std::find_if(std::begin(kTransforms), std::end(kTransforms),
                   [&](const Transform& t) { return t.field == patch.transform_case(); });
  return at == std::end(kTransforms) ? nullptr : at;
}

const Transform* find_transform(std::string_view name) {
  std::string wanted(name);
  std::replace(wanted.begin(), wanted.end(), '_', '-');
  const auto at = std::find_if(std::begin(kTransforms), std::end(kTransforms),
                               [&](const Transform& t) { return t.name == wanted; });
  return at == std::end(kTransforms) ? nullptr : at;
}

bool acts_on(const pb::Patch& patch, ActsOn what) {
  const Transform* transform = transform_of(patch);
  return transform != nullptr && transform->acts_on == what;
}

bool parts(const pb::Patch& patch, Parting how) {
  const Transform* transform = transform_of(patch);
  return transform != nullptr && transform->parting == how;
}

bool straggles(const pb::Patch& patch, Straggling how) {
  const Transform* transform = transform_of(patch);
  return transform != nullptr && transform->straggling == how;
}

}  // namespace rehearse::sim
