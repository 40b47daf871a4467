// SPDX-License-Identifier: Apache-2.0
// What a practitioner can see of a run. An Outcome of the simulator knows more than any log: who was
// to blame, which rule of the check spoke, what was injected. Diagnosis sees what is listed here and
// nothing else, of real evidence and of its own simulated runs alike; a new field of an outcome is not seen
// until it is added.
//
//   verdict, step times, end and last progress   the job's own log
//   steps that were printed                      of logs alone
//   breakdown of each rank                       profiler
//   error texts, timers, states at start         logs of the ranks
//   first failure                                the launcher; in a hang the first log that tells of a timer
//   flight records, and who waits for whom       dumps and stack traces (recorded_waits.hpp)
//   communicators, nodes that fall back          NCCL's log and profile
//   bytes and busy share of links                counters of ports, NVLinks and PCIe
//   memory of each rank                          allocator
//   findings about steps, devices, memory        framework's log, nvidia-smi
//   that results are wrong, and in which way     the loss; not whose results: a rule of the check is reduced to its
//                                                category. Of jobs that are refused also where: it is on that screen
//
// Of ranks that were not recorded nothing is seen at all but that the launcher saw them end.
//
// Of the configuration the launch is readable (environment, launcher, arguments of the script), the state
// of the platform is not. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/proto/outcome.pb.h"
#include "sim/proto/scenario.pb.h"

namespace rehearse::faults {

[[nodiscard]] pb::Outcome observable(const pb::Outcome& outcome);

// Of what logs tell: how many steps the training script printed, a finding of this id with that count; nothing: its output
// is not there.
constexpr std::string_view kStepsTold = "steps-told";
[[nodiscard]] std::optional<uint32_t> steps_told(const pb::Outcome& outcome);

// Whether a path of the scenario stands in files or environments that people can read. What a
// process does with devices, and whether a GPU computes wrong, does not.
[[nodiscard]] bool readable(std::string_view path);
// The launch with what is not readable taken out.
[[nodiscard]] pb::Launch readable_launch(const pb::Launch& launch);

}  // namespace rehearse::faults
