// SPDX-License-Identifier: Apache-2.0
// One rank's process: what its launcher and its environment tell it, and which GPU it takes. The environment
// wins over what the launcher would set, as it does where a script sets the variable itself. Values only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "sim/proto/scenario.pb.h"

namespace rehearse::sim::bringup {

struct Process {
  uint32_t seat = 0;  // rank of the trace: its name in outcomes
  uint32_t node = 0;
  uint32_t local = 0;  // position among the processes of its node
  bool absent = false;
  std::map<std::string, std::string> env;
  // What it was told.
  uint32_t rank = 0;
  uint32_t world_size = 0;
  std::string master;
  uint32_t port = 0;
  // Devices: those it may see, the number it asks for among them, and the GPU that is.
  std::vector<uint32_t> visible;
  uint32_t ordinal = 0;
  std::optional<uint32_t> gpu;  // empty: it asks for one that it does not see
  // How far it has come.
  Nanos clock = 0;

  [[nodiscard]] std::string variable(const char* name) const {
    const auto at = env.find(name);
    return at == env.end() ? "" : at->second;
  }
};

// One per entry of launch.ranks, in that order. The document is expanded.
[[nodiscard]] std::vector<Process> processes_of(const pb::Scenario& document);

// How the job is started when the scenario does not say: torchrun for PyTorch, horovodrun for Horovod, by hand
// for the rest.
[[nodiscard]] pb::Launcher launcher_of(const pb::Launch& launch);

// 2.4 against 2.13: by number, part by part. Text that is no number counts as 0.
[[nodiscard]] int compare_versions(std::string_view a, std::string_view b);

}  // namespace rehearse::sim::bringup
