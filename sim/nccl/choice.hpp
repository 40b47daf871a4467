// SPDX-License-Identifier: Apache-2.0
// What NCCL picks for a call: algorithm, protocol, channels and threads (NCCL 2.28.9
// ncclTopoGetAlgoTime and topoGetAlgoInfo; NCCL model §4 and §5). Pure functions of the model and
// the call.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "base/error.hpp"
#include "sim/nccl/call.hpp"
#include "sim/nccl/model.hpp"
#include "sim/nccl/names.hpp"

namespace rehearse::sim {

struct Choice {
  Algorithm algorithm = Algorithm::kRing;
  Protocol protocol = Protocol::kSimple;
  float time_us = 0;     // NCCL's own prediction, not a measurement
  int max_channels = 1;  // channels the call may use
  int n_threads = 0;     // CUDA threads per block, a multiple of 32
};

// NCCL's predicted time of every algorithm and protocol for one call; negative: not available.
// This is what a tuner plugin sees and may edit (NCCL model §4.4).
using CostTable = std::array<std::array<float, kProtocolCount>, kAlgorithmCount>;

// Code::kBadInput when the call cannot be (check_call).
[[nodiscard]] Result<CostTable> cost_table(const NcclModel& model, const Call& call);

// Why this call cannot use an algorithm that the cost table has (NCCL model §4.2); empty when it
// can.
[[nodiscard]] std::string_view call_refusal(const NcclModel& model, const Call& call,
                                            Algorithm algorithm);

// The smallest time wins; among equal times the first algorithm, then the first protocol. With one
// rank always RING SIMPLE in no time. Code::kBadInput when the settings leave nothing to choose.
[[nodiscard]] Result<Choice> choose(const NcclModel& model, const Call& call);

// The same from a table that a tuner plugin has edited; `tuner_channels` are the channels it sets.
[[nodiscard]] Result<Choice> choose_tuned(const NcclModel& model, const Call& call,
                                          const CostTable& costs,
                                          std::optional<int> tuner_channels);

// T = L·c + bytes/(1000·B) of one cell, µs; negative when the cell is not available.
[[nodiscard]] float predicted_time_us(const NcclModel& model, const Call& call, Algorithm algorithm,
                                      Protocol protocol);

}  // namespace rehearse::sim
