// SPDX-License-Identifier: Apache-2.0
// A job of 16 ranks on two nodes with tensor, pipeline and data-parallel groups, and runs of it with changes.
#pragma once

#include <catch2/catch.hpp>
#include <fstream>
#include <string>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "sim/simulate.hpp"
#include "tests/temporary_folder.hpp"

namespace rehearse::tests {

inline const char* const kJob16 =
    "trace:\n"
    "  synth: {model: gpt, layers: 4, hidden: 512, heads: 8, sequence: 512, vocabulary: 8192,"
    " micro_batch: 1, micro_batches: 4, tp: 2, pp: 2, dp: 4, steps: 2, gpu: a100-sxm4-80gb,"
    " dtype: bf16, gpus_per_node: 8, framework: pytorch, seed: 1, jitter: 0}\n"
    "platform: {like: dgx-a100, scale: 2}\n"
    "launch: {framework: pytorch, launcher: torchrun, nccl_version: 2.21.5}\n";

inline sim::Scenario job16() {
  static const sim::Scenario base = [] {
    const TemporaryFolder folder;
    std::ofstream(folder.path / "job.yaml") << kJob16;
    SilentReporter silent;
    auto scenario = sim::load_scenario((folder.path / "job.yaml").string(), silent);
    if (!scenario) FAIL(scenario.error().message());
    return std::move(*scenario);
  }();
  return base;
}

// The same with the last rank as a clone of the one before it, as an import that assumes symmetry marks it.
inline sim::Scenario job16_with_clone() {
  sim::Scenario scenario = job16();
  auto trace = std::make_shared<traces::Trace>(*scenario.trace);
  (*trace->header.mutable_cloned_from())[15] = 14;
  for (const char* id : {"symmetric-assumed", "variance-unknown"}) {
    pb::TraceFinding& finding = *trace->header.add_findings();
    finding.set_id(id);
    finding.set_count(1);
    finding.set_first("1 of 16 ranks");
    finding.set_advice(std::string("advice of ") + id);
  }
  scenario.trace = std::move(trace);
  return scenario;
}

// A change is path=value or YAML of a patch.
inline Result<void> change(sim::Scenario& scenario, const std::string& text) {
  const bool assignment = text.find('=') < text.find(": ");
  auto patch = assignment ? sim::parse_assignment(text) : sim::parse_patch(text, "test");
  if (!patch) return tl::unexpected(patch.error());
  return sim::apply(scenario, *patch);
}

inline Result<pb::Outcome> try_job16(const std::vector<std::string>& changes) {
  sim::Scenario scenario = job16();
  for (const std::string& text : changes) {
    if (auto done = change(scenario, text); !done) return tl::unexpected(done.error());
  }
  SilentReporter silent;
  return sim::simulate(scenario, silent);
}

inline pb::Outcome run_job16(const std::vector<std::string>& changes = {}) {
  auto outcome = try_job16(changes);
  if (!outcome) FAIL(outcome.error().message());
  return std::move(*outcome);
}

inline std::vector<uint32_t> blamed(const pb::Outcome& outcome) {
  std::vector<uint32_t> ranks;
  for (const pb::Culprit& culprit : outcome.culprits()) {
    if (culprit.has_rank()) ranks.push_back(culprit.rank());
  }
  return ranks;
}

}  // namespace rehearse::tests
