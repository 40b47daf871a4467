// SPDX-License-Identifier: Apache-2.0
// What a learner has done so far, over all working folders: a file in the user's state folder. And the points.
#pragma once

#include <filesystem>

#include "base/error.hpp"
#include "faults/proto/lab.pb.h"

namespace rehearse::faults {

// Points of a passed lab after so many hints; 0 when the solution was looked at.
[[nodiscard]] uint32_t score_of(const pb::LabScript& script, const pb::LabState& state);

// Empty when there is none yet.
[[nodiscard]] Result<pb::LabProgress> read_progress();
// Notes a state; a lab that was passed stays passed, with its best score.
[[nodiscard]] Result<void> note_progress(const pb::LabState& state);

// Null when the lab was never touched.
[[nodiscard]] const pb::LabState* find_state(const pb::LabProgress& progress, std::string_view lab);

}  // namespace rehearse::faults
