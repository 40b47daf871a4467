// SPDX-License-Identifier: Apache-2.0
// Fixes of the static check, written down.
#pragma once

#include <string>

#include "base/error.hpp"
#include "faults/proto/check.pb.h"

namespace rehearse::faults {

// The text of a scenario (a file, an .rtrace or a shipped name) with the report's fixes as one more patch. kUsage when
// the report has no fix that is a change of configuration.
[[nodiscard]] Result<std::string> repaired_scenario(const std::string& what,
                                                    const pb::CheckReport& report);

}  // namespace rehearse::faults
