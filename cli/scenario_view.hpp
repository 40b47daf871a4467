// SPDX-License-Identifier: Apache-2.0
// A scenario with its changes, shown instead of simulated: as the YAML that can be kept and run
// again, and with --json expanded, for those who draw it.
#pragma once

#include <string>

#include "cli/context.hpp"
#include "cli/scenario_options.hpp"

namespace rehearse::cli {

// `what` is where `edited` was loaded from.
[[nodiscard]] Result<void> show_scenario(Context& context, const std::string& what,
                                         const Edited& edited);

}  // namespace rehearse::cli
