// SPDX-License-Identifier: Apache-2.0
#include "validation/blind/hidden_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "faults/diagnose/observable.hpp"
#include "validation/calibrate/overlay.hpp"

namespace rehearse::validation {
namespace {

constexpr double kGpuDeviation = 0.01;
constexpr double kHarmless = 0.3;  // chance of each harmless setting

struct Setting {
  const char *name, *value;
};
// In environments everywhere, and without effect here.
constexpr std::array<Setting, 4> kSettings = {{{"NCCL_DEBUG", "INFO"},
                                               {"OMP_NUM_THREADS", "8"},
                                               {"PYTHONFAULTHANDLER", "1"},
                                               {"NCCL_DEBUG_SUBSYS", "INIT,NET"}}};

Result<void> assign(sim::Scenario& scenario, const std::string& path, const std::string& value) {
  pb::Patch patch;
  (*patch.mutable_set())[path] = value;
  return sim::apply(scenario, patch);
}

int64_t noisy(int64_t value, double deviation, Random& random) {
  const double factor = std::max(0.0, 1 + deviation * random.normal());
  return std::llround(static_cast<double>(value) * factor);
}

void measure_steps(const MeasurementNoise& noise, Random& random, pb::StepTimes& steps) {
  if (steps.each_size() == 0) return;
  double sum = 0;
  std::vector<int64_t> sorted;
  for (int i = 0; i < steps.each_size(); ++i) {
    steps.set_each(i, noisy(steps.each(i), noise.step, random));
    sum += static_cast<double>(steps.each(i));
    sorted.push_back(steps.each(i));
  }
  std::sort(sorted.begin(), sorted.end());
  steps.set_mean(std::llround(sum / steps.each_size()));
  steps.set_p50(sorted[sorted.size() / 2]);
  steps.set_min(sorted.front());
  steps.set_max(sorted.back());
  steps.set_p90(sorted.back());
  steps.set_p99(sorted.back());
}

void measure_rank(const MeasurementNoise& noise, Random& random, pb::RankBreakdown& rank) {
  rank.set_compute(noisy(rank.compute(), noise.part, random));
  rank.set_communication(noisy(rank.communication(), noise.part, random));
  rank.set_wait(noisy(rank.wait(), noise.part, random));
  rank.set_host(noisy(rank.host(), noise.part, random));
  rank.set_idle(noisy(rank.idle(), noise.part, random));
  rank.set_overlapped(noisy(rank.overlapped(), noise.part, random));
  // A clock that is late moves the border between waiting and moving data.
  const auto late = std::llround(static_cast<double>(rank.step()) * noise.clock * random.normal());
  const auto moved = std::clamp<int64_t>(late, -rank.wait(), rank.communication());
  rank.set_wait(rank.wait() + moved);
  rank.set_communication(rank.communication() - moved);
  rank.set_step(rank.compute() + rank.communication() + rank.wait() + rank.host() + rank.idle());
}

}  // namespace

Result<sim::Scenario> hidden(const sim::Scenario& job, uint64_t seed) {
  sim::Scenario out = job;
  out.document.set_seed(seed);
  for (const pb::Patch& patch : prior_draws(job.document.platform().efficiency(), seed, 1)) {
    if (auto applied = sim::apply(out, patch); !applied) return tl::unexpected(applied.error());
  }
  Random random(seed, "hidden machine");
  for (pb::Node& node : *out.document.mutable_platform()->mutable_nodes()) {
    for (pb::Gpu& gpu : *node.mutable_gpus()) {
      gpu.set_speed(gpu.speed() * std::clamp(1 + kGpuDeviation * random.normal(), 0.97, 1.03));
    }
  }
  for (const Setting& setting : kSettings) {
    if (random.uniform() >= kHarmless) continue;
    const std::string path = fmt::format("launch.env.{}", setting.name);
    if (auto done = assign(out, path, setting.value); !done) return tl::unexpected(done.error());
  }
  if (job.document.launch().ranks_size() <= kStepFidelityRanks) out.document.set_fidelity(pb::STEP);
  return out;
}

pb::Outcome measured(const pb::Outcome& outcome, const MeasurementNoise& noise, Random& random) {
  pb::Outcome out = outcome;
  measure_steps(noise, random, *out.mutable_step_time_ns());
  for (pb::RankBreakdown& rank : *out.mutable_breakdown()) measure_rank(noise, random, rank);
  for (pb::LinkUse& link : *out.mutable_links()) {
    link.set_utilisation(link.utilisation() * std::max(0.0, 1 + noise.counter * random.normal()));
    link.clear_over_time();
  }
  for (pb::CommunicatorUse& use : *out.mutable_communicators()) {
    use.set_busbw(use.busbw() * std::max(0.1, 1 + noise.bandwidth * random.normal()));
  }
  out.clear_not_recorded();
  for (uint32_t rank = 1; rank < out.ranks(); ++rank) {
    if (random.uniform() < noise.missing) out.add_not_recorded(rank);
  }
  for (pb::RankMemory& rank : *out.mutable_memory()->mutable_ranks()) {
    rank.set_peak(noisy(rank.peak(), noise.memory, random));
    for (pb::MemoryPart& part : *rank.mutable_parts()) {
      part.set_bytes(noisy(part.bytes(), noise.memory, random));
    }
  }
  const auto offset = [&](int64_t time) {
    return std::max<int64_t>(
        0, time + std::llround(static_cast<double>(noise.offset_ns) * random.normal()));
  };
  out.set_last_progress_ns(offset(out.last_progress_ns()));
  if (out.has_first_failure()) {
    out.mutable_first_failure()->set_time_ns(offset(out.first_failure().time_ns()));
  }
  for (pb::Wait& wait : *out.mutable_waits()) wait.set_since_ns(offset(wait.since_ns()));
  for (pb::TimerEvent& timer : *out.mutable_timers()) timer.set_time_ns(offset(timer.time_ns()));
  return faults::observable(out);
}

}  // namespace rehearse::validation
