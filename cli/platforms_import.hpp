// SPDX-License-Identifier: Apache-2.0
// `rehearse platforms import FILE...`: a platform from what a machine tells of itself.
#pragma once

#include "base/error.hpp"
#include "cli/context.hpp"

namespace rehearse::cli {

// The files are the words after "import". Writes the platform as YAML to -o or stdout; with --json
// and -o a summary to stdout.
[[nodiscard]] Result<void> import_platform(Context& context);

}  // namespace rehearse::cli
