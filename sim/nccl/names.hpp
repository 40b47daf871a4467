// SPDX-License-Identifier: Apache-2.0
// The words of NCCL's decision model: functions, algorithms, protocols, path types, graph patterns
// and processors, in NCCL's own order (the order decides ties). Values only, no state.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "base/error.hpp"

namespace rehearse::sim {

// The first five have a cost table; the point-to-point ones are planned by p2p.hpp.
enum class Function {
  kBroadcast,
  kReduce,
  kAllGather,
  kReduceScatter,
  kAllReduce,
  kSendRecv,
  kSend,
  kRecv
};

enum class Algorithm { kTree, kRing, kCollnetDirect, kCollnetChain, kNvls, kNvlsTree, kPat };

enum class Protocol { kLl, kLl128, kSimple };

// From nearest to farthest; comparisons follow this order.
enum class PathType { kLoc, kNvl, kNvb, kC2c, kPix, kPxb, kP2c, kPxn, kPhb, kSys, kNet, kDis };

// Numbered as NCCL numbers them, starting at 1.
enum class GraphPattern { kBalancedTree = 1, kSplitTree, kTree, kRing, kNvls, kCollnetDirect };

enum class CpuArch { kX86, kArm, kPower };

enum class CpuVendor { kIntel, kAmd, kZhaoxin, kMixed, kNone };

inline constexpr std::size_t kCollectiveCount = 5;
inline constexpr std::size_t kAlgorithmCount = 7;
inline constexpr std::size_t kProtocolCount = 3;

inline constexpr std::array<Function, kCollectiveCount> kCollectives = {
    Function::kBroadcast, Function::kReduce, Function::kAllGather, Function::kReduceScatter,
    Function::kAllReduce};
inline constexpr std::array<Algorithm, kAlgorithmCount> kAlgorithms = {
    Algorithm::kTree,         Algorithm::kRing, Algorithm::kCollnetDirect,
    Algorithm::kCollnetChain, Algorithm::kNvls, Algorithm::kNvlsTree,
    Algorithm::kPat};
inline constexpr std::array<Protocol, kProtocolCount> kProtocols = {Protocol::kLl, Protocol::kLl128,
                                                                    Protocol::kSimple};

// The position of an enumerator in its table.
template <typename Enum>
[[nodiscard]] constexpr std::size_t index_of(Enum value) {
  return static_cast<std::size_t>(value);
}

// Names as the reference tables spell them: "AllReduce", "COLLNET_DIRECT", "SIMPLE", "PXB",
// "balanced_tree", "x86", "amd".
[[nodiscard]] std::string_view name_of(Function function);
[[nodiscard]] std::string_view name_of(Algorithm algorithm);
[[nodiscard]] std::string_view name_of(Protocol protocol);
[[nodiscard]] std::string_view name_of(PathType type);
[[nodiscard]] std::string_view name_of(GraphPattern pattern);
[[nodiscard]] std::string_view name_of(CpuArch arch);
[[nodiscard]] std::string_view name_of(CpuVendor vendor);

// Names as NCCL_ALGO takes them: "CollNetDirect", "NVLSTree".
[[nodiscard]] std::string_view environment_name_of(Algorithm algorithm);

// Case-blind inverse of name_of; an unknown name is Code::kBadInput and lists the known ones.
[[nodiscard]] Result<Function> parse_function(std::string_view text);
[[nodiscard]] Result<Algorithm> parse_algorithm(std::string_view text);
[[nodiscard]] Result<Protocol> parse_protocol(std::string_view text);
[[nodiscard]] Result<PathType> parse_path_type(std::string_view text);
[[nodiscard]] Result<GraphPattern> parse_graph_pattern(std::string_view text);
[[nodiscard]] Result<CpuArch> parse_cpu_arch(std::string_view text);
[[nodiscard]] Result<CpuVendor> parse_cpu_vendor(std::string_view text);

// True when both are equal but for the case of ASCII letters.
[[nodiscard]] bool equal_ignoring_case(std::string_view a, std::string_view b);

}  // namespace rehearse::sim
