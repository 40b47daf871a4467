// SPDX-License-Identifier: Apache-2.0
// A scenario before anything is made of it: for those who write it down again.
#pragma once

#include <string>

#include "base/error.hpp"
#include "sim/proto/scenario.pb.h"

namespace rehearse::sim {

// The document of `what` (as load_scenario takes it) as it is written: neither `like` nor `count` is
// followed, no trace is read. Of a .rtrace: one that names it.
[[nodiscard]] Result<pb::Scenario> written_scenario(const std::string& what);

}  // namespace rehearse::sim
