// SPDX-License-Identifier: Apache-2.0
// What went wrong inside the library: one line on stderr, and a record in the trace for whoever imports it.
// Never more than a handful, whatever happens. Any thread.
#pragma once

#include <cstddef>

namespace rehearse::capture {

constexpr size_t kLongestMessage = 480;

// printf's; a line without its end. The same text is told once.
[[gnu::format(printf, 1, 2)]] void complain(const char* format, ...);

// Texts so far; they stay where they are. For the writer.
[[nodiscard]] size_t messages();
[[nodiscard]] const char* message(size_t i);

}  // namespace rehearse::capture
