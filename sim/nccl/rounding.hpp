// SPDX-License-Identifier: Apache-2.0
// Whole-number arithmetic that NCCL's planning is full of. Arguments are not negative, divisors
// positive.
#pragma once

#include <bit>
#include <cstdint>

namespace rehearse::sim {

[[nodiscard]] constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// The least multiple of `grain` that is not below `a`.
[[nodiscard]] constexpr std::int64_t round_up(std::int64_t a, std::int64_t grain) {
  return ceil_div(a, grain) * grain;
}

// ⌊log2 n⌋, −1 for 0.
[[nodiscard]] constexpr int floor_log2(std::int64_t n) {
  return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n))) - 1;
}

}  // namespace rehearse::sim
