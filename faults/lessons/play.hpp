// SPDX-License-Identifier: Apache-2.0
// A lab played through by itself: the broken job shows what it promises, the reference solution passes, and what is no
// repair is told apart, with the right remark. For teachers who write labs, and for the tests of the shipped ones.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/reporter.hpp"
#include "faults/lessons/job.hpp"

namespace rehearse::faults {

struct Played {
  std::string what;  // "the solution", "doing nothing", "a longer timeout", or a wrong repair
  bool as_promised = false;
  std::string said;  // what came out
};

// One row per attempt, in the order above.
[[nodiscard]] Result<std::vector<Played>> play_lab(const LabJob& job, Reporter& reporter);

}  // namespace rehearse::faults
