// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/regenerate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include "base/install.hpp"
#include "platforms/model/catalogue.hpp"
#include "sim/scenario/transforms.hpp"
#include "traces/synth/synth.hpp"

namespace rehearse::sim {
namespace {

uint32_t times(uint32_t value, double factor) {
  return static_cast<uint32_t>(std::clamp(std::nearbyint(std::max(1u, value) * factor), 1.0, 1e9));
}

Result<void> change(const pb::Regenerate& how, pb::Synth& job) {
  if (how.has_batch()) job.set_micro_batch(times(job.micro_batch(), how.batch()));
  if (how.has_micro_batches())
    job.set_micro_batches(times(job.micro_batches(), how.micro_batches()));
  if (how.has_sequence()) job.set_sequence(times(job.sequence(), how.sequence()));
  if (how.has_bucket()) {
    job.set_bucket(how.bucket());
    job.set_first_bucket(std::min(job.first_bucket(), how.bucket()));
  }
  if (how.has_zero()) job.set_zero(how.zero());
  if (how.has_tp()) {
    const uint64_t ranks = uint64_t{std::max(1u, job.dp())} * std::max(1u, job.tp());
    if (ranks % how.tp() != 0) {
      return fail(Code::kBadInput,
                  fmt::format("{} ranks do not divide into groups of {}", ranks, how.tp()),
                  "regenerate: tp", "choose a divisor");
    }
    job.set_tp(how.tp());
    job.set_dp(static_cast<uint32_t>(ranks / how.tp()));
  }
  return {};
}

}  // namespace

Result<void> regenerate(Scenario& scenario) {
  const auto wanted = [](const pb::Patch& patch) { return acts_on(patch, ActsOn::kTrace); };
  if (std::none_of(scenario.transforms.begin(), scenario.transforms.end(), wanted)) {
    if (scenario.recorded != nullptr) scenario.trace = scenario.recorded;
    return {};
  }
  if (scenario.recorded == nullptr) scenario.recorded = scenario.trace;
  if (!scenario.recorded->header.has_synth()) {
    return fail(Code::kBadInput, "the trace was recorded, not generated", "regenerate",
                "record the job with these settings, or describe it with `rehearse synth`");
  }
  pb::Synth job = scenario.recorded->header.synth();
  for (const pb::Patch& patch : scenario.transforms) {
    if (!patch.has_regenerate()) continue;
    if (auto changed = change(patch.regenerate(), job); !changed) return changed;
  }
  RH_TRY(const std::filesystem::path folder, shipped("platforms/catalogue"));
  const platforms::PlatformCatalogue catalogue(folder);
  RH_TRY(const pb::Gpu gpu, catalogue.gpu(job.gpu()));
  RH_TRY(traces::Trace trace, synth::synthesize(job, gpu));
  if (trace.ranks.size() != scenario.recorded->ranks.size()) {
    return fail(Code::kBadInput,
                fmt::format("the job would have {} ranks instead of {}", trace.ranks.size(),
                            scenario.recorded->ranks.size()),
                "regenerate", "write a scenario with another layout instead");
  }
  scenario.trace = std::make_shared<const traces::Trace>(std::move(trace));
  return {};
}

Result<void> regenerate(Scenario& scenario, const pb::Patch& patch) {
  scenario.transforms.push_back(patch);
  return regenerate(scenario);
}

}  // namespace rehearse::sim
