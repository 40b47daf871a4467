// SPDX-License-Identifier: Apache-2.0
#include "faults/lessons/job.hpp"

#include <map>
#include <set>

#include "base/document.hpp"
#include "faults/lessons/placement.hpp"
#include "sim/scenario/environment.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/sealed.hpp"
#include "sim/scenario/timed.hpp"
#include "sim/scenario/transforms.hpp"
#include "sim/simulate.hpp"

namespace rehearse::faults {
namespace {

using Variables = std::map<std::string, std::string>;

// Assignments for the whole run, and settings that the trace is generated from, are things that files say.
bool is_written_in_files(const pb::Patch& patch) {
  return !sim::is_timed(patch) &&
         (sim::transform_of(patch) == nullptr || sim::acts_on(patch, sim::ActsOn::kTrace));
}

// Ranks that sit where expansion would put them need no line of their own.
bool sits_by_default(const pb::Scenario& document) {
  int node = 0, gpu = 0;
  for (const pb::RankLaunch& rank : document.launch().ranks()) {
    while (node < document.platform().nodes_size() &&
           gpu >= document.platform().nodes(node).gpus_size()) {
      ++node;
      gpu = 0;
    }
    if (rank.node() != static_cast<uint32_t>(node) || rank.gpu() != static_cast<uint32_t>(gpu++)) {
      return false;
    }
  }
  return true;
}

// The variables that all ranks of a node have alike, by node.
std::map<uint32_t, Variables> shared_by_node(const pb::Launch& launch) {
  std::map<uint32_t, Variables> nodes;
  std::set<uint32_t> seen;
  for (const pb::RankLaunch& rank : launch.ranks()) {
    const Variables own = sim::environment_of(launch, rank);
    Variables& shared = nodes[rank.node()];
    if (seen.insert(rank.node()).second) {
      shared = own;
      continue;
    }
    std::erase_if(shared, [&](const auto& variable) {
      const auto at = own.find(variable.first);
      return at == own.end() || at->second != variable.second;
    });
  }
  return nodes;
}

// Launch as a person would write it: one environment per node, and a line for each rank that differs.
pb::Launch folded(const pb::Scenario& document) {
  const std::map<uint32_t, Variables> shared = shared_by_node(document.launch());
  pb::Launch out = document.launch();
  out.clear_env();
  out.clear_ranks();
  for (const auto& [node, variables] : shared) {
    pb::NodeLaunch& entry = *out.add_nodes();
    entry.set_node(node);
    entry.mutable_env()->insert(variables.begin(), variables.end());
  }
  const bool seated = sits_by_default(document);
  for (const pb::RankLaunch& rank : document.launch().ranks()) {
    pb::RankLaunch own = rank;
    own.clear_env();
    const Variables& common = shared.at(rank.node());
    for (const auto& [name, value] : sim::environment_of(document.launch(), rank)) {
      const auto at = common.find(name);
      if (at == common.end() || at->second != value) (*own.mutable_env())[name] = value;
    }
    const bool plain = own.env().empty() && !own.absent() && own.contexts_on().empty();
    if (!seated || !plain) *out.add_ranks() = std::move(own);
  }
  return out;
}

pb::Scenario written_of(const sim::Scenario& broken, const LabEntry& lab) {
  pb::Scenario out;
  out.set_name(lab.lab.id());
  out.set_description(broken.document.description());
  if (broken.trace->header.has_synth()) {
    // All settings, so that the one that matters does not stand out.
    *out.mutable_trace()->mutable_synth() = broken.trace->header.synth();
  } else {
    out.mutable_trace()->set_file(std::filesystem::absolute(broken.trace_file).string());
  }
  *out.mutable_platform() = broken.document.platform();
  out.mutable_platform()->clear_sources();
  out.mutable_platform()->clear_assumptions();
  *out.mutable_launch() = folded(broken.document);
  out.set_seed(broken.document.seed());
  out.set_blind(true);
  return out;
}

Result<void> apply_each(sim::Scenario& scenario, const auto& patches) {
  for (const pb::Patch& patch : patches) {
    if (auto done = sim::apply(scenario, patch); !done) return done;
  }
  return {};
}

}  // namespace

Result<LabJob> prepare_job(std::shared_ptr<const LabEntry> lab, uint64_t seed, Reporter& reporter) {
  RH_TRY(FaultUse use, place_fault(*lab, seed));
  RH_TRY(sim::Scenario healthy, sim::load_scenario(lab->lab.scenario(), reporter));
  RH_TRY(const auto values, values_in(use, healthy.document));
  RH_TRY(pb::LabScript script, read_script(*lab, values, &healthy.document));
  if (auto done = apply_each(healthy, script.setup()); !done) return tl::unexpected(done.error());
  LabJob job{.lab = std::move(lab),
             .seed = seed,
             .use = std::move(use),
             .script = std::move(script),
             .healthy = std::move(healthy),
             .healthy_run = {},
             .written = {},
             .sealed = {},
             .fixes = {}};
  RH_TRY(job.healthy_run, sim::simulate(job.healthy, reporter));
  std::vector<pb::Patch> patches(job.script.patch().begin(), job.script.patch().end());
  job.fixes.assign(job.script.fixes().begin(), job.script.fixes().end());
  if (!job.lab->lab.fault().empty()) {
    RH_TRY(patches, patches_of(job.use, job.healthy.document));
    RH_TRY(job.fixes, fixes_of(job.use, job.healthy.document));
  }
  sim::Scenario broken = job.healthy;
  for (const pb::Patch& patch : patches) {
    if (job.lab->lab.out_of_sight() || !is_written_in_files(patch)) {
      job.sealed.push_back(patch);
    } else if (auto done = sim::apply(broken, patch); !done) {
      return tl::unexpected(done.error());
    }
  }
  job.written = written_of(broken, *job.lab);
  job.written.set_sealed(sim::seal(job.sealed));
  return job;
}

Result<sim::Scenario> load_job(const LabJob& job, pb::Scenario written, Reporter& reporter) {
  written.set_sealed(job.written.sealed());
  return sim::load_scenario(std::move(written), "job.yaml", reporter);
}

Result<pb::Scenario> with_attempt(const LabJob& job, const pb::Attempt& attempt) {
  pb::Scenario written = job.written;
  for (const auto& [path, value] : sim::sorted_assignments(attempt.set())) {
    if (auto done = set_path(written, path, value); !done) return tl::unexpected(done.error());
  }
  *written.mutable_patches() = attempt.patch();
  return written;
}

pb::Attempt solution_of(const LabJob& job) {
  if (job.script.has_solution() || job.fixes.empty()) return job.script.solution();
  pb::Attempt attempt;
  attempt.set_what(job.fixes.front().change());
  *attempt.mutable_patch() = job.fixes.front().patch();
  return attempt;
}

}  // namespace rehearse::faults
