// SPDX-License-Identifier: Apache-2.0
// The calls of a job as a Python script of its own: who calls what, in which order, on which group, with how many
// elements. It runs on real GPUs or on CPU with torch.distributed, or with mpi4py, and needs nothing of rehearse.
//
// A rank issues its calls in order and does not wait for them, except where the job does: for the call before it on the
// same stream when that is of another group, and for what the job waits for. Work between calls is left out.
#pragma once

#include <map>
#include <string>

#include "base/error.hpp"
#include "base/reporter.hpp"
#include "sim/shrink/job.hpp"

namespace rehearse::sim {

enum class ScriptFor { kTorch, kMpi };

struct ScriptText {
  std::string name;      // of the job
  std::string expected;  // "hang (D2.1): rank 11: ...", told at the top; empty: nothing is
};

// Ranks of the job are numbered from 0. A rank that stops does so after as many calls as it had left when it stopped in
// the simulation. kLimit when there are too many calls to be read; kBadInput when there are none.
[[nodiscard]] Result<std::string> script_of(const Job& job, ScriptFor what, const ScriptText& text,
                                            Reporter& reporter);

// When a rank (position in Job::ranks) leaves each call that it leaves, in order of time; ranks that a patch stops go on.
[[nodiscard]] Result<std::vector<Nanos>> call_ends(Job job, size_t rank, Reporter& reporter);

}  // namespace rehearse::sim
