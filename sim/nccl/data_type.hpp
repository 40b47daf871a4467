// SPDX-License-Identifier: Apache-2.0
// Element types and reductions of a collective, and what NCCL turns them into before it decides:
// averages become a scaled sum, minimum and maximum are one device operation. Values only.
#pragma once

#include <cstdint>
#include <string_view>

namespace rehearse::sim {

// In the order of ncclDataType_t.
enum class DataType {
  kInt8,
  kUint8,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat16,
  kFloat32,
  kFloat64,
  kBfloat16,
  kFloat8e4m3,
  kFloat8e5m2
};

// The reduction as the caller names it. kPreMulSum stands for every user-made scaled sum.
enum class ReduceOp { kSum, kProd, kMax, kMin, kAvg, kPreMulSum };

// The reduction as the kernel runs it; calls of a group are binned by this one.
enum class DeviceOp { kSum, kProd, kMinMax, kPreMulSum, kSumPostDiv };

// Bytes of one element: 1, 2, 4 or 8.
[[nodiscard]] std::int64_t size_of(DataType type);

// "int8" … "float8e5m2", as NCCL prints them.
[[nodiscard]] std::string_view name_of(DataType type);
// "sum", "prod", "max", "min", "avg", "premulsum".
[[nodiscard]] std::string_view name_of(ReduceOp op);

[[nodiscard]] bool is_float8(DataType type);

// Averages of integers divide after the sum, of floating types they scale before it.
[[nodiscard]] DeviceOp device_op(ReduceOp op, DataType type);

// Whether NVLink SHARP can reduce this (NCCL 2.28.9, §4.2): Sum, Min, Max of 32 and 64 bit
// integers, float16 and bfloat16; Sum alone of float32 and float64.
[[nodiscard]] bool nvls_can_reduce(ReduceOp op, DataType type);

}  // namespace rehearse::sim
