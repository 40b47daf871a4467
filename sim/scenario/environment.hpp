// SPDX-License-Identifier: Apache-2.0
// The environment that a rank's process really has.
#pragma once

#include <map>
#include <string>

#include "sim/proto/scenario.pb.h"

namespace rehearse::sim {

// That of the job, with the rank's own on top; a variable with an empty value is unset. Below it what NCCL reads from the
// file that NCCL_CONF_FILE names and from /etc/nccl.conf, where launch.files has their text.
[[nodiscard]] std::map<std::string, std::string> environment_of(const pb::Launch& launch,
                                                                const pb::RankLaunch& rank);

}  // namespace rehearse::sim
