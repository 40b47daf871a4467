// SPDX-License-Identifier: Apache-2.0
// The texts of a lab for people, in Markdown that reads well on a terminal. Pure functions.
#pragma once

#include <string>

#include "faults/lessons/job.hpp"
#include "faults/symptoms/categories.hpp"
#include "sim/proto/outcome.pb.h"

namespace rehearse::faults {

// What `learn show` prints: goal, background, what the study knows of the symptom.
[[nodiscard]] std::string lab_text(const pb::Lab& lab, const Categories& categories);

// README.md of a working folder. `broken` is the run of the broken job.
[[nodiscard]] std::string readme_text(const LabJob& job, const pb::Outcome& broken,
                                      const pb::Repairs& repairs);

// What it was, with sources and how often such faults were repaired this way: after the lab.
[[nodiscard]] std::string explanation_text(const LabJob& job, const Categories& categories);

// The reference solution as edits.
[[nodiscard]] std::string solution_text(const LabJob& job);

}  // namespace rehearse::faults
