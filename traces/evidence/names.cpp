// SPDX-License-Identifier: Apache-2.0
#include "traces/evidence/names.hpp"

#include <array>
#include <utility>

namespace rehearse::traces {
namespace {

// Letters and digits in lower case.
std::string folded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c >= 'A' && c <= 'Z') out += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) out += c;
  }
  return out;
}

using Row = std::pair<std::string_view, std::string_view>;

template <size_t N>
std::string find(const std::array<Row, N>& rows, std::string_view key) {
  for (const auto& [from, to] : rows) {
    if (from == key) return std::string(to);
  }
  return "";
}

constexpr std::array<Row, 30> kCollectiveNames = {{
    {"allreduce", "all_reduce"},
    {"allreducecoalesced", "all_reduce"},
    {"allreducesparse", "all_reduce"},
    {"allgather", "all_gather"},
    {"allgatherbase", "all_gather"},
    {"allgatherv", "all_gather"},
    {"allgathercoalesced", "all_gather"},
    {"allgatherintotensor", "all_gather"},
    {"allgatherintotensorcoalesced", "all_gather"},
    {"reducescatter", "reduce_scatter"},
    {"reducescatterbase", "reduce_scatter"},
    {"reducescattertensor", "reduce_scatter"},
    {"reducescattertensorcoalesced", "reduce_scatter"},
    {"broadcast", "broadcast"},
    {"bcast", "broadcast"},
    {"broadcastoop", "broadcast"},
    {"reduce", "reduce"},
    {"reduceoop", "reduce"},
    {"alltoall", "all_to_all"},
    {"alltoallv", "all_to_all"},
    {"alltoallbase", "all_to_all"},
    {"gather", "gather"},
    {"scatter", "scatter"},
    {"barrier", "barrier"},
    {"allreducebarrier", "barrier"},
    {"send", "send"},
    {"recv", "recv"},
    {"recvanysource", "recv"},
    {"sendrecv", "sendrecv"},
    {"hypercube", "hypercube"},
}};

constexpr std::array<Row, 15> kAlgorithms = {{
    {"0", "Tree"},
    {"tree", "Tree"},
    {"1", "Ring"},
    {"ring", "Ring"},
    {"2", "CollNetDirect"},
    {"collnetdirect", "CollNetDirect"},
    {"collnet", "CollNetDirect"},
    {"3", "CollNetChain"},
    {"collnetchain", "CollNetChain"},
    {"4", "NVLS"},
    {"nvls", "NVLS"},
    {"5", "NVLSTree"},
    {"nvlstree", "NVLSTree"},
    {"6", "PAT"},
    {"pat", "PAT"},
}};

constexpr std::array<Row, 6> kProtocols = {{{"0", "LL"},
                                            {"ll", "LL"},
                                            {"1", "LL128"},
                                            {"ll128", "LL128"},
                                            {"2", "Simple"},
                                            {"simple", "Simple"}}};

}  // namespace

std::string collective_name(std::string_view text) {
  std::string key = folded(text);
  if (key.starts_with("nccl")) key.erase(0, 4);
  if (key.ends_with("perfmpi")) key.erase(key.size() - 3);  // "all_reduce_perf_mpi"
  if (key.ends_with("perf")) key.erase(key.size() - 4);
  return find(kCollectiveNames, key);
}

std::string algorithm_name(std::string_view text) { return find(kAlgorithms, folded(text)); }

std::string protocol_name(std::string_view text) { return find(kProtocols, folded(text)); }

}  // namespace rehearse::traces
