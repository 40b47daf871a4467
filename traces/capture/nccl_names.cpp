// SPDX-License-Identifier: Apache-2.0
#include "traces/capture/nccl_names.hpp"

#include <array>
#include <cstddef>

namespace rehearse::capture::nccl {
namespace {

template <size_t N>
const char* at(const std::array<const char*, N>& names, uint32_t i) {
  return i < N ? names[i] : "";
}

}  // namespace

const char* function_name(uint32_t function) {
  static constexpr std::array<const char*, 8> kNames = {
      "Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce", "SendRecv", "Send", "Recv"};
  return at(kNames, function);
}

const char* datatype_name(uint32_t datatype) {
  static constexpr std::array<const char*, 12> kNames = {
      "ncclInt8",    "ncclUint8",    "ncclInt32",      "ncclUint32",
      "ncclInt64",   "ncclUint64",   "ncclFloat16",    "ncclFloat32",
      "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};
  return at(kNames, datatype);
}

const char* algorithm_name(uint32_t algorithm) {
  static constexpr std::array<const char*, 7> kNames = {
      "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
  return at(kNames, algorithm);
}

const char* protocol_name(uint32_t protocol) {
  static constexpr std::array<const char*, 3> kNames = {"LL", "LL128", "SIMPLE"};
  return at(kNames, protocol);
}

}  // namespace rehearse::capture::nccl
