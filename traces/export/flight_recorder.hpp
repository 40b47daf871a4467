// SPDX-License-Identifier: Apache-2.0
// A flight recorder dump as PyTorch writes it in JSON (torch/csrc/distributed/c10d/FlightRecorder.cpp, version
// 2.10): what traces/import/flight_recorder reads. Pure.
#pragma once

#include <string>

#include "traces/proto/evidence.pb.h"

namespace rehearse::traces {

// One line of JSON.
[[nodiscard]] std::string flight_recorder_json(const pb::FlightRecorder& recorder);

}  // namespace rehearse::traces
