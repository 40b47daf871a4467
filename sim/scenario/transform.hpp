// SPDX-License-Identifier: Apache-2.0
// Named transforms of the recorded program: the part of a patch that is code. Each takes the
// program and its parameters and edits the operations of the ranks it names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/rank_ranges.hpp"
#include "sim/proto/patch.pb.h"
#include "traces/program/program.hpp"

namespace rehearse::sim {

// Applies the transform of `patch` (its row of transforms.hpp). kBadInput when a parameter is missing that must be given,
// or when it names a rank or call that the program does not have. Transforms that act on something else change nothing
// here.
[[nodiscard]] Result<void> transform(traces::Program& program, const pb::Patch& patch);

// The ranks that slow-rank names. kBadInput when the text is no ranges.
[[nodiscard]] Result<std::vector<RankRange>> slowed_ranks(const pb::SlowRank& how);

// The single transforms. Parameters that must be given are there.
[[nodiscard]] Result<void> slow_rank(traces::Program& program, const pb::SlowRank& how);
[[nodiscard]] Result<void> skip_collective(traces::Program& program, const pb::SkipCollective& how);
[[nodiscard]] Result<void> repeat_steps(traces::Program& program, uint32_t factor);
constexpr Nanos kLongestPause = 31'536'000'000'000'000;  // a year
[[nodiscard]] Result<void> pause_rank(traces::Program& program, const pb::PauseRank& how);
[[nodiscard]] Result<void> write_checkpoint(traces::Program& program,
                                            const pb::WriteCheckpoint& how);
[[nodiscard]] Result<void> read_checkpoint(traces::Program& program, const pb::ReadCheckpoint& how);
[[nodiscard]] Result<void> load_data(traces::Program& program, const pb::LoadData& how);

[[nodiscard]] Result<void> end_early(traces::Program& program, const pb::EndEarly& how);
[[nodiscard]] Result<void> extra_collective(traces::Program& program,
                                            const pb::ExtraCollective& how);
[[nodiscard]] Result<void> resize_collective(traces::Program& program,
                                             const pb::ResizeCollective& how);
[[nodiscard]] Result<void> scale_collectives(traces::Program& program,
                                             const pb::ScaleCollectives& how);
[[nodiscard]] Result<void> swap_collectives(traces::Program& program,
                                            const pb::SwapCollectives& how);
[[nodiscard]] Result<void> delay_calls(traces::Program& program, const pb::DelayCalls& how);
[[nodiscard]] Result<void> slow_host(traces::Program& program, const pb::SlowHost& how);
[[nodiscard]] Result<void> slow_copies(traces::Program& program, const pb::SlowCopies& how);
[[nodiscard]] Result<void> vary_steps(traces::Program& program, const pb::VarySteps& how);
[[nodiscard]] Result<void> no_overlap(traces::Program& program, const pb::NoOverlap& how);

// Operations that wait for others of the same rank beyond their lane and edges: who, for whom.
void add_waits(traces::RankProgram& rank, std::vector<std::pair<traces::OpId, traces::OpId>> waits);

// kBadInput with the ranks there are when the program has no such rank; `patch` names the transform.
[[nodiscard]] Result<traces::RankProgram*> find_rank(traces::Program& program, uint32_t rank,
                                                     std::string_view patch);
// Index of a storage's name in Program::storages, which may gain it.
[[nodiscard]] uint32_t storage_index(traces::Program& program, const std::string& name);

}  // namespace rehearse::sim
