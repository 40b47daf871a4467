// SPDX-License-Identifier: Apache-2.0
// How many channels and CUDA threads a call may use: small calls get fewer of both, so that every
// thread has its threshold of bytes (NCCL 2.28.9 topoGetAlgoInfo; NCCL model §5). Pure functions.
#pragma once

#include <cstdint>

#include "sim/nccl/call.hpp"
#include "sim/nccl/model.hpp"

namespace rehearse::sim {

struct Launch {
  int channels = 1;
  int threads = 0;  // per channel, a multiple of 32
};

// The most threads of an algorithm and protocol, after NCCL_NTHREADS and NCCL_LL128_NTHREADS; 0
// for PAT and for pairs that do not exist.
[[nodiscard]] int max_threads(const NcclModel& model, Algorithm algorithm, Protocol protocol);

// Bytes per thread below which a call gives up channels and threads.
[[nodiscard]] std::int64_t thread_threshold(const NcclModel& model, Algorithm algorithm,
                                            Protocol protocol);

// The call is one that check_call accepts.
[[nodiscard]] Launch launch_for(const NcclModel& model, const Call& call, Algorithm algorithm,
                                Protocol protocol);

// Threads of the kernel that runs a call: NCCL never launches less than 128.
[[nodiscard]] int block_threads(int n_threads);

}  // namespace rehearse::sim
