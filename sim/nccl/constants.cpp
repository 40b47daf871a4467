// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/constants.hpp"

#include <cstdlib>

namespace rehearse::sim {

namespace {

using Row = std::array<double, kProtocolCount>;

// NCCL 2.28.9, NCCL model §2. Rows: TREE, RING, COLLNET_DIRECT, COLLNET_CHAIN, NVLS, NVLS_TREE,
// PAT; columns LL, LL128, SIMPLE.
Constants nccl_2_28_9() {
  Constants c;
  c.base_latency = {Row{6.8, 14.0, 8.4}, Row{6.6, 14.0, 8.4}, Row{}, Row{}, Row{}, Row{},
                    Row{8.0, 8.0, 8.0}};
  c.hardware_latency[index_of(Hardware::kNvlink)] = {
      Row{0.6, 1.25, 4.0}, Row{0.6, 1.9, 3.4}, Row{0, 0, 3.7}, Row{0, 0, 2.8},
      Row{0, 0, 25.0},     Row{0, 0, 25.0},    Row{0, 0, 4.0}};
  c.hardware_latency[index_of(Hardware::kPci)] = {
      Row{1.0, 1.9, 4.0}, Row{1.0, 2.5, 5.7}, Row{0, 0, 3.7}, Row{0, 0, 2.8}, Row{}, Row{},
      Row{0, 0, 4.0}};
  c.hardware_latency[index_of(Hardware::kNet)] = {
      Row{5.0, 8.5, 14.0}, Row{2.7, 4.0, 14.0}, Row{0, 0, 31.0}, Row{0, 0, 30.0},
      Row{0, 0, 18.0},     Row{0, 0, 20.9},     Row{0, 0, 14.0}};
  // Rows: Volta, Ampere, Hopper, Blackwell; columns 1 node, 2 nodes, more.
  c.ll_max = {{{39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {141.0, 45.0, 35.0}, {282.0, 90.0, 70.0}}};
  c.ring_ll128_per_channel = {
      {{20.0, 20.0, 20.0}, {20.0, 20.0, 20.0}, {36.7, 36.7, 36.7}, {73.4, 34.6, 73.4}}};
  c.tree_ll128_per_channel = {
      {{20.0, 20.0, 20.0}, {20.0, 20.0, 20.0}, {36.7, 36.7, 29.0}, {55.6, 31.67, 20.0}}};
  c.tree_per_channel = {
      {{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {38.7, 41.4, 36.0}, {70.0, 42.8, 24.0}}};
  c.nvls_tree_per_channel = {
      {{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {0.0, 57.7, 45.5}, {0.0, 96.0, 43.8}}};
  c.nvls_efficiency = {0.0, 0.0, 0.85, 0.74};
  return c;
}

double& simple_latency(LatencyTable& table, Algorithm algorithm) {
  return table[index_of(algorithm)][index_of(Protocol::kSimple)];
}

std::array<double, 3>& blackwell(ScaleTable& table) { return table[index_of(Arch::kBlackwell)]; }

std::array<ScaleTable*, 5> bandwidth_tables(Constants& c) {
  return {&c.ll_max, &c.ring_ll128_per_channel, &c.tree_ll128_per_channel, &c.tree_per_channel,
          &c.nvls_tree_per_channel};
}

// NCCL 2.28.3, src/graph/tuning.cc.
Constants nccl_2_28_3() {
  Constants c = nccl_2_28_9();
  simple_latency(c.hardware_latency[index_of(Hardware::kNet)], Algorithm::kNvlsTree) = 14.0;
  blackwell(c.ring_ll128_per_channel) = {73.4, 73.4, 73.4};
  blackwell(c.nvls_tree_per_channel) = {0.0, 96.0, 43.1};
  return c;
}

// §10, 2.26–2.27: the Blackwell rows are twice the Hopper rows.
Constants nccl_2_26() {
  Constants c = nccl_2_28_3();
  for (ScaleTable* table : bandwidth_tables(c)) {
    const std::array<double, 3>& hopper = (*table)[index_of(Arch::kHopper)];
    blackwell(*table) = {2 * hopper[0], 2 * hopper[1], 2 * hopper[2]};
  }
  c.nvls_rule = NvlsRule::kGatherShare;
  return c;
}

// §10, 2.23+: the tree latencies of today and PAT; NVLS and CollNetDirect still as in 2.21.
Constants nccl_2_24() {
  Constants c = nccl_2_26();
  c.nvls_rule = NvlsRule::kGraphMinimum;
  c.gather_ratio_by_ranks = true;
  return c;
}

Constants nccl_2_23() {
  Constants c = nccl_2_24();
  c.ring_stands_in = true;
  return c;
}

// §10, 2.19–2.21; ring LL, ring hops, LL limits and the latency of lone ranks as in the source of
// that time.
Constants nccl_2_19() {
  Constants c = nccl_2_23();
  simple_latency(c.base_latency, Algorithm::kTree) = 0.0;
  for (LatencyTable& table : c.hardware_latency) simple_latency(table, Algorithm::kTree) = 28.0;
  LatencyTable& nvlink = c.hardware_latency[index_of(Hardware::kNvlink)];
  simple_latency(nvlink, Algorithm::kNvls) = 23.0;
  simple_latency(nvlink, Algorithm::kNvlsTree) = 23.0;
  c.ll_max[index_of(Arch::kHopper)] = c.ll_max[index_of(Arch::kAmpere)];
  for (ScaleTable* table : bandwidth_tables(c)) {
    blackwell(*table) = (*table)[index_of(Arch::kHopper)];  // no row of its own yet
  }
  c.has_pat = false;
  c.ring_ll128_alone = 0.7;
  c.ring_ll_half = false;
  c.ring_closes_inside = false;
  c.alone_pays_tree_latency = false;
  c.nvls_tree_by_buffer = true;
  return c;
}

// §10, up to 2.18 (read in 2.18.3): another tree latency.
Constants nccl_2_18() {
  Constants c = nccl_2_19();
  c.nvls_tree_cut = false;
  simple_latency(c.hardware_latency[index_of(Hardware::kNvlink)], Algorithm::kTree) = 4.0;
  simple_latency(c.hardware_latency[index_of(Hardware::kPci)], Algorithm::kTree) = 6.0;
  simple_latency(c.hardware_latency[index_of(Hardware::kNet)], Algorithm::kTree) = 14.0;
  return c;
}

// Release notes: NVLink SHARP in 2.17, its tree in 2.18, Hopper in 2.15. LL128 of 2.12 to 2.14 is
// for compute capabilities 7.0 and 8.0 (src/graph/tuning.cc).
Constants nccl_2_17() {
  Constants c = nccl_2_18();
  c.has_nvls_tree = false;
  return c;
}

Constants nccl_2_15() {
  Constants c = nccl_2_17();
  c.has_nvls = false;
  return c;
}

// Latencies of LL and SIMPLE fitted to what 2.12.12 predicted for 4 nodes of RTX 3090 in a public log,
// to 0.1 % (tests/sim/nccl_graphs_test.cpp); those of NVLink and LL128 are the later ones.
Constants nccl_2_12() {
  Constants c = nccl_2_15();
  constexpr auto kLl = index_of(Protocol::kLl);
  constexpr auto kTree = index_of(Algorithm::kTree), kRing = index_of(Algorithm::kRing);
  c.base_latency[kTree][kLl] = 4.4;
  c.base_latency[kRing][kLl] = 3.6;
  LatencyTable& pci = c.hardware_latency[index_of(Hardware::kPci)];
  pci[kTree][kLl] = pci[kRing][kLl] = 1.8;
  for (LatencyTable& table : c.hardware_latency) simple_latency(table, Algorithm::kTree) = 28.0;
  simple_latency(c.hardware_latency[index_of(Hardware::kNet)], Algorithm::kRing) = 28.0;
  c.ring_plateau = 1.9;
  c.ll128_hopper = false;
  // Before 2.14 the host wrote an entry into the queue of every channel. Where one thread serves 8 A100 every
  // collective takes the same 34 us with one channel, 47 with 8, 59 with 16 and 73 to 77 with 24 (docs/collectives.md).
  c.issue_channel_us = 0.2;
  return c;
}

Constants nccl_2_29_2() {
  Constants c = nccl_2_28_9();
  blackwell(c.ring_ll128_per_channel) = {34.5, 34.6, 34.5};
  return c;
}

Constants nccl_2_29_7() {
  Constants c = nccl_2_29_2();
  blackwell(c.ring_ll128_per_channel) = {40.0, 40.0, 40.0};
  return c;
}

Constants nccl_2_30() {
  Constants c = nccl_2_29_7();
  blackwell(c.nvls_tree_per_channel) = {0.0, 96.0, 80.0};
  c.nvls_tree_corrected = true;
  c.ll128_mixes_hopper = true;
  return c;
}

struct Entry {
  NcclVersion first;
  NcclVersion last;
  const char* label;
  Constants (*make)();
};

constexpr int kAnyPatch = 99;

constexpr std::array<Entry, 13> kEntries = {{
    {{2, 12, 0}, {2, 14, kAnyPatch}, "2.12-2.14", nccl_2_12},
    {{2, 15, 0}, {2, 16, kAnyPatch}, "2.15-2.16", nccl_2_15},
    {{2, 17, 0}, {2, 17, kAnyPatch}, "2.17", nccl_2_17},
    {{2, 18, 0}, {2, 18, kAnyPatch}, "2.18", nccl_2_18},
    {{2, 19, 0}, {2, 21, kAnyPatch}, "2.19-2.21", nccl_2_19},
    {{2, 23, 0}, {2, 23, kAnyPatch}, "2.23", nccl_2_23},
    {{2, 24, 0}, {2, 25, kAnyPatch}, "2.24-2.25", nccl_2_24},
    {{2, 26, 0}, {2, 27, kAnyPatch}, "2.26-2.27", nccl_2_26},
    {{2, 28, 3}, {2, 28, 3}, "2.28.3", nccl_2_28_3},
    {{2, 28, 9}, {2, 28, 9}, "2.28.9", nccl_2_28_9},
    {{2, 29, 2}, {2, 29, 2}, "2.29.2", nccl_2_29_2},
    {{2, 29, 7}, {2, 29, 7}, "2.29.7", nccl_2_29_7},
    {{2, 30, 0}, {2, 30, kAnyPatch}, "2.30", nccl_2_30},
}};

bool same_minor(const NcclVersion& a, const NcclVersion& b) {
  return a.major == b.major && a.minor == b.minor;
}

bool covers(const Entry& entry, const NcclVersion& version) {
  return entry.first <= version && version <= entry.last;
}

// The entry of `version`, or the nearest one by the rule in the header.
const Entry& nearest_entry(const NcclVersion& version) {
  const Entry* older = &kEntries.front();
  const Entry* sibling = nullptr;
  for (const Entry& entry : kEntries) {
    if (covers(entry, version)) return entry;
    if (entry.first <= version) older = &entry;
    const auto distance = [&](const Entry& e) { return std::abs(e.first.patch - version.patch); };
    if (same_minor(entry.first, version) && (!sibling || distance(entry) < distance(*sibling))) {
      sibling = &entry;
    }
  }
  return sibling ? *sibling : *older;
}

}  // namespace

VersionedConstants constants_for(const NcclVersion& version) {
  const Entry& entry = nearest_entry(version);
  VersionedConstants result;
  result.constants = entry.make();
  result.asked = version;
  result.used = entry.first;
  result.exact = covers(entry, version);
  result.label = entry.label;
  return result;
}

Arch arch_of(int cc) {
  if (cc >= 100) return Arch::kBlackwell;
  if (cc >= 90) return Arch::kHopper;
  if (cc >= 80) return Arch::kAmpere;
  return Arch::kVolta;
}

}  // namespace rehearse::sim
