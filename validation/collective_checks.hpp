// SPDX-License-Identifier: Apache-2.0
// Times of collectives against published nccl-tests tables: from data sheets alone, and calibrated on
// other configurations of the same hardware. Every table that shares (hardware, nodes, GPUs,
// collective) with the target is left out of its fit: repeats of one configuration differ by 0.1 to
// 0.4 %, so leaving out one of them alone would prove nothing. The 90 % band of a prediction is made of
// the errors of the other left-out configurations at about that size.
#pragma once

#include <vector>

#include "validation/calibrate/observations.hpp"
#include "validation/check.hpp"

namespace rehearse::validation {

[[nodiscard]] std::vector<Check> collective_checks(const std::vector<ObservedHardware>& hardware);

// Size from which bandwidth decides, and below which latency does.
constexpr Bytes kLargeMessage = Bytes{1} << 20;
constexpr Bytes kSmallMessage = Bytes{64} << 10;

}  // namespace rehearse::validation
