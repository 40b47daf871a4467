// SPDX-License-Identifier: Apache-2.0
// Parts of `rehearse validate`, one per kind of reference.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"

namespace rehearse::cli {

class Context;

// Exit code 1 when the median error of calls of 1 MiB and more is above the target.
[[nodiscard]] Result<int> validate_nccl_tests(Context& context,
                                              const std::vector<std::string>& files);

}  // namespace rehearse::cli
