// SPDX-License-Identifier: Apache-2.0
// The part of a run that is to be recorded, as the user writes it. Pure; the verb and the library read it with
// the same function.
#pragma once

#include <cstdint>
#include <string_view>

namespace rehearse::capture {

struct Stretch {
  enum class Of : uint8_t { kAll, kSteps, kTime } of = Of::kAll;
  int64_t first = 0, last = 0;  // numbers of steps, both included; or nanoseconds
};

// "3-5" or "7": steps. "10s-20s", "500ms-2s", "1min-2min": time after the start of the session.
[[nodiscard]] bool read_stretch(std::string_view text, Stretch& out);

}  // namespace rehearse::capture
