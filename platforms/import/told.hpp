// SPDX-License-Identifier: Apache-2.0
// A node as NCCL takes it when a variable names a file: what the file says stands in place of what NCCL would find
// itself. Pure functions; nothing is opened here.
#pragma once

#include "base/error.hpp"
#include "base/finding.hpp"
#include "platforms/import/import.hpp"
#include "platforms/proto/platform.pb.h"

namespace rehearse::platforms {

// NCCL_TOPO_FILE: processors, PCIe switches, NVLinks and where GPUs and adapters hang (src/graph/xml.cc,
// src/graph/topo.cc). GPUs are found in the file by bus id, or by their order where it has as many but not all ids
// (those of a platform are often made up); adapters by name, and those that it does not list keep their processor. Of GPUs
// that only the file has nothing is left (ncclTopoTrimXml), those that it does not have NCCL adds as it finds them, with a
// finding "nccl-file"; a file that has none of them changes nothing, with such a finding too. kBadInput with line and
// column for one that NCCL cannot read.
[[nodiscard]] Result<pb::Node> told_topology(const pb::Node& node, const ImportText& file,
                                             Findings& findings);

// NCCL_GRAPH_FILE: its channels in place of those that NCCL would search for.
// kBadInput also for a GPU or adapter that the node does not have.
[[nodiscard]] Result<pb::Node> told_graphs(pb::Node node, const ImportText& file,
                                           Findings& findings);

}  // namespace rehearse::platforms
