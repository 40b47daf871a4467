// SPDX-License-Identifier: Apache-2.0
#include "sim/horovod/autotune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/random.hpp"
#include "sim/scenario/environment.hpp"
#include "sim/scenario/rebuild.hpp"

namespace rehearse::sim {
namespace {

constexpr Nanos kTuneMillisecond = 1'000'000;
constexpr double kTestPointsMs[] = {5, 50, 25, 10};
constexpr double kLeastCycleMs = 1, kMostCycleMs = 100;

// The operation of the last collective that the rank issues in each step; kNoOp: there is none.
std::vector<traces::OpId> last_collectives(const traces::RankProgram& rank, uint32_t steps) {
  std::vector<traces::OpId> out(steps, traces::kNoOp);
  for (size_t c = 0; c < rank.calls.size(); ++c) {
    if (traces::is_point_to_point(rank.calls[c].collective)) continue;
    const traces::OpId op = rank.call_op[c];
    const traces::OpId* const begin = &rank.step_begin[rank.lane_of(op) * (steps + 1)];
    const auto begun = std::upper_bound(begin, begin + steps + 1, op) - begin;
    if (begun > 0 && begun <= static_cast<std::ptrdiff_t>(steps)) {
      out[static_cast<size_t>(begun) - 1] = op;
    }
  }
  return out;
}

}  // namespace

Nanos tuned_cycle(const HorovodSettings& settings, uint64_t seed, uint32_t step) {
  if (!settings.autotune || settings.cycle_told) return settings.cycle;
  const uint32_t sample = step / settings.steps_per_sample;
  const uint32_t tried = sample < settings.warmup_samples ? 0 : sample - settings.warmup_samples;
  if (tried > settings.tuning_samples) return settings.cycle;
  double ms = 0;
  if (tried < std::size(kTestPointsMs)) {
    ms = kTestPointsMs[tried];
  } else {
    Random random(seed, "horovod-autotune", tried);
    ms = kLeastCycleMs + (kMostCycleMs - kLeastCycleMs) * random.uniform();
  }
  return static_cast<Nanos>(ms * static_cast<double>(kTuneMillisecond));
}

Result<void> autotune(const Scenario& scenario, traces::Program& program) {
  const pb::Launch& launch = scenario.document.launch();
  if (launch.ranks().empty()) return {};
  const HorovodSettings settings = horovod_settings(launch, launch.ranks(0));
  if (!settings.autotune) return {};
  if (settings.cycle_told) {
    program.findings.add("horovod-autotune", Severity::kInfo, "HOROVOD_CYCLE_TIME is set",
                         "Horovod does not tune what it was told; unset the variable to see it");
    return {};
  }
  for (traces::RankProgram& rank : program.ranks) {
    if (auto written = write_out(rank, program.steps); !written) return written;
    const std::vector<traces::OpId> last = last_collectives(rank, program.steps);
    for (uint32_t step = 0; step < program.steps; ++step) {
      const traces::OpId op = last[step];
      const Nanos more = tuned_cycle(settings, scenario.document.seed(), step) - settings.cycle;
      if (op != traces::kNoOp) rank.gap[op] += std::max<Nanos>(0, more / 2);
    }
  }
  program.findings.add(
      "horovod-autotune", Severity::kInfo,
      fmt::format("{} steps of a run that tunes for {}", program.steps,
                  uint64_t{settings.steps_per_sample} *
                      (uint64_t{settings.warmup_samples} + settings.tuning_samples + 1)),
      "step times while Horovod tunes are not those of the tuned job");
  return {};
}

}  // namespace rehearse::sim
