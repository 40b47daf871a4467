// SPDX-License-Identifier: Apache-2.0
#include "traces/import/nothing_used.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rehearse::traces {

Error nothing_used(Error otherwise, const Findings& findings) {
  const auto& rows = findings.rows();
  const auto most =
      std::max_element(rows.begin(), rows.end(),
                       [](const Finding& a, const Finding& b) { return a.count < b.count; });
  if (most != rows.end()) {
    otherwise.what += fmt::format(" ({} {})", most->count, most->id);
    otherwise.fix = most->advice;
  }
  return otherwise;
}

}  // namespace rehearse::traces
