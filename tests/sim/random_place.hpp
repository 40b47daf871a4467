// SPDX-License-Identifier: Apache-2.0
// A random job on a random machine of the catalogue, with ranks dealt out to its nodes in turn.
#pragma once

#include <fmt/format.h>

#include <fstream>
#include <string>
#include <vector>

#include "base/install.hpp"
#include "platforms/model/catalogue.hpp"
#include "sim/scenario/scenario.hpp"
#include "tests/sim/random_job.hpp"
#include "tests/temporary_folder.hpp"
#include "traces/model/rtrace.hpp"

namespace rehearse::tests {

struct Machine {
  std::string id;
  uint32_t gpus = 0;  // of a node
};

// All of the catalogue, by id.
inline const std::vector<Machine>& machines() {
  static const std::vector<Machine> all = [] {
    std::vector<Machine> out;
    const platforms::PlatformCatalogue catalogue(shipped("platforms/catalogue").value());
    const std::vector<platforms::Entry> entries = catalogue.list().value();
    for (const platforms::Entry& entry : entries) {
      pb::Platform platform = catalogue.platform(entry.id).value();
      if (!platforms::expand(platform, entry.id)) RC_FAIL(entry.id);
      out.push_back({entry.id, static_cast<uint32_t>(platform.nodes(0).gpus_size())});
    }
    return out;
  }();
  return all;
}

// On as many nodes as the job needs, or up to two more.
inline sim::Scenario scenario_anywhere(const Job& job) {
  const Machine machine = *rc::gen::elementOf(machines());
  const uint32_t nodes = (job.ranks + machine.gpus - 1) / machine.gpus + *in_range<uint32_t>(0, 3);
  const TemporaryFolder folder;
  const auto file = folder.path / "job.rtrace";
  const auto written = traces::write_rtrace(told(job), file, Overwrite::kReplace);
  if (!written) RC_FAIL(written.error().message());
  std::string text = "trace: job.rtrace\nplatform: {like: " + machine.id +
                     ", scale: " + std::to_string(nodes) + "}\nlaunch:\n  ranks:\n";
  for (uint32_t rank = 0; rank < job.ranks; ++rank) {
    text += fmt::format("  - {{rank: {}, node: {}, gpu: {}}}\n", rank, rank % nodes, rank / nodes);
  }
  std::ofstream(folder.path / "job.yaml") << text;
  SilentReporter silent;
  auto scenario = sim::load_scenario((folder.path / "job.yaml").string(), silent);
  if (!scenario) RC_FAIL(scenario.error().message());
  RC_LOG(machine.id + " x " + std::to_string(nodes));
  return std::move(*scenario);
}

}  // namespace rehearse::tests
