// SPDX-License-Identifier: Apache-2.0
// `rehearse validate nccl-log`: an NCCL log against our decisions on a platform.
#pragma once

#include "base/error.hpp"
#include "cli/context.hpp"

namespace rehearse::cli {

// Inputs: the word nccl-log, then files; options platform and env. Exit code 1 when something
// differs.
[[nodiscard]] Result<int> run_validate_nccl_log(Context& context);

}  // namespace rehearse::cli
