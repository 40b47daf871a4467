// SPDX-License-Identifier: Apache-2.0
// The options a synthetic trace was made with, as (name, value) in the order of the schema. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "traces/proto/synth.pb.h"

namespace rehearse::traces {

// Only those that are set; values are numbers or UTF-8 text.
[[nodiscard]] std::vector<std::pair<std::string, nlohmann::ordered_json>> generator_options(
    const pb::Synth& synth);

}  // namespace rehearse::traces
