// SPDX-License-Identifier: Apache-2.0
// What Kineto calls things: event categories of all years, and the host calls of CUDA and HIP.
// Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "traces/model/trace.hpp"

namespace rehearse::traces::kineto {

enum class Category : uint8_t {
  kNone,            // no category at all (metadata, instants of old traces)
  kHostOp,          // cpu_op, Operator
  kPython,          // python_function
  kUserAnnotation,  // user_annotation
  kGpuAnnotation,   // gpu_user_annotation
  kKernel,
  kCopy,
  kMemset,
  kRuntime,   // cuda_runtime, cuda_driver, Runtime and those of other vendors
  kCudaSync,  // cuda_sync: what a synchronising call waited for
  kOverhead,  // the profiler's own
  kRange,     // cuda_profiler_range and counters of other vendors
  kEventRecord,  // cuda_event, xpu_sync: the device's side of a call that records or waits for an event
  kInstant,      // cpu_instant_event
  kSpan,         // Trace: extent of the recording
  kFlow,         // ac2g, async, fwdbwd, ...
  kUnknown,
};
// Without regard to case.
[[nodiscard]] Category category_of(std::string_view cat);

// What a host call of the CUDA or HIP runtime or driver does.
struct RuntimeCall {
  OpKind kind = OpKind::kHost;  // kHost, kLaunch, kGraphLaunch or kSync
  SyncKind sync = SyncKind::kDevice;
};
[[nodiscard]] RuntimeCall runtime_call_of(std::string_view name);

[[nodiscard]] CopyDirection direction_of(std::string_view copy_name);

}  // namespace rehearse::traces::kineto
