// SPDX-License-Identifier: Apache-2.0
// The one spelling of each name that logs, tables and dumps write in many ways.
#pragma once

#include <string>
#include <string_view>

namespace rehearse::traces {

// "AllReduce", "all_reduce_perf", "ncclAllReduce", "_all_gather_base", "alltoall" -> "all_reduce",
// "all_gather", "all_to_all"; "" for what is no collective. Case-blind.
[[nodiscard]] std::string collective_name(std::string_view text);
// "RING", "1" -> "Ring"; "" for unknown. Numbers are NCCL's own: 0 Tree, 1 Ring, 2 CollNetDirect,
// 3 CollNetChain, 4 NVLS, 5 NVLSTree, 6 PAT.
[[nodiscard]] std::string algorithm_name(std::string_view text);
// "SIMPLE", "2" -> "Simple"; "" for unknown. Numbers: 0 LL, 1 LL128, 2 Simple.
[[nodiscard]] std::string protocol_name(std::string_view text);

}  // namespace rehearse::traces
