// SPDX-License-Identifier: Apache-2.0
#include "traces/import/names.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace rehearse::traces {
namespace {

// Lower case letters and digits only: "_reduce_scatter_base" -> "reducescatterbase".
std::string letters_of(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c >= 'A' && c <= 'Z') out.push_back(static_cast<char>(c - 'A' + 'a'));
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) out.push_back(c);
  }
  return out;
}

struct Word {
  std::string_view part;
  Collective collective;
};
// Longer words first: "allreduce" holds "reduce".
constexpr std::array<Word, 13> kWords = {{{"reducescatter", Collective::kReduceScatter},
                                          {"allreduce", Collective::kAllReduce},
                                          {"allgather", Collective::kAllGather},
                                          {"alltoall", Collective::kAllToAll},
                                          {"sendrecv", Collective::kAllToAll},
                                          {"broadcast", Collective::kBroadcast},
                                          {"bcast", Collective::kBroadcast},
                                          {"barrier", Collective::kBarrier},
                                          {"scatter", Collective::kScatter},
                                          {"gather", Collective::kGather},
                                          {"reduce", Collective::kReduce},
                                          {"send", Collective::kSend},
                                          {"recv", Collective::kRecv}}};

std::optional<Collective> find_word(const std::string& letters) {
  for (const Word& w : kWords) {
    if (letters.find(w.part) != std::string::npos) return w.collective;
  }
  return std::nullopt;
}

struct TypeName {
  std::string_view name;
  DType dtype;
};
constexpr std::array<TypeName, 34> kTypes = {
    {{"float", DType::kFp32},          {"float32", DType::kFp32},
     {"fp32", DType::kFp32},           {"half", DType::kFp16},
     {"float16", DType::kFp16},        {"fp16", DType::kFp16},
     {"bfloat16", DType::kBf16},       {"bf16", DType::kBf16},
     {"double", DType::kFp64},         {"float64", DType::kFp64},
     {"fp64", DType::kFp64},           {"long", DType::kInt64},
     {"longint", DType::kInt64},       {"int64", DType::kInt64},
     {"int64t", DType::kInt64},        {"uint64", DType::kUint64},
     {"unsignedlong", DType::kUint64}, {"int", DType::kInt32},
     {"int32", DType::kInt32},         {"int32t", DType::kInt32},
     {"uint32", DType::kUint32},       {"unsignedint", DType::kUint32},
     {"byte", DType::kUint8},          {"uint8", DType::kUint8},
     {"uint8t", DType::kUint8},        {"unsignedchar", DType::kUint8},
     {"char", DType::kInt8},           {"signedchar", DType::kInt8},
     {"int8", DType::kInt8},           {"int8t", DType::kInt8},
     {"bool", DType::kBool},           {"uint64t", DType::kUint64},
     {"uint32t", DType::kUint32},      {"fp8", DType::kFp8}}};

struct TypeWidth {
  std::string_view name;
  int bytes;
};
// Types without a DType.
constexpr std::array<TypeWidth, 19> kOtherTypes = {{{"short", 2},
                                                    {"int16", 2},
                                                    {"int16t", 2},
                                                    {"uint16", 2},
                                                    {"uint16t", 2},
                                                    {"shortint", 2},
                                                    {"unsignedshort", 2},
                                                    {"complexhalf", 4},
                                                    {"complex32", 4},
                                                    {"complexfloat", 8},
                                                    {"complex64", 8},
                                                    {"complexdouble", 16},
                                                    {"complex128", 16},
                                                    {"qint8", 1},
                                                    {"quint8", 1},
                                                    {"qint32", 4},
                                                    {"bits8", 1},
                                                    // two numbers in each byte
                                                    {"float4e2m1fnx2", 1},
                                                    {"bits4x2", 1}}};

// Lower case letters and digits of the type's own name: "torch.float16", "c10::Half" and
// "Tensor(float)" are "float16", "half" and "float".
std::string type_letters(std::string_view name) {
  if (name.starts_with("torch.")) name.remove_prefix(6);
  if (const size_t open = name.find("Tensor("); open != std::string_view::npos) {
    name.remove_prefix(open + 7);
    name = name.substr(0, name.find(')'));
  }
  if (name.size() > 32) return {};
  std::string letters = letters_of(name);
  if (letters.starts_with("c10")) letters.erase(0, 3);
  return letters;
}

}  // namespace

std::optional<Collective> collective_of(std::string_view name) {
  if (const size_t colon = name.rfind(':'); colon != std::string_view::npos) {
    name.remove_prefix(colon + 1);
  }
  if (name.size() > 64) return std::nullopt;
  return find_word(letters_of(name));
}

bool is_nccl_kernel(std::string_view kernel) {
  if (kernel.starts_with("void ")) {
    kernel.remove_prefix(5);
    if (kernel.starts_with("nccl")) return true;
  } else if (kernel.starts_with("_Z")) {
    kernel.remove_prefix(2);
    while (!kernel.empty() && kernel.front() >= '0' && kernel.front() <= '9')
      kernel.remove_prefix(1);
  }
  return (kernel.starts_with("nccl") || kernel.starts_with("rccl") ||
          kernel.starts_with("msccl")) &&
         kernel.find("Kernel") != std::string_view::npos;
}

bool is_other_communication(std::string_view kernel) {
  constexpr std::array<std::string_view, 14> kParts = {
      "deep_ep::",           "dpsk::ep::",          "nvshmem",          "mscclpp",
      "userbuffers_",        "cross_device_reduce", "multimem_all_",    "multimem_one_shot",
      "one_shot_all_reduce", "two_shot_all_reduce", "oneShotAllReduce", "twoShotAllReduce",
      "allreduce_fusion",    "quickreduce"};
  return std::any_of(kParts.begin(), kParts.end(), [&](std::string_view part) {
    return kernel.find(part) != std::string_view::npos;
  });
}

std::optional<Collective> collective_of_kernel(std::string_view kernel) {
  return find_word(letters_of(kernel.substr(0, kernel.find('('))));
}

DType dtype_of(std::string_view name) {
  const std::string letters = type_letters(name);
  // Float8_e4m3fn, Float8_e5m2fnuz, ...: all are one byte.
  if (letters.starts_with("float8")) return DType::kFp8;
  for (const TypeName& t : kTypes) {
    if (t.name == letters) return t.dtype;
  }
  return DType::kUnknown;
}

int element_bytes(std::string_view name) {
  if (const DType dtype = dtype_of(name); dtype != DType::kUnknown) return size_of(dtype);
  const std::string letters = type_letters(name);
  for (const TypeWidth& t : kOtherTypes) {
    if (t.name == letters) return t.bytes;
  }
  return 0;
}

bool is_reducing(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kReduceScatter ||
         collective == Collective::kReduce;
}

bool is_rooted(Collective collective) {
  return collective == Collective::kBroadcast || collective == Collective::kReduce ||
         collective == Collective::kGather || collective == Collective::kScatter;
}

}  // namespace rehearse::traces
