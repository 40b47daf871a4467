// SPDX-License-Identifier: Apache-2.0
// Expansion inside one written node: counts become copies, what is not written gets its default.
// The figures that are assumed for want of a data sheet stand in devices.cpp and are told in
// `assumptions`.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "platforms/proto/platform.pb.h"

namespace rehearse::platforms {

// `assumptions` gains a sentence for each default that is a guess. Addresses keep their "{i}".
void expand_devices(pb::Node& node, std::vector<std::string>& assumptions);

}  // namespace rehearse::platforms
