// SPDX-License-Identifier: Apache-2.0
// What `rehearse capture` asks of the library, through variables REHEARSE_CAPTURE_*. Read once, when a
// session starts; words that are not understood are told and left out.
#pragma once

#include <cstddef>
#include <cstdint>

#include "traces/capture/extras.hpp"
#include "traces/capture/stretch.hpp"

namespace rehearse::capture {

constexpr size_t kLongestPath = 4096;

struct Settings {
  char folder[kLongestPath] = "rehearse-capture";  // REHEARSE_CAPTURE_FOLDER
  char cupti[kLongestPath] = "";                   // REHEARSE_CAPTURE_CUPTI: which libcupti
  size_t buffer_bytes = size_t{64} << 20;          // REHEARSE_CAPTURE_BUFFER_MIB, of all threads
  int64_t flush_ns = 1'000'000'000;                // REHEARSE_CAPTURE_FLUSH_MS
  // REHEARSE_CAPTURE_WITH=memory,proxy (extras.hpp)
  uint32_t nccl_events =
      kGroup | kColl | kP2p | kGroupApi | kCollApi | kP2pApi | kKernelLaunch | kCeColl;
  bool memory = false;  // allocations on the GPU
  bool graphs = false;  // CUDA graphs as wholes instead of their kernels
  Stretch stretch{};    // REHEARSE_CAPTURE_STEPS
};

// Complaints go to messages.hpp.
void read_settings(Settings& settings);

}  // namespace rehearse::capture
