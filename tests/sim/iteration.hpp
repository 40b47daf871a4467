// SPDX-License-Identifier: Apache-2.0
// One iteration of a large job, as in the measurements that the engine's targets come from: per rank a host thread
// and two streams, about 22 operations per collective; nine of ten collectives are on tensor-parallel groups of 8, the
// tenth on the data-parallel group. For benchmarks and tests of growth.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "traces/program/program.hpp"
#include "traces/program/share.hpp"

namespace rehearse::tests {

// `ranks` is a multiple of 8; `rounds` collectives per rank.
inline Result<traces::Program> iteration(uint32_t ranks, int rounds) {
  traces::Program program;
  const uint32_t tp = 8, dp = ranks / tp;
  for (uint32_t g = 0; g < dp; ++g) {
    traces::Communicator c{"tp" + std::to_string(g), "tp", {}, "nccl"};
    for (uint32_t i = 0; i < tp; ++i) c.members.push_back(g * tp + i);
    program.communicators.push_back(std::move(c));
  }
  for (uint32_t g = 0; g < tp; ++g) {
    traces::Communicator c{"dp" + std::to_string(g), "dp", {}, "nccl"};
    for (uint32_t i = 0; i < dp; ++i) c.members.push_back(i * tp + g);
    program.communicators.push_back(std::move(c));
  }
  program.steps = 1;
  traces::SharedColumns columns;
  for (uint32_t r = 0; r < ranks; ++r) {
    traces::RankTrace rank;
    rank.rank = r;
    rank.lanes = {{traces::LaneKind::kHostThread, 1, 0},
                  {traces::LaneKind::kStream, 7, 0},
                  {traces::LaneKind::kStream, 20, 0}};
    Nanos host = 0, compute = 0, comm = 0;
    int64_t id = 0, tp_seq = 0, dp_seq = 0;
    for (int i = 0; i < rounds; ++i) {
      for (int k = 0; k < 10; ++k) {
        ++id;
        rank.ops.add(traces::OpKind::kLaunch, 0, 0, host, 4000, id);
        host += 4000;
        // Ranks differ, each by itself, so that no two hold the same durations.
        const Nanos kernel = 20'000 + r % 7 * 100 + r;
        compute = std::max(compute, host) + kernel;
        rank.ops.add(traces::OpKind::kKernel, 1, 0, compute - kernel, kernel, id);
      }
      traces::Call call;
      const bool data = i % 10 == 9;
      call.communicator = data ? dp + r % tp : r / tp;
      call.sequence = data ? dp_seq++ : tp_seq++;
      call.bytes_in = call.bytes_out = data ? 25'000'000 : 4'000'000;
      call.dtype = traces::DType::kBf16;
      ++id;
      rank.ops.add(traces::OpKind::kLaunch, 0, 0, host, 4000, id);
      host += 4000;
      comm = std::max(comm, host) + 30'000;
      rank.ops.add_call(2, 0, comm - 30'000, 30'000, id, call);
    }
    rank.steps.push_back({0, 0, std::max(host, compute)});
    rank.ops.sort();
    RH_TRY(traces::RankProgram built, traces::build_rank_program(rank, 1, program.findings));
    columns.share(built);
    program.ranks.push_back(std::move(built));
  }
  return program;
}

}  // namespace rehearse::tests
