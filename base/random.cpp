// SPDX-License-Identifier: Apache-2.0
#include "base/random.hpp"

#include <cmath>
#include <numbers>

namespace rehearse {
namespace {

// splitmix64 finaliser (Steele, Lea, Flood 2014).
uint64_t mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;

}  // namespace

Random::Random(uint64_t seed, std::string_view purpose, uint64_t key) : key_(mix(seed + kGolden)) {
  for (char c : purpose) key_ = mix(key_ ^ (static_cast<unsigned char>(c) + kGolden));
  key_ = mix(key_ ^ mix(key + kGolden));
}

uint64_t Random::next() { return mix(key_ + kGolden * ++counter_); }

double Random::uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

uint64_t Random::below(uint64_t n) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * n) >> 64);
}

double Random::normal() {
  const double u = 1.0 - uniform();
  const double v = uniform();
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

}  // namespace rehearse
