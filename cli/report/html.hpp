// SPDX-License-Identifier: Apache-2.0
// Text for the page. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/markup.hpp"
#include "sim/proto/outcome.pb.h"

namespace rehearse::cli {

// Escaped, and cut where it would fill the page.
[[nodiscard]] inline std::string text(std::string_view content, size_t most = 600) {
  return escape_markup(shortened(content, most));
}

// The command that made an outcome, with another verb if need be, as a shell takes it.
[[nodiscard]] std::string command_line(const pb::Outcome& outcome, std::string_view verb);

}  // namespace rehearse::cli
