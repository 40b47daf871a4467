// SPDX-License-Identifier: Apache-2.0
// What NCCL's own recorded costs say of the machine: on which hardware would NCCL have believed just this?
//
// A cost table follows from what NCCL finds (rates of ports, NVLinks, PCIe, GPUDirect) and from its version. Each figure
// that it depends on is tried with the values that hardware comes in, one figure at a time; a value that gives every
// recorded cost explains the table. NCCL sorts bandwidths into classes, so several values may: then the table does not
// tell them apart, and what the platform says is kept. Costs are beliefs: no share of a link and no latency of the time
// model follows from them. Deterministic.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "platforms/proto/platform.pb.h"
#include "sim/proto/patch.pb.h"
#include "validation/calibrate/recorded_costs.hpp"

namespace rehearse::validation {

enum class Told : uint8_t {
  kConfirmed,     // only what the platform says explains the table
  kRecorded,      // the platform says something else; this value explains the table
  kUndetermined,  // several values explain it, or several figures could; the platform's is kept
};
[[nodiscard]] const char* name_of(Told told);

struct MachineFigure {
  std::string path;  // "platform.nodes[*].nics[*].bandwidth"
  std::string what;
  std::string described;            // by the platform
  std::string value;                // used
  std::vector<std::string> others;  // that explain the table as well
  Told told = Told::kUndetermined;
};

struct MachineReading {
  std::vector<MachineFigure> figures;
  size_t costs = 0;   // recorded, of communicators that can be placed on the platform
  size_t agreed = 0;  // with the platform as described
  bool explained = false;
  std::string first_difference;  // of the platform as described; "" when all agree
  std::vector<std::string> notes;

  [[nodiscard]] bool empty() const { return costs == 0; }
};

// `platform` is compact. kBadInput when no communicator can be placed on it.
[[nodiscard]] Result<MachineReading> read_machine(const std::vector<RecordedCosts>& recorded,
                                                  const pb::Platform& platform,
                                                  const std::string& where);

// What was recorded otherwise than the platform describes it, by path of the expanded platform: times of the same machine are
// fitted on it. NCCL's version is not among them.
[[nodiscard]] std::map<std::string, std::string> recorded_figures(const MachineReading& reading);

// Adds what was recorded to an overlay: assignments, and where they come from.
void add_machine(const MachineReading& reading, pb::Patch& overlay);

}  // namespace rehearse::validation
