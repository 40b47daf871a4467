// SPDX-License-Identifier: Apache-2.0
// NCCL's graph search against what NCCL itself printed: public logs of H100 (2.29.2) and RTX 4090
// (2.28.9) nodes, and channel counts that its logs show on DGX machines.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <numeric>
#include <set>

#include "base/atomic_file.hpp"
#include "base/install.hpp"
#include "platforms/import/import.hpp"
#include "sim/nccl/search.hpp"
#include "tests/skip.hpp"

namespace rehearse::nccl_search_test {
using namespace rehearse;
using namespace rehearse::sim;

namespace {

platforms::PlatformCatalogue catalogue() {
  const auto folder = shipped("platforms/catalogue");
  REQUIRE(folder);
  return platforms::PlatformCatalogue(*folder);
}

pb::Platform machine(const std::string& id) {
  auto platform = catalogue().platform(id);
  REQUIRE(platform);
  platform->set_scale(1);
  REQUIRE(platforms::expand(*platform, id));
  return *platform;
}

struct Asked {
  std::vector<uint32_t> gpus = {};
  bool network = false;
  std::map<std::string, std::string> env = {};
  NcclVersion version = {2, 28, 9};
};

struct Found {
  NodeSystem system;
  SearchedGraph ring, tree, nvls;
};

Found find(const pb::Platform& platform, Asked asked) {
  SystemScope scope;
  if (asked.gpus.empty()) {
    asked.gpus.resize(static_cast<size_t>(platform.nodes(0).gpus_size()));
    std::iota(asked.gpus.begin(), asked.gpus.end(), 0u);
  }
  for (const uint32_t g : asked.gpus) scope.gpus.push_back({0, g});
  for (int n = 0; asked.network && n < platform.nodes(0).nics_size(); ++n) {
    scope.nets.push_back({0, static_cast<uint32_t>(n)});
  }
  std::vector<std::string> notes;
  const TopologySettings settings = topology_settings(asked.env, asked.version, notes);
  CHECK(notes.empty());
  NodeSystem system(platform, scope, settings);
  SearchedGraph ring = search_graph(system, {GraphPattern::kRing, 1, 32, false}, settings);
  SearchedGraph tree = search_graph(
      system, {GraphPattern::kBalancedTree, ring.n_channels(), ring.n_channels(), false}, settings);
  SearchedGraph nvls = search_graph(system, {GraphPattern::kNvls, 1, 64, false}, settings);
  return {std::move(system), std::move(ring), std::move(tree), std::move(nvls)};
}

std::vector<uint32_t> first(uint32_t n) {
  std::vector<uint32_t> out(n);
  std::iota(out.begin(), out.end(), 0u);
  return out;
}

// No wire carries more than it has; every channel visits every GPU once.
void check_rings(const Found& found) {
  std::vector<float> load(found.system.wires.size());
  for (const SearchedChannel& channel : found.ring.channels) {
    const std::set<uint32_t> visited(channel.gpus.begin(), channel.gpus.end());
    CHECK(visited.size() == found.system.gpus.size());
    const size_t hops = channel.gpus.size() - (found.system.nets.empty() ? 0 : 1);
    for (size_t i = 0; i < hops; ++i) {
      const Path& path =
          found.system.gpu_path(channel.gpus[i], channel.gpus[(i + 1) % channel.gpus.size()]);
      CHECK(path.type <= found.ring.type_intra);
      for (const uint32_t w : path.wires) load[w] += found.ring.intra;
    }
  }
  for (size_t w = 0; w < load.size(); ++w) CHECK(load[w] <= found.system.wires[w].bandwidth + 0.1F);
}

}  // namespace

TEST_CASE("2, 4, 6 and 8 H100 of an NVSwitch node get the channels NCCL 2.29.2 printed",
          "[nccl][search]") {
  const pb::Platform platform = machine("dgx-h100");
  for (const uint32_t gpus : {2u, 4u, 6u, 8u}) {
    const Found found = find(platform, {first(gpus), false, {}, {2, 29, 2}});
    INFO(gpus << " GPUs");
    CHECK(found.ring.n_channels() == 12);
    CHECK(found.ring.intra == 30);
    CHECK(found.ring.type_intra == PathType::kNvl);
    CHECK(found.ring.channels[0].gpus == first(gpus));
    check_rings(found);
    CHECK(found.tree.n_channels() == 12);
    CHECK(found.tree.intra == (gpus == 2 ? 60 : 30));
    CHECK(found.nvls.n_channels() == static_cast<int>(gpus));
    if (gpus == 2 || gpus == 4) CHECK(found.nvls.intra == 60);
    if (gpus == 6) CHECK(found.nvls.intra == 50);
  }
}

TEST_CASE("DGX A100 gets 12 channels of 20 GB/s inside a node", "[nccl][search]") {
  const Found found = find(machine("dgx-a100"), {});
  CHECK(found.ring.n_channels() == 12);
  CHECK(found.ring.intra == 20);
  CHECK(found.nvls.n_channels() == 0);
  check_rings(found);
}

TEST_CASE("the hybrid cube mesh of DGX-1 gets rings over NVLink alone", "[nccl][search]") {
  for (const char* id : {"dgx1-v100", "aws-p3"}) {
    INFO(id);
    const Found found = find(machine(id), {});
    CHECK(found.ring.type_intra == PathType::kNvl);
    CHECK(static_cast<float>(found.ring.n_channels()) * found.ring.intra == 120);
    check_rings(found);
  }
}

TEST_CASE("part of a mesh gets what its NVLinks carry", "[nccl][search]") {
  const pb::Platform platform = machine("dgx1-v100");
  const Found pair = find(platform, {{0, 3}});
  CHECK(static_cast<float>(pair.ring.n_channels()) * pair.ring.intra == 40);
  const Found quad = find(platform, {{0, 1, 2, 3}});
  CHECK(quad.ring.type_intra == PathType::kNvl);
  check_rings(quad);
  // GPUs 0 and 5 are not joined: through a GPU between them, when that one takes part.
  const Found far = find(platform, {{0, 5}});
  CHECK(far.ring.type_intra == PathType::kSys);
}

TEST_CASE("every NIC of a rail-optimised node carries its own channel", "[nccl][search]") {
  const Found h100 = find(machine("dgx-h100"), {{}, true});
  CHECK(h100.ring.n_channels() == 8);
  CHECK(h100.ring.inter == 48);
  CHECK(h100.ring.type_inter == PathType::kPix);
  std::set<uint32_t> nets;
  for (const SearchedChannel& channel : h100.ring.channels) {
    nets.insert(channel.net_in);
    CHECK(h100.system.from_net(channel.net_in, channel.gpus.front()).type <= PathType::kPxb);
  }
  CHECK(nets.size() == 8);
  check_rings(h100);
  CHECK(h100.nvls.n_channels() == 8);
  const Found a100 = find(machine("dgx-a100"), {{}, true});
  CHECK(a100.ring.n_channels() == 8);
  CHECK(a100.ring.inter == 24);
}

TEST_CASE("P2P that is switched off sends rings through the processors", "[nccl][search]") {
  const pb::Platform platform = machine("dgx-h100");
  const Found off = find(platform, {first(4), false, {{"NCCL_P2P_DISABLE", "1"}}});
  CHECK_FALSE(off.system.peer_to_peer(0, 1));
  CHECK(off.ring.type_intra >= PathType::kPhb);
  CHECK(off.ring.intra <= 24);
  const Found level = find(platform, {first(4), false, {{"NCCL_P2P_LEVEL", "NVL"}}});
  CHECK(level.system.peer_to_peer(0, 1));
}

TEST_CASE("a GPU reaches a far NIC through the GPU beside it unless PXN is off", "[nccl][search]") {
  const pb::Platform platform = machine("dgx-h100");
  const Found on = find(platform, {{}, true});
  CHECK(on.system.to_net(0, 7).type == PathType::kPxn);
  CHECK(on.system.to_net(0, 7).via == 7);
  CHECK(on.system.to_net(0, 0).type == PathType::kPix);
  const Found off = find(platform, {{}, true, {{"NCCL_PXN_DISABLE", "1"}}});
  CHECK(off.system.to_net(0, 7).type == PathType::kSys);
}

TEST_CASE("GPUDirect beyond the level goes through the processor", "[nccl][search]") {
  const pb::Platform platform = machine("dgx-h100");
  CHECK(find(platform, {{}, true}).system.gpu_direct(0, 0));
  const Found off = find(platform, {{}, true, {{"NCCL_NET_GDR_LEVEL", "LOC"}}});
  CHECK_FALSE(off.system.gpu_direct(0, 0));
  CHECK(off.system.to_net(0, 0).type == PathType::kPhb);
}

TEST_CASE("which GPUs of an NVSwitch node take part does not matter", "[nccl][search]") {
  const pb::Platform platform = machine("dgx-h100");
  const Found reference = find(platform, {{0, 1, 2, 3}});
  for (const std::vector<uint32_t>& gpus :
       {std::vector<uint32_t>{4, 5, 6, 7}, {0, 2, 4, 6}, {3, 1, 0, 2}, {7, 0, 5, 3}}) {
    const Found found = find(platform, {gpus});
    CHECK(found.ring.n_channels() == reference.ring.n_channels());
    CHECK(found.ring.intra == reference.ring.intra);
    CHECK(found.tree.intra == reference.tree.intra);
    CHECK(found.nvls.intra == reference.nvls.intra);
  }
}

TEST_CASE("every machine of the catalogue gets rings over all its GPUs", "[nccl][search]") {
  const auto entries = catalogue().list();
  REQUIRE(entries);
  for (const auto& entry : *entries) {
    INFO(entry.id);
    const pb::Platform platform = machine(entry.id);
    for (const bool network : {false, true}) {
      const Found found = find(platform, {{}, network});
      CHECK(found.ring.n_channels() >= 1);
      CHECK(found.ring.intra > 0.1F);
      CHECK(found.tree.n_channels() >= 1);
    }
  }
}

TEST_CASE("the dumped topology of 4 RTX 4090 gives the graph NCCL 2.28.9 logged on them",
          "[nccl][search][data]") {
  const auto file = rehearse::tests::real_data("nccl/topology/xml/4xRTX4090_dump.xml");
  if (!file) return;
  const auto text = read_file(*file, 1u << 20);
  REQUIRE(text);
  const auto machines = platforms::Machines::load(catalogue());
  REQUIRE(machines);
  const auto imported = platforms::import_nccl_topology({"dump.xml", *text}, *machines, {});
  REQUIRE(imported);
  const auto platform = platforms::expanded(imported->platform, "dump.xml", *machines);
  REQUIRE(platform);
  const Found found = find(*platform, {});
  CHECK(found.system.max_bandwidth == 16);
  CHECK(found.system.total_bandwidth == 24);
  CHECK(found.system.gpu_path(0, 1).wires.size() == 3);
  CHECK(found.ring.n_channels() == 1);
  CHECK(found.ring.intra == 15);
  CHECK(found.ring.type_intra == PathType::kSys);
  CHECK(found.ring.same_channels);
  CHECK(found.tree.n_channels() == 1);
  CHECK(found.tree.intra == 15);
  CHECK(found.tree.pattern == GraphPattern::kBalancedTree);
}

TEST_CASE("tries that are left out because they cannot be better change nothing",
          "[nccl][search]") {
  const auto entries = catalogue().list();
  REQUIRE(entries);
  uint64_t visits = 0, thorough = 0;
  for (const auto& entry : *entries) {
    const pb::Platform platform = machine(entry.id);
    for (const bool network : {false, true}) {
      INFO(entry.id << (network ? " with its network" : ""));
      const Found found = find(platform, {{}, network});
      const TopologySettings settings = [] {
        std::vector<std::string> notes;
        return topology_settings({}, {2, 28, 9}, notes);
      }();
      const auto check = [&](const SearchedGraph& quick, SearchRequest request) {
        request.thorough = true;
        const SearchedGraph slow = search_graph(found.system, request, settings);
        CHECK(quick.pattern == slow.pattern);
        CHECK(quick.intra == slow.intra);
        CHECK(quick.inter == slow.inter);
        CHECK(quick.type_intra == slow.type_intra);
        CHECK(quick.type_inter == slow.type_inter);
        CHECK(quick.cross_nic == slow.cross_nic);
        REQUIRE(quick.n_channels() == slow.n_channels());
        for (size_t c = 0; c < slow.channels.size(); ++c) {
          CHECK(quick.channels[c].gpus == slow.channels[c].gpus);
          CHECK(quick.channels[c].net_in == slow.channels[c].net_in);
          CHECK(quick.channels[c].net_out == slow.channels[c].net_out);
        }
        CHECK(quick.visits <= slow.visits);
        visits += quick.visits;
        thorough += slow.visits;
      };
      const int rings = found.ring.n_channels();
      check(found.ring, {GraphPattern::kRing, 1, 32, false});
      check(found.tree, {GraphPattern::kBalancedTree, rings, rings, false});
      check(found.nvls, {GraphPattern::kNvls, 1, 64, false});
    }
  }
  CHECK(visits < thorough);
  // 16 tries of 16,384 GPUs each without it.
  CHECK(find(machine("dgx-a100"), {{}, true}).ring.visits < 80'000);
}

}  // namespace rehearse::nccl_search_test
