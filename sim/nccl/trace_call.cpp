// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/trace_call.hpp"

#include <algorithm>

namespace rehearse::sim {
namespace {

using traces::Collective;

DataType data_type(traces::DType dtype) {
  switch (dtype) {
    case traces::DType::kInt8:
    case traces::DType::kBool:
      return DataType::kInt8;
    case traces::DType::kUint8:
      return DataType::kUint8;
    case traces::DType::kInt32:
      return DataType::kInt32;
    case traces::DType::kUint32:
      return DataType::kUint32;
    case traces::DType::kInt64:
      return DataType::kInt64;
    case traces::DType::kUint64:
      return DataType::kUint64;
    case traces::DType::kFp16:
      return DataType::kFloat16;
    case traces::DType::kBf16:
      return DataType::kBfloat16;
    case traces::DType::kFp64:
      return DataType::kFloat64;
    case traces::DType::kFp8:
      return DataType::kFloat8e4m3;
    case traces::DType::kFp32:
    case traces::DType::kUnknown:
      return DataType::kFloat32;
  }
  return DataType::kFloat32;
}

ReduceOp reduce_op(traces::Reduction reduction) {
  switch (reduction) {
    case traces::Reduction::kAverage:
      return ReduceOp::kAvg;
    case traces::Reduction::kMin:
      return ReduceOp::kMin;
    case traces::Reduction::kMax:
      return ReduceOp::kMax;
    case traces::Reduction::kProduct:
      return ReduceOp::kProd;
    case traces::Reduction::kNone:
    case traces::Reduction::kSum:
      return ReduceOp::kSum;
  }
  return ReduceOp::kSum;
}

}  // namespace

Call nccl_call(const traces::Call& call) {
  Call out;
  out.type = data_type(call.dtype);
  out.op = reduce_op(call.reduction);
  Bytes bytes = std::max(call.bytes_in, call.bytes_out);
  switch (call.collective) {
    case Collective::kAllGather:
      out.function = Function::kAllGather;
      bytes = call.bytes_in;
      break;
    case Collective::kReduceScatter:
      out.function = Function::kReduceScatter;
      bytes = call.bytes_out;
      break;
    case Collective::kBroadcast:
      out.function = Function::kBroadcast;
      break;
    case Collective::kReduce:
      out.function = Function::kReduce;
      break;
    case Collective::kBarrier:
      bytes = std::max<Bytes>(bytes, 4);  // the framework sends one element
      [[fallthrough]];
    default:
      out.function = Function::kAllReduce;
  }
  out.root = static_cast<uint32_t>(std::max(0, call.peer));
  out.count = std::max<int64_t>(1, bytes / size_of(out.type));
  return out;
}

}  // namespace rehearse::sim
