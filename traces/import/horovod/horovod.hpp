// SPDX-License-Identifier: Apache-2.0
// Horovod timelines (HOROVOD_TIMELINE, horovodrun --timeline-filename), also as SageMaker Debugger rewrites
// and rotates them. Rank 0 writes for all ranks: per tensor when each rank was ready, the phases on rank 0,
// and the collective that carried it, fused with others. There are no kernels in it.
//
// Rank 0 gets the phases of every tensor as annotations on a lane of that tensor. Every rank gets its
// readiness as annotations of no length, and each collective once per fusion group: from when the rank was
// ready and the previous collective over, to the end that rank 0 saw.
#pragma once

#include <string_view>

#include "base/error.hpp"
#include "traces/import/part.hpp"

namespace rehearse::traces::horovod {

[[nodiscard]] bool sniff(std::string_view head);
[[nodiscard]] Result<FilePart> read(Source& source, ReadContext& context);

}  // namespace rehearse::traces::horovod
