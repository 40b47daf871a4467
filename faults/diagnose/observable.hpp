// SPDX-License-Identifier: Apache-2.0
// What a practitioner can see of a run. An Outcome of the simulator knows more than any log: who was
// to blame, which rule of the check spoke, what was injected. Diagnosis sees the part below and
// nothing else, of real evidence and of its own simulated runs alike.
//
//   kept      verdict, step times, each rank's breakdown (profiler), error texts, timers and the
//             state in which each rank came up or not (logs), waits and recorded calls (flight recorder, py-spy),
//             transports and algorithms of communicators (NCCL log), bytes and busy share of links
//             (port, NVLink and PCIe counters), memory (allocator), the nodes whose NCCL log says that
//             a transport is not used there, warnings about steps, devices and memory
//   taken     patches, seed, symptom, culprits of any other kind, the critical path, timeline; of a
//             finding of the static check which rule it was and why: what is left is that results are
//             wrong, in which way (category) and on which rank
//
// Of the configuration the launch is readable (environment, launcher, arguments of the script), the state
// of the platform is not. Pure functions.
#pragma once

#include <string_view>

#include "sim/proto/outcome.pb.h"
#include "sim/proto/scenario.pb.h"

namespace rehearse::faults {

[[nodiscard]] pb::Outcome observable(const pb::Outcome& outcome);

// Whether a path of the scenario stands in files or environments that people can read. What a
// process does with devices, and whether a GPU computes wrong, does not.
[[nodiscard]] bool readable(std::string_view path);
// The launch with what is not readable taken out.
[[nodiscard]] pb::Launch readable_launch(const pb::Launch& launch);

}  // namespace rehearse::faults
