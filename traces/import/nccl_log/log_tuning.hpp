// SPDX-License-Identifier: Apache-2.0
// The tables of NCCL_DEBUG_SUBSYS=TUNING: latency and bandwidth per collective, algorithm and
// protocol, in blocks whose header rows name the columns. Up to 2.23 one header row names both
// ("Tree/    LL"), later ones name algorithms and protocols apart.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "traces/proto/evidence.pb.h"

namespace rehearse::traces::nccl_log {

// What the columns of the rows that follow mean.
struct TuningHeader {
  std::vector<std::string> algorithms;  // one for three columns, or one per column
  std::vector<std::string> protocols;   // per column
};

enum class TuningRow { kNone, kHeader, kCells };

// kCells: cells that are not 0/0 are added to `communicator`, a cell that is there already is kept.
TuningRow read_tuning_row(std::string_view text, TuningHeader& header,
                          pb::NcclCommunicator& communicator);

}  // namespace rehearse::traces::nccl_log
