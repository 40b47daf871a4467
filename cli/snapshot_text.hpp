// SPDX-License-Identifier: Apache-2.0
// The state of a run at a moment for people: the first line says what it does then, tables follow. Pure functions.
#pragma once

#include <string>

#include "cli/terminal.hpp"
#include "sim/proto/snapshot.pb.h"

namespace rehearse::cli {

[[nodiscard]] std::string snapshot_text(const pb::Snapshot& snapshot, const Terminal& terminal);

}  // namespace rehearse::cli
