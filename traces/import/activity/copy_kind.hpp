// SPDX-License-Identifier: Apache-2.0
// What CUPTI's number of a memory copy means (CUpti_ActivityMemcpyKind, and the kinds of unified memory that
// Nsight Systems adds behind them).
#pragma once

#include <cstdint>

#include "traces/model/trace.hpp"

namespace rehearse::traces::activity {

struct CopyKind {
  const char* name = nullptr;
  CopyDirection direction = CopyDirection::kUnknown;
};
[[nodiscard]] CopyKind copy_kind(int64_t kind);

}  // namespace rehearse::traces::activity
