// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/names.hpp"

#include <algorithm>
#include <span>
#include <string>

namespace rehearse::sim {

namespace {

constexpr std::array<std::string_view, 8> kFunctionNames = {
    "Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce", "SendRecv", "Send", "Recv"};
constexpr std::array<std::string_view, kAlgorithmCount> kAlgorithmNames = {
    "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
constexpr std::array<std::string_view, kAlgorithmCount> kAlgorithmEnvironmentNames = {
    "Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"};
constexpr std::array<std::string_view, kProtocolCount> kProtocolNames = {"LL", "LL128", "SIMPLE"};
constexpr std::array<std::string_view, 12> kPathTypeNames = {
    "LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS"};
constexpr std::array<std::string_view, 6> kGraphPatternNames = {
    "balanced_tree", "split_tree", "tree", "ring", "nvls", "collnet_direct"};
constexpr std::array<std::string_view, 3> kCpuArchNames = {"x86", "arm", "power"};
constexpr std::array<std::string_view, 5> kCpuVendorNames = {"intel", "amd", "zhaoxin", "mixed",
                                                             "none"};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string join(std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) {
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text;
}

Result<std::size_t> find_name(std::string_view text, std::span<const std::string_view> names,
                              const char* what) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (equal_ignoring_case(text, names[i])) return i;
  }
  return fail(Code::kBadInput, std::string("unknown ") + what + " \"" + std::string(text) + "\"",
              {}, "use one of " + join(names));
}

}  // namespace

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view name_of(Function function) { return kFunctionNames[index_of(function)]; }
std::string_view name_of(Algorithm algorithm) { return kAlgorithmNames[index_of(algorithm)]; }
std::string_view name_of(Protocol protocol) { return kProtocolNames[index_of(protocol)]; }
std::string_view name_of(PathType type) { return kPathTypeNames[index_of(type)]; }
std::string_view name_of(GraphPattern pattern) { return kGraphPatternNames[index_of(pattern) - 1]; }
std::string_view name_of(CpuArch arch) { return kCpuArchNames[index_of(arch)]; }
std::string_view name_of(CpuVendor vendor) { return kCpuVendorNames[index_of(vendor)]; }

std::string_view environment_name_of(Algorithm algorithm) {
  return kAlgorithmEnvironmentNames[index_of(algorithm)];
}

Result<Function> parse_function(std::string_view text) {
  RH_TRY(const std::size_t i, find_name(text, kFunctionNames, "function"));
  return static_cast<Function>(i);
}
Result<Algorithm> parse_algorithm(std::string_view text) {
  RH_TRY(const std::size_t i, find_name(text, kAlgorithmNames, "algorithm"));
  return static_cast<Algorithm>(i);
}
Result<Protocol> parse_protocol(std::string_view text) {
  RH_TRY(const std::size_t i, find_name(text, kProtocolNames, "protocol"));
  return static_cast<Protocol>(i);
}
Result<PathType> parse_path_type(std::string_view text) {
  RH_TRY(const std::size_t i, find_name(text, kPathTypeNames, "path type"));
  return static_cast<PathType>(i);
}
Result<GraphPattern> parse_graph_pattern(std::string_view text) {
  RH_TRY(const std::size_t i, find_name(text, kGraphPatternNames, "graph pattern"));
  return static_cast<GraphPattern>(i + 1);
}
Result<CpuArch> parse_cpu_arch(std::string_view text) {
  RH_TRY(const std::size_t i, find_name(text, kCpuArchNames, "cpu architecture"));
  return static_cast<CpuArch>(i);
}
Result<CpuVendor> parse_cpu_vendor(std::string_view text) {
  RH_TRY(const std::size_t i, find_name(text, kCpuVendorNames, "cpu vendor"));
  return static_cast<CpuVendor>(i);
}

}  // namespace rehearse::sim
