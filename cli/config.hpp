// SPDX-License-Identifier: Apache-2.0
// `--print-config`: every setting that a command line would run with, and where it comes from. What the
// command line says wins over the environment, and both over defaults.
#pragma once

#include <string>
#include <vector>

#include "cli/context.hpp"

namespace rehearse::cli {

struct Setting {
  std::string name;    // "--seed" or "REHEARSE_CACHE"
  std::string value;   // empty: none
  std::string origin;  // command line, environment, default, not set
};

[[nodiscard]] std::vector<Setting> settings_of(const Context& context);
// As a table, or rehearse.config/1 with --json.
[[nodiscard]] Result<void> print_config(Context& context);

}  // namespace rehearse::cli
