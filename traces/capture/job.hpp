// SPDX-License-Identifier: Apache-2.0
// Who this process is in the job, and which variables of its environment are worth keeping: an allow-list,
// less what looks like a secret.
#pragma once

#include <cstdint>
#include <string_view>

namespace rehearse::capture {

struct Place {
  int64_t rank = -1, world_size = -1, local_rank = -1;  // -1: not known
};
// From the variables of torchrun, Horovod, MPI libraries and Slurm, the innermost launcher first.
[[nodiscard]] Place place_in_job();

[[nodiscard]] bool is_recorded_variable(std::string_view name);

}  // namespace rehearse::capture
