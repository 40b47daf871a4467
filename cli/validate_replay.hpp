// SPDX-License-Identifier: Apache-2.0
// `rehearse validate replay TRACE...`: recorded jobs replayed as recorded, beside what was measured.
#pragma once

#include "cli/context.hpp"

namespace rehearse::cli {

// Inputs after the first word are the files of one job. Exit code 1 when the target is missed.
[[nodiscard]] Result<int> validate_replay(Context& context);

}  // namespace rehearse::cli
