// SPDX-License-Identifier: Apache-2.0
// Measured rows as observations of a hardware: repeats (same machine, call and conditions) are one
// observation with the median of their times.
#pragma once

#include <string>
#include <vector>

#include "base/finding.hpp"
#include "validation/calibrate/fit.hpp"
#include "validation/statistics.hpp"
#include "validation/test_machines.hpp"

namespace rehearse::validation {

struct Observed {
  Observation observation;
  NcclTestRow first;            // conditions, of the first repeat
  std::string platform;         // catalogue id of its machine
  std::string nccl_version;     // that it was placed with
  uint32_t generation = 0;      // compute capability of its GPUs
  std::vector<double> repeats;  // µs, as measured
  std::string algorithm;        // "RING/SIMPLE"
};

// All observations of one kind of hardware, on whatever machines: parameters are of the hardware.
struct ObservedHardware {
  std::string hardware;  // the GPU's label
  std::vector<std::string> assumptions;
  std::vector<Observed> observed;

  [[nodiscard]] std::vector<Observation> observations() const;
  // Without those of one group.
  [[nodiscard]] std::vector<Observation> without(const std::string& group) const;
};

// Rows that share it have the same hardware, nodes, GPUs and collective.
[[nodiscard]] std::string group_of(const std::string& hardware, uint32_t nodes, uint32_t gpus,
                                   const std::string& collective);

// In order of appearance. Rows that cannot be placed, or whose time says nothing of the collective,
// are findings.
[[nodiscard]] std::vector<ObservedHardware> observe(const std::vector<NcclTestRow>& rows,
                                                    TestMachines& machines, Findings& findings);

}  // namespace rehearse::validation
