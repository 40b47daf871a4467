// SPDX-License-Identifier: Apache-2.0
// NCCL's tuner plugin, versions 3 to 6; version 2 is not shown the costs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "traces/capture/nccl_profiler_layout.hpp"

namespace rehearse::capture::nccl {

using TunerInitV3 = int (*)(size_t ranks, size_t nodes, Logger logger, void** context);
using TunerInitV5 = int (*)(void** context, uint64_t communicator, size_t ranks, size_t nodes,
                            Logger logger, void* domains, void* constants);
using CostsV3 = int (*)(void* context, int function, size_t bytes, int operations, float** costs,
                        int algorithms, int protocols, int* channels);
using CostsV4 = int (*)(void* context, int function, size_t bytes, int operations, float** costs,
                        int algorithms, int protocols, int registered, int* channels);

template <typename Init, typename Costs>
struct Tuner {
  const char* name;
  Init init;
  Costs get_collective_info;
  int (*finalize)(void* context);
};
using TunerV3 = Tuner<TunerInitV3, CostsV3>;
using TunerV4 = Tuner<TunerInitV3, CostsV4>;
using TunerV5 = Tuner<TunerInitV5, CostsV4>;
struct TunerV6 {
  const char* name;
  TunerInitV5 init;
  CostsV4 get_collective_info;
  int (*finalize)(void* context);
  void* get_chunk_size;  // null: NCCL's own
};

}  // namespace rehearse::capture::nccl
