// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/search.hpp"

namespace rehearse::sim {
namespace {

// NCCL 2.28.9 (NCCL model §7.3); 2.30 adds classes for Blackwell (§10).
constexpr float kIntra[] = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
constexpr float kIntraHopper[] = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
constexpr float kIntraBlackwell[] = {90, 80, 70, 60, 50, 40, 30, 24, 20, 19, 18};
constexpr float kIntraBlackwell30[] = {90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18};
constexpr float kInter[] = {48, 30, 28, 24, 20, 18,   15,   12,   10,  9,
                            7,  6,  5,  4,  3,  2.4F, 1.2F, .24F, .12F};
constexpr float kInterHopper[] = {48, 45, 42, 40, 30,   24,   22,   20,  17.5F,
                                  15, 12, 6,  3,  2.4F, 1.2F, .24F, .12F};
constexpr float kInterBlackwell[] = {96,    48, 45.1F, 42, 40, 30,   24,   22,   20,
                                     17.5F, 15, 12,    6,  3,  2.4F, 1.2F, .24F, .12F};
constexpr float kInterBlackwell30[] = {96, 86,    80, 48, 45.1F, 42, 40,   30,   24,   22,
                                       20, 17.5F, 15, 12, 6,     3,  2.4F, 1.2F, .24F, .12F};

}  // namespace

std::span<const float> speed_classes(int cc, bool network, const NcclVersion& version) {
  const bool newest = version >= NcclVersion{2, 30, 0};
  if (cc >= 100) {
    if (network) return newest ? std::span<const float>(kInterBlackwell30) : kInterBlackwell;
    return newest ? std::span<const float>(kIntraBlackwell30) : kIntraBlackwell;
  }
  if (cc >= 90) return network ? std::span<const float>(kInterHopper) : kIntraHopper;
  return network ? std::span<const float>(kInter) : kIntra;
}

}  // namespace rehearse::sim
