// SPDX-License-Identifier: Apache-2.0
// NVTX's door: ranges of the program and of NCCL, each written when it ends. Handles given out (domains,
// registered strings, ranges) are numbers, and stay right in the child of a fork.
#pragma once

#include "traces/capture/nvtx_layout.hpp"

namespace rehearse::capture::nvtx {

// Takes over the functions of one copy of NVTX; every library of a program has its own. Always 1.
int attach(GetExportTable get_export_table);
// The same for its extension of payloads.
int attach_extension(ModuleInfo* info);

}  // namespace rehearse::capture::nvtx
