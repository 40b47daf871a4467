// SPDX-License-Identifier: Apache-2.0
// What a report draws of a run, small enough to travel inside its outcome: the timeline with a level of detail, the
// cluster with the use of its links, memory over time.
#pragma once

#include <string>

#include "base/error.hpp"
#include "sim/outcome/outcome.hpp"
#include "sim/proto/pictures.pb.h"

namespace rehearse::sim {

// `evidence` is the run up to its end; `outcome` what was made of it.
[[nodiscard]] pb::Pictures make_pictures(const Scenario& scenario, const Evidence& evidence,
                                         const pb::Outcome& outcome);

// Nodes, devices, ranks and the use of links slice by slice.
void fill_cluster(const Scenario& scenario, const Evidence& evidence, pb::ClusterPicture& out);

// As text in Outcome.pictures, and back; kBadInput or kLimit for a text that is none of ours.
[[nodiscard]] std::string packed(const pb::Pictures& pictures);
[[nodiscard]] Result<pb::Pictures> unpacked_pictures(const std::string& text,
                                                     const std::string& where);

}  // namespace rehearse::sim
