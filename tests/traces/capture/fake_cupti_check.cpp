// SPDX-License-Identifier: Apache-2.0
// Compiled only where CUDA's headers are.
#include <cuda.h>
#include <cupti.h>

#include "tests/traces/capture/fake_cupti_sizes.hpp"

namespace rehearse::tests {

#if CUPTI_API_VERSION >= 130000 && CUPTI_API_VERSION < 130100
namespace cupti = capture::cupti;
static_assert(sizeof(CUpti_ActivityKernel10) == size_of(cupti::kConcurrentKernel));
static_assert(sizeof(CUpti_ActivityMemcpy6) == size_of(cupti::kMemcpy));
static_assert(sizeof(CUpti_ActivityMemcpyPtoP4) == size_of(cupti::kMemcpy2));
static_assert(sizeof(CUpti_ActivityMemset4) == size_of(cupti::kMemset));
static_assert(sizeof(CUpti_ActivityAPI) == size_of(cupti::kRuntime));
static_assert(sizeof(CUpti_ActivitySynchronization2) == size_of(cupti::kSynchronization));
static_assert(sizeof(CUpti_ActivityCudaEvent2) == size_of(cupti::kCudaEvent));
static_assert(sizeof(CUpti_ActivityOverhead3) == size_of(cupti::kOverhead));
static_assert(sizeof(CUpti_ActivityGraphTrace2) == size_of(cupti::kGraphTrace));
static_assert(sizeof(CUpti_ActivityExternalCorrelation) == size_of(cupti::kExternalCorrelation));
#endif

}  // namespace rehearse::tests
