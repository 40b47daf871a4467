// SPDX-License-Identifier: Apache-2.0
// From an outcome to the symptom a practitioner would report. The classifier sees what a run shows
// (verdict, phase, texts, transports, step times, who waited), never what was injected: `patches`
// is not read. The rules are tried in this order; the first that holds decides and gives its
// reasons.
//
//   verdict           rule                                                                  category
//   wrong-semantics   finding effective-world-size                                          D2.3
//                     finding learning-rate or effective-batch                              D2.5
//                     otherwise                                                             D2.4
//   hang              first failure while starting, in rendezvous or bootstrap              B2
//                     ... in preparation                                                    C4
//                     finding uneven-steps                                                  C6
//                     otherwise                                                             D2.1
//   crash, rejected   a text of the table in crash_texts.cpp, for the phase it happened in
//                     memory: a rank's peak above its capacity                              D1.5
//                     while starting                                                        A1
//                     in rendezvous or bootstrap; B2 when the text tells of a timeout       B1
//                     in preparation, in a collective (else C1)                             C3
//                     checkpointing                                                         D1.6
//                     in a collective (communicator named)                                  D1.1
//                     otherwise                                                             D1.12
//   completed         finding unexpected-device                                             D2.6
//                     finding transport-fallback, or a communicator that uses a slower
//                     transport than the platform offers                                    B3
//                     mean step over 5 % longer than the baseline's                         D2.2
//                     no baseline: few ranks are busy over 10 % of the step longer than the
//                     median rank, while the others wait for them                           D2.2
//                     otherwise                                                             healthy
//
// Pure functions.
#pragma once

#include <string_view>

#include "sim/proto/outcome.pb.h"

namespace rehearse::faults {

constexpr std::string_view kHealthy = "healthy";
// A step this much longer than the baseline's counts as slow.
constexpr double kSlowerThan = 0.05;
// Without a baseline: a rank this share of a step busier than the median rank stands out.
constexpr double kStandsOut = 0.10;

[[nodiscard]] pb::Symptom classify(const pb::Outcome& outcome);

// The label of a category, "healthy" for that; empty for an unknown id.
[[nodiscard]] std::string_view symptom_label(std::string_view id);

// Classes of transport, slower first, from the words of NCCL's log ("NET/Socket", "NET/IB/GDRDMA",
// "P2P/NVL"). Only classes of one kind (between nodes; inside a node) compare.
struct TransportClass {
  bool between_nodes = false;
  int rank = -1;  // -1: unknown word
};
[[nodiscard]] TransportClass transport_class(std::string_view transport);

}  // namespace rehearse::faults
