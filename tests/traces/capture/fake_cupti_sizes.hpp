// SPDX-License-Identifier: Apache-2.0
// Bytes of CUPTI 13.0's records, which fake_cupti_check.cpp compares with the real headers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "traces/capture/cupti_layout.hpp"

namespace rehearse::tests {

constexpr size_t size_of(uint32_t kind) {
  switch (kind) {
    case capture::cupti::kConcurrentKernel:
    case capture::cupti::kKernel:
      return 216;
    case capture::cupti::kMemcpy:
    case capture::cupti::kMemcpy2:
      return 96;
    case capture::cupti::kMemset:
      return 88;
    case capture::cupti::kDriver:
    case capture::cupti::kRuntime:
      return 40;
    case capture::cupti::kSynchronization:
    case capture::cupti::kCudaEvent:
    case capture::cupti::kOverhead:
    case capture::cupti::kGraphTrace:
      return 56;
    case capture::cupti::kExternalCorrelation:
      return 24;
    default:
      return 0;
  }
}

}  // namespace rehearse::tests
