// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/data_type.hpp"

#include <array>
#include <string>

#include "sim/nccl/names.hpp"

namespace rehearse::sim {

namespace {

struct TypeRow {
  std::string_view name;
  std::int64_t bytes;
};

constexpr std::array<TypeRow, 12> kTypes = {{{"int8", 1},
                                             {"uint8", 1},
                                             {"int32", 4},
                                             {"uint32", 4},
                                             {"int64", 8},
                                             {"uint64", 8},
                                             {"float16", 2},
                                             {"float32", 4},
                                             {"float64", 8},
                                             {"bfloat16", 2},
                                             {"float8e4m3", 1},
                                             {"float8e5m2", 1}}};

constexpr std::array<std::string_view, 6> kOps = {"sum", "prod", "max", "min", "avg", "premulsum"};

bool is_integer(DataType type) { return type <= DataType::kUint64; }

}  // namespace

std::int64_t size_of(DataType type) { return kTypes[index_of(type)].bytes; }
std::string_view name_of(DataType type) { return kTypes[index_of(type)].name; }
std::string_view name_of(ReduceOp op) { return kOps[index_of(op)]; }

bool is_float8(DataType type) {
  return type == DataType::kFloat8e4m3 || type == DataType::kFloat8e5m2;
}

DeviceOp device_op(ReduceOp op, DataType type) {
  switch (op) {
    case ReduceOp::kSum:
      return DeviceOp::kSum;
    case ReduceOp::kProd:
      return DeviceOp::kProd;
    case ReduceOp::kMax:
    case ReduceOp::kMin:
      return DeviceOp::kMinMax;
    case ReduceOp::kAvg:
      return is_integer(type) ? DeviceOp::kSumPostDiv : DeviceOp::kPreMulSum;
    case ReduceOp::kPreMulSum:
      break;
  }
  return DeviceOp::kPreMulSum;
}

bool nvls_can_reduce(ReduceOp op, DataType type) {
  const DeviceOp device = device_op(op, type);
  switch (type) {
    case DataType::kInt32:
    case DataType::kUint32:
    case DataType::kInt64:
    case DataType::kUint64:
    case DataType::kFloat16:
    case DataType::kBfloat16:
      return device == DeviceOp::kSum || device == DeviceOp::kMinMax;
    case DataType::kFloat32:
    case DataType::kFloat64:
      return device == DeviceOp::kSum;
    default:
      return false;
  }
}

}  // namespace rehearse::sim
