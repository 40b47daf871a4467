// SPDX-License-Identifier: Apache-2.0
// What no importer believes, whatever the file says: beyond these a figure is damage, not data, and the
// event is left out with a finding. docs/import.md names them for users.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/units.hpp"

namespace rehearse::traces {

inline constexpr size_t kLongestName = 16 << 10;     // of an operation; the rest is cut off
inline constexpr size_t kMostLanes = 65'000;         // of one rank
inline constexpr int64_t kMostRank = 1 << 24;        // ranks of a job
inline constexpr Bytes kMostBytes = Bytes{1} << 50;  // of one call
// What one buffer has that holds `bytes` (0 or more) of each of `ranks` (above 0).
[[nodiscard]] constexpr Bytes gathered(Bytes bytes, int64_t ranks) {
  return std::min(bytes, kMostBytes / ranks) * ranks;
}
// Members of all communicators together. A few numbers in a file can tell of a million of them each.
inline constexpr uint64_t kMostMembers = uint64_t{1} << 24;
inline constexpr Nanos kLatest = Nanos{1} << 61;  // times from -73 to 73 years
// Memory beside its output that the reader of a format may use whose parts can be told only at the end of a
// file (Chakra's dependencies, TensorBoard's JSON). More is refused (kLimit).
inline constexpr uint64_t kMostHeld = uint64_t{256} << 20;

}  // namespace rehearse::traces
