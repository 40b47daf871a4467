// SPDX-License-Identifier: Apache-2.0
// The numbers of NCCL's cost model, by version. NCCL ships them compiled in and changes them
// between releases, so they are data here and the formulas (bandwidth.cpp, latency.cpp, choice.cpp)
// read them. Sources: src/graph/tuning.cc of the releases named in constants.cpp; NCCL model §2 and
// §10. Pure functions of the version.
#pragma once

#include <array>
#include <string>

#include "sim/nccl/names.hpp"
#include "sim/nccl/version.hpp"

namespace rehearse::sim {

inline constexpr int kMaxChannels = 64;
inline constexpr int kSteps = 8;             // slots of one connection buffer
inline constexpr int kMaxThreads = 640;      // CUDA threads of one block
inline constexpr int kWarpSize = 32;         // CUDA threads
inline constexpr int kMaxDirectRanks = 8;    // local ranks CollNet can serve
inline constexpr int kMaxNvlsRanks = 32;     // local ranks NVLS can serve for AllGather and RS
inline constexpr double kPciBandwidth = 12;  // GB/s of PCIe Gen3 x16

// Where a hop runs; the index of a latency table.
enum class Hardware { kNvlink, kPci, kNet };

// The row of a bandwidth table.
enum class Arch { kVolta, kAmpere, kHopper, kBlackwell };

// How NVLS and NVLS_TREE turn a graph into bandwidth.
enum class NvlsRule {
  kGraphMinimum,  // to 2.25: the smaller of inside and between nodes
  kGatherShare,   // 2.26, 2.27: as before, AllGather and ReduceScatter less the own share
  kEfficiency     // since 2.28: multicast efficiency of the GPU and a cap per channel
};

using LatencyTable = std::array<std::array<double, kProtocolCount>, kAlgorithmCount>;  // µs
// GB/s by Arch and by 1, 2 or more nodes.
using ScaleTable = std::array<std::array<double, 3>, 4>;

struct Constants {
  LatencyTable base_latency{};
  std::array<LatencyTable, 3> hardware_latency{};  // by Hardware
  ScaleTable ll_max{};
  ScaleTable ring_ll128_per_channel{};
  ScaleTable tree_ll128_per_channel{};
  ScaleTable tree_per_channel{};
  ScaleTable nvls_tree_per_channel{};
  std::array<double, 4> nvls_efficiency{};  // by Arch

  NvlsRule nvls_rule = NvlsRule::kEfficiency;
  bool has_pat = true;
  bool has_nvls = true;       // since 2.17
  bool has_nvls_tree = true;  // since 2.18
  bool ll128_hopper = true;   // LL128 on compute capability 9.0 and above; since 2.15
  // Share of ring bandwidth LL128 keeps with less than two ranks per node.
  double ring_ll128_alone = 0.92;
  // Factor on the latency of large ring SIMPLE AllReduce between nodes, Ampere and newer.
  double ring_plateau = 1.4;
  // Ring LL keeps half the bandwidth; to 2.21 a quarter (a third for one-node gathers).
  bool ring_ll_half = true;
  // Inter-node hops of a ring AllReduce: 2(nodes−1); to 2.21 2·nodes.
  bool ring_closes_inside = true;
  // With one rank per node every algorithm pays the tree's network latency; since 2.23.
  bool alone_pays_tree_latency = true;
  // CollNetDirect AllGather and ReduceScatter: to 2.25 a ratio of .95 (1 rank) to .85 (8 ranks).
  bool gather_ratio_by_ranks = false;
  // Since 2.30 NVLS_TREE AllReduce is corrected by size like TREE on Blackwell and x86.
  bool nvls_tree_corrected = false;
  // Chunks of NVLS_TREE start as a slot of a connection's buffer to 2.21, since then as NCCL_NVLS_CHUNKSIZE
  // says; since 2.19.3 they are cut on four nodes and more.
  bool nvls_tree_by_buffer = false;
  bool nvls_tree_cut = true;
  // Since 2.30 LL128 runs between different GPUs if all are Hopper or newer.
  bool ll128_mixes_hopper = false;
  // Host time of each channel of a launch, µs: no cost that NCCL knows of, but one that changed with it.
  double issue_channel_us = 0;
  // To 2.23 Ring stands in for a function that no algorithm of NCCL_ALGO serves; since then the call fails.
  bool ring_stands_in = false;
};

struct VersionedConstants {
  Constants constants;
  NcclVersion asked;
  NcclVersion used;    // the first version the constants were read from
  bool exact = false;  // false: `asked` was not read, `used` is the nearest known
  std::string label;   // the range of versions they hold for, "2.19-2.21"
};

// The constants of a version between 2.12 and 2.30. A version that was not read gets the nearest
// one of the same minor number (the older of two equally near), else the newest older one, else the
// oldest; `exact` tells.
[[nodiscard]] VersionedConstants constants_for(const NcclVersion& version);

// The table row of a GPU, cc = 10·major + minor of the compute capability.
[[nodiscard]] Arch arch_of(int cc);

}  // namespace rehearse::sim
