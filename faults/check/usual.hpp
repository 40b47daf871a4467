// SPDX-License-Identifier: Apache-2.0
// What most of several parts have: the others are the odd ones.
#pragma once

#include <map>
#include <vector>

namespace rehearse::faults {

// The value that occurs most often; the first of equals. `values` is not empty.
template <typename T>
[[nodiscard]] T usual(const std::vector<T>& values) {
  std::map<T, int> counts;
  for (const T& value : values) ++counts[value];
  T best = values.front();
  for (const T& value : values) {
    if (counts[value] > counts[best]) best = value;
  }
  return best;
}

}  // namespace rehearse::faults
