// SPDX-License-Identifier: Apache-2.0
// What --platform names.
#pragma once

#include <string>

#include "base/error.hpp"
#include "platforms/proto/platform.pb.h"

namespace rehearse::cli {

// A catalogue id or a YAML file; compact, `like` resolved. kMissingInput when it is neither.
[[nodiscard]] Result<pb::Platform> read_platform(const std::string& name);

}  // namespace rehearse::cli
