// SPDX-License-Identifier: Apache-2.0
#include "traces/export/kineto_text.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

namespace rehearse::traces {

std::string kineto_time(Nanos time) {
  const bool negative = time < 0;
  // Unsigned so that the smallest value has a magnitude too.
  const uint64_t n = negative ? 0 - static_cast<uint64_t>(time) : static_cast<uint64_t>(time);
  return fmt::format("{}{}.{:03}", negative ? "-" : "", n / 1000, n % 1000);
}

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

const char* kineto_name(Collective collective) {
  static constexpr std::array<const char*, kCollectives> kNames = {"allreduce",
                                                                   "_allgather_base",
                                                                   "_reduce_scatter_base",
                                                                   "broadcast",
                                                                   "reduce",
                                                                   "all_to_all",
                                                                   "gather",
                                                                   "scatter",
                                                                   "barrier",
                                                                   "send",
                                                                   "recv"};
  return kNames[static_cast<size_t>(collective)];
}

const char* kineto_name(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
      return "Char";
    case DType::kUint8:
      return "Byte";
    case DType::kInt32:
      return "Int";
    case DType::kUint32:
      return "UInt32";
    case DType::kInt64:
      return "Long";
    case DType::kUint64:
      return "UInt64";
    case DType::kFp16:
      return "Half";
    case DType::kBf16:
      return "BFloat16";
    case DType::kFp32:
      return "Float";
    case DType::kFp64:
      return "Double";
    case DType::kFp8:
      return "Float8_e4m3fn";
    case DType::kBool:
      return "Bool";
    case DType::kUnknown:
      break;
  }
  return "Byte";
}

int callback_id(std::string_view runtime_call) {
  // As seen in recorded traces of CUDA 11 and 12.
  static constexpr std::array<std::pair<std::string_view, int>, 8> kIds = {
      {{"cudaLaunchKernel", 211},
       {"cudaLaunchKernelExC", 430},
       {"cudaMemcpyAsync", 41},
       {"cudaMemsetAsync", 51},
       {"cudaEventRecord", 135},
       {"cudaEventSynchronize", 137},
       {"cudaStreamWaitEvent", 147},
       {"cudaDeviceSynchronize", 165}}};
  for (const auto& [name, id] : kIds)
    if (name == runtime_call) return id;
  return 0;
}

}  // namespace rehearse::traces
