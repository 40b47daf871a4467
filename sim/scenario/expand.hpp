// SPDX-License-Identifier: Apache-2.0
// From the scenario as written to the one that patches address: the platform expanded, one launch
// entry per rank with its node and GPU, defaults filled in from the trace.
#pragma once

#include "sim/scenario/scenario.hpp"

namespace rehearse::sim {

// A platform that is not given is found from the trace's GPUs (said in findings). `where` names the
// document in errors. kBadInput when ranks do not fit on the platform.
[[nodiscard]] Result<void> expand(Scenario& scenario, const std::string& where);

// Every rank sits on a GPU that exists: also after patches. kBadInput with the rank in `where`.
[[nodiscard]] Result<void> check_seats(const pb::Scenario& document, const std::string& where);

}  // namespace rehearse::sim
