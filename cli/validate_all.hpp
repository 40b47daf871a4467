// SPDX-License-Identifier: Apache-2.0
// `rehearse validate` without a subject: every check of accuracy as text, JSON or the published page.
#pragma once

#include "cli/context.hpp"

namespace rehearse::cli {

// Exit code 0 also where a target is not reached, unless --strict asks otherwise.
[[nodiscard]] Result<int> validate_all(Context& context);

}  // namespace rehearse::cli
