// SPDX-License-Identifier: Apache-2.0
// The limits of the import as people give them: --limit NAME=VALUE. What is beyond one ends with exit code 75.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "traces/import/import.hpp"

namespace rehearse::cli {

// Every limit with its default, for the help: "bytes=1TiB, ratio=250, ...".
[[nodiscard]] std::string limits_with_defaults();

// Sets what `given` says ("operations=1000000", "bytes=4GiB"). kUsage for an unknown name, with the nearest, and for
// a value that is no positive number.
[[nodiscard]] Result<void> set_limits(const std::vector<std::string>& given,
                                      traces::ImportOptions& options);

}  // namespace rehearse::cli
