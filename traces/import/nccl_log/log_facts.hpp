// SPDX-License-Identifier: Apache-2.0
// What single messages of NCCL say, one function per family: each returns nothing when the text is
// of another family, so that callers try them in turn. Pure functions over the text behind
// "NCCL INFO ". Spellings of NCCL 2.12 to 2.30.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/proto/evidence.pb.h"

namespace rehearse::traces::nccl_log {

// "NCCL version 2.28.9+cuda13.0" -> {"2.28.9", "13.0"}; also behind other text.
[[nodiscard]] std::optional<std::pair<std::string, std::string>> version_in(std::string_view text);
// AMD's library ends its lines with the communicator: "Ring 00 : 3 -> 0 -> 1 comm 0x55 nRanks 08 busId
// c1000" -> {"Ring 00 : 3 -> 0 -> 1", "0x55"}; {text, ""} without.
[[nodiscard]] std::pair<std::string_view, std::string> without_comm(std::string_view text);
// "NCCL_X set to v", "NCCL_X set by environment to v."
[[nodiscard]] std::optional<std::pair<std::string, std::string>> variable_in(std::string_view text);

// Lines that name a communicator by its pointer.
struct CommLine {
  std::string comm;     // "0x55.."
  std::string comm_id;  // "0xa30f..", "" without
  // Of ncclCommSplit: the communicator it came from, how many were made of it before, and its color.
  std::string parent;
  int split = -1, color = -1;
  int rank = -1;
  int ranks_total = 0;
  int nodes = 0;
  int device = -1, nvml_device = -1;
  std::string bus_id;
  int local_rank = -1, local_ranks = 0;
  enum class What { kStart, kComplete, kDestroy, kAbort, kPlacement } what = What::kPlacement;
};
[[nodiscard]] std::optional<CommLine> comm_line_in(std::string_view text);

struct CallLine {
  pb::NcclCall call;
  std::string comm;
  int ranks_total = 0;
};
[[nodiscard]] std::optional<CallLine> call_in(std::string_view text);

// "Channel 00/24 : 0 1 2 3": the ring and the 24.
[[nodiscard]] std::optional<std::pair<pb::NcclRing, uint32_t>> ring_in(std::string_view text);
[[nodiscard]] std::optional<pb::NcclRingHop> ring_hop_in(std::string_view text);
// "Trees [0] 1/-1/-1->0->-1 [1] ..", "NVLS Trees : 1/2/3->0->-1 .."; as many as are whole.
[[nodiscard]] std::vector<pb::NcclTreeHop> trees_in(std::string_view text, std::string_view head);
// "Tree 0 : -1 -> 0 -> 1/2/-1".
[[nodiscard]] std::optional<pb::NcclTreeHop> tree_in(std::string_view text);
[[nodiscard]] std::optional<pb::NcclConnection> connection_in(std::string_view text);
[[nodiscard]] std::optional<pb::NcclSearch> search_in(std::string_view text);
[[nodiscard]] std::optional<pb::NcclChoice> choice_in(std::string_view text);

// NICs of "[0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>".
[[nodiscard]] std::vector<pb::NcclNic> nics_in(std::string_view text);

}  // namespace rehearse::traces::nccl_log
