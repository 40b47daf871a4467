// SPDX-License-Identifier: Apache-2.0
// Where the real traces, logs and tables are: $REHEARSE_DATA, else ../shared/data beside the project. They may be absent;
// a test then says "skipped: " and why.
#pragma once

#include <cstdlib>
#include <filesystem>

namespace rehearse::tests {

inline std::filesystem::path real_data() {
  if (const char* set = std::getenv("REHEARSE_DATA")) return set;
  const char* home = std::getenv("REHEARSE_HOME");
  return std::filesystem::path(home != nullptr ? home : ".") / "../shared/data";
}

}  // namespace rehearse::tests
