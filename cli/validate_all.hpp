// SPDX-License-Identifier: Apache-2.0
// `rehearse validate` without a subject: every check of accuracy as text, JSON or the published page; and `validate pairs`, one of
// them on files of one's own.
#pragma once

#include <string>
#include <vector>

#include "cli/context.hpp"

namespace rehearse::cli {

// Exit code 0 also where a target is not reached, unless --strict asks otherwise.
[[nodiscard]] Result<int> validate_all(Context& context);
// Published pairs of any file.
[[nodiscard]] Result<int> validate_pairs(Context& context, const std::vector<std::string>& files);

}  // namespace rehearse::cli
