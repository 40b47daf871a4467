// SPDX-License-Identifier: Apache-2.0
#include "platforms/model/pcie.hpp"

#include <array>

namespace rehearse::platforms {
namespace {

// PCI Express Base Specification: 2.5, 5 GT/s with 8b/10b; 8, 16, 32 GT/s with 128b/130b; 64, 128
// GT/s in flits of 256 bytes of which 242 carry packets. Bytes per second of one lane.
constexpr std::array<double, 8> kLane = {
    0,
    2.5e9 / 8 * 8 / 10,
    5e9 / 8 * 8 / 10,
    8e9 / 8 * 128 / 130,
    16e9 / 8 * 128 / 130,
    32e9 / 8 * 128 / 130,
    64e9 / 8 * 242 / 256,
    128e9 / 8 * 242 / 256,
};

}  // namespace

BytesPerSec bandwidth_of(const pb::PcieLink& link) {
  if (link.bandwidth() > 0) return link.bandwidth();
  if (link.generation() >= kLane.size()) return 0;
  return kLane[link.generation()] * (link.width() ? link.width() : 16);
}

}  // namespace rehearse::platforms
