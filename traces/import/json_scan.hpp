// SPDX-License-Identifier: Apache-2.0
// Finds where a JSON object or array ends without parsing it: brackets are counted outside of
// strings, 64 bytes at a time. The hot spot of every JSON import; the only file that knows the
// instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rehearse::traces {

// Carried over when a value continues in the next block of input.
struct ScanState {
  uint64_t in_string = 0;  // all ones inside a string
  bool escaped = false;    // the next byte is escaped
  uint32_t depth = 0;      // open brackets
  uint32_t deepest = 0;    // checked at most once per 64 bytes, so up to 63 levels late
};

// Bytes that must be readable (not meaningful) after `end`.
constexpr size_t kScanPadding = 64;

// Scans [begin, end); returns the position just after the bracket that closes the value, or null
// when the value does not end here. `begin` is the opening bracket at first, then wherever the last
// call stopped.
[[nodiscard]] const char* scan_value(const char* begin, const char* end, ScanState& state);

}  // namespace rehearse::traces
