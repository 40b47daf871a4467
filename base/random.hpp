// SPDX-License-Identifier: Apache-2.0
// Random numbers that depend on nothing but (seed, purpose, key): streams are counter-based, so a rank's
// draws do not change when another rank draws more. Distributions are our own; std's differ by library.
#pragma once

#include <cstdint>
#include <string_view>

namespace rehearse {

class Random {
 public:
  Random(uint64_t seed, std::string_view purpose, uint64_t key = 0);
  // Uniform 64 bits.
  [[nodiscard]] uint64_t next();
  // Uniform in [0, 1).
  [[nodiscard]] double uniform();
  // Uniform integer in [0, n); n > 0.
  [[nodiscard]] uint64_t below(uint64_t n);
  // Normal with mean 0 and deviation 1.
  [[nodiscard]] double normal();

 private:
  uint64_t key_;
  uint64_t counter_ = 0;
};

}  // namespace rehearse
