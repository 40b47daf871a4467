// SPDX-License-Identifier: Apache-2.0
// Chakra execution traces (MLCommons): length-delimited protobuf of either schema generation (1.0.x and
// 1.1.x on; the file says which), the JSON form with a workload_graph, and the JSON that Chakra's own
// jsonizer prints. One file is one rank. Nodes have durations and dependencies; where they have no start
// times, those are the earliest that dependencies and lanes allow. Dependencies become launches (host
// node before GPU node) and Operations::dependencies.
#pragma once

#include <string_view>

#include "base/error.hpp"
#include "traces/import/part.hpp"

namespace rehearse::traces::chakra {

[[nodiscard]] bool sniff(std::string_view head);
[[nodiscard]] Result<FilePart> read(Source& source, ReadContext& context);

}  // namespace rehearse::traces::chakra
