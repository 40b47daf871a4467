// SPDX-License-Identifier: Apache-2.0
#include "base/sparkline.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace rehearse {

std::string sparkline(std::span<const double> values) {
  static constexpr std::array<const char*, 8> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr size_t kMost = 40;
  std::vector<double> shown(std::min(values.size(), kMost), 0);
  for (size_t i = 0; i < values.size(); ++i) {
    double& stretch = shown[i * shown.size() / values.size()];
    stretch = std::max(stretch, values[i]);
  }
  const double largest = shown.empty() ? 0 : *std::max_element(shown.begin(), shown.end());
  std::string out;
  for (const double value : shown) {
    const double share = largest > 0 ? std::clamp(value / largest, 0.0, 1.0) : 0.0;
    out += kBlocks[std::min<size_t>(7, static_cast<size_t>(share * 8))];
  }
  return out;
}

}  // namespace rehearse
