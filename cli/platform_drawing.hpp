// SPDX-License-Identifier: Apache-2.0
// A picture of a platform: nodes with their GPUs and NICs, and the switches that join them.
#pragma once

#include <string>

#include "platforms/proto/platform.pb.h"

namespace rehearse::cli {

// An SVG document of an expanded platform. Large platforms are drawn by their first nodes, and say
// so.
[[nodiscard]] std::string draw(const pb::Platform& platform);

}  // namespace rehearse::cli
