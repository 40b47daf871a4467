// SPDX-License-Identifier: Apache-2.0
// Text that NCCL (NCCL_DEBUG) and nccl-tests write, often mixed in one file: gives the evidence of
// the log, of the measured tables, or of both.
#pragma once

#include <string_view>

#include "base/error.hpp"
#include "traces/import/part.hpp"

namespace rehearse::traces::nccl_log {

// A message of NCCL or its version banner stands in it.
[[nodiscard]] bool sniff(std::string_view head);
// kBadInput when neither a fact nor a row is in it.
[[nodiscard]] Result<FilePart> read(Source& source, ReadContext& context);

}  // namespace rehearse::traces::nccl_log
