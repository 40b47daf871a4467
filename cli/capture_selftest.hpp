// SPDX-License-Identifier: Apache-2.0
// `rehearse capture --selftest`: whether this machine can record, before a run that somebody waited for.
#pragma once

#include "cli/capture_plan.hpp"
#include "cli/context.hpp"

namespace rehearse::cli {

// 0 when nothing is wrong (what is not there is skipped and said), 1 otherwise.
[[nodiscard]] Result<int> run_selftest(Context& context, const CaptureRequest& request);

}  // namespace rehearse::cli
