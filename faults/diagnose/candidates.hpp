// SPDX-License-Identifier: Apache-2.0
// Which faults, at which places and with which values, could explain an outcome: rules that need no
// simulation. A fault is a candidate when its patches can make the changes seen (mechanism.hpp) and the configuration does
// not contradict it. That its catalogue entry lists the symptom makes it likelier, no more. Values that the
// configuration shows are taken from there; places, moments and numbers of steps from the evidence
// (suspects.hpp).
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "faults/diagnose/changes.hpp"
#include "faults/fault_use.hpp"
#include "sim/proto/outcome.pb.h"

namespace rehearse::faults {

struct Candidate {
  FaultUse use;
  // Sum of what applies (prior below). Orders the trials; it is not the score.
  double prior = 0;
  // The catalogue lists the symptom, or the configuration shows the fault's settings: to be tried before the others.
  bool expected = false;
  bool configured = false;  // the configuration shows it, and the healthy one does not
  std::vector<std::string> evidence;
};

// What makes a candidate likelier.
namespace prior {
constexpr double kTypical = 1.0;     // the first symptom that its catalogue entry lists
constexpr double kListed = 0.8;      // another one of the list
constexpr double kUnlisted = 0.6;    // none of them
constexpr double kConfigured = 1.0;  // more: the configuration shows the fault's settings
constexpr double kSuspected = 0.5;   // more: a suspect of the evidence is the place
}  // namespace prior

struct Clues {
  const pb::Outcome& outcome;    // observable part
  const Changes& changes;        // of it against the healthy run
  const pb::Symptom& symptom;    // of that outcome
  const pb::Scenario& healthy;   // expanded document without the fault
  const pb::Launch* configured;  // as the job really was started, readable part; null: unknown
  double pace = 1;               // healthy step as simulated over that of the evidence
  bool logs_only = false;        // of `configured` only what NCCL says it read is known
};

// Highest prior first, then by place in the order of suspicion, then by id; at most `kPlacesPerFault` places of
// each fault, from logs kDevicesPerFault of a fault of devices.
[[nodiscard]] Result<std::vector<Candidate>> find_candidates(const Clues& clues,
                                                             const FaultCatalogue& catalogue);
constexpr size_t kPlacesPerFault = 12, kDevicesPerFault = 64;

}  // namespace rehearse::faults
