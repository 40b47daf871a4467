// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "sim/nccl/p2p.hpp"
#include "tests/sim/nccl_fixture.hpp"

namespace rehearse::nccl_p2p_test {
using namespace rehearse;
using namespace rehearse::sim;
using namespace rehearse::sim::testing;

namespace {

P2pShape nvlink_node(int ranks) {
  P2pShape shape;
  shape.ranks_per_node = ranks;
  shape.n_channels = 24;
  shape.all_nvlink = true;
  shape.nvlink_path_gbps = 370.8;
  shape.nvlink_link_gbps = 20.6;
  return shape;
}

P2pShape cluster(int nodes, int ranks_per_node) {
  P2pShape shape = nvlink_node(ranks_per_node);
  shape.n_nodes = nodes;
  return shape;
}

P2pLayout layout_of(const P2pShape& shape, const Environment& env = {}) {
  const auto layout = p2p_layout(shape, *parse_settings(env, NcclVersion{}));
  REQUIRE(layout.has_value());
  return *layout;
}

P2pTransfer transfer_of(const P2pShape& shape, std::int64_t bytes, P2pRoute route,
                        const Environment& env = {}) {
  const auto transfer = p2p_transfer(shape, *parse_settings(env, NcclVersion{}), bytes, route);
  REQUIRE(transfer.has_value());
  return *transfer;
}

std::vector<P2pRound> rounds_of(const P2pShape& shape, int rank) {
  const auto rounds = p2p_rounds(shape, Settings{}, rank);
  REQUIRE(rounds.has_value());
  return *rounds;
}

constexpr auto kInside = P2pRoute::kInsideNode;
constexpr auto kNetwork = P2pRoute::kNetwork;

}  // namespace

TEST_CASE("two H100 get the point-to-point channels NCCL logged", "[nccl][p2p]") {
  // "24 coll channels, 24 collnet channels, 16 nvls channels, 32 p2p channels, 32 p2p channels per
  // peer" (NCCL 2.29.2, 2 H100 with 18 links each).
  const P2pLayout layout = layout_of(nvlink_node(2));
  CHECK(layout.channels == 32);
  CHECK(layout.channels_per_peer == 32);
  CHECK(layout.step_bytes == 524288);
}

TEST_CASE("PCI peers get two channels and network peers two unless crowded", "[nccl][p2p]") {
  P2pShape pci = nvlink_node(4);
  pci.all_nvlink = false;
  CHECK(layout_of(pci).channels_per_peer == 2);
  CHECK(layout_of(pci).step_bytes == 131072);
  CHECK(layout_of(cluster(2, 8)).channels_per_peer == 2);
  CHECK(layout_of(cluster(6, 8)).channels_per_peer == 2);  // 2·48 ≤ 4·24
  CHECK(layout_of(cluster(8, 8)).channels_per_peer == 1);  // 2·64 > 4·24
  P2pShape nics = cluster(8, 8);
  nics.nics_per_gpu = 4;
  CHECK(layout_of(nics).channels_per_peer == 4);
  CHECK(layout_of(cluster(8, 8), {{"NCCL_NCHANNELS_PER_NET_PEER", "8"}}).channels_per_peer == 8);
  CHECK(layout_of(cluster(2, 8)).step_bytes == 131072);
}

TEST_CASE("the environment bounds point-to-point channels and steps", "[nccl][p2p]") {
  CHECK(layout_of(nvlink_node(2), {{"NCCL_MAX_P2P_NCHANNELS", "6"}}).channels == 8);
  CHECK(layout_of(nvlink_node(2), {{"NCCL_MIN_P2P_NCHANNELS", "40"}}).channels == 64);
  CHECK(layout_of(nvlink_node(2), {{"NCCL_P2P_NVL_CHUNKSIZE", "262144"}}).step_bytes == 262144);
  CHECK(layout_of(nvlink_node(2), {{"NCCL_BUFFSIZE", "1048576"}}).step_bytes == 131072);
}

TEST_CASE("short transfers use LL where LL buffers exist", "[nccl][p2p]") {
  const P2pShape node = nvlink_node(2);
  CHECK(transfer_of(node, 32 * 16384, kInside).protocol == Protocol::kLl);
  CHECK(transfer_of(node, 32 * 16384 + 1, kInside).protocol == Protocol::kSimple);
  CHECK(transfer_of(node, 8, kInside, {{"NCCL_P2P_LL_THRESHOLD", "0"}}).protocol ==
        Protocol::kSimple);
  const P2pShape nodes = cluster(2, 8);
  CHECK(transfer_of(nodes, 1024, kNetwork).protocol == Protocol::kSimple);
  CHECK(transfer_of(nodes, 1024, kNetwork, {{"NCCL_ALLOC_P2P_NET_LL_BUFFERS", "1"}}).protocol ==
        Protocol::kLl);
}

TEST_CASE("small network transfers take smaller chunks", "[nccl][p2p]") {
  const P2pShape nodes = cluster(2, 8);
  CHECK(transfer_of(nodes, 131071, kNetwork).chunk_bytes == 32768);
  CHECK(transfer_of(nodes, 131072, kNetwork).chunk_bytes == 65536);
  CHECK(transfer_of(nodes, 8 * 131072, kNetwork).chunk_bytes == 131072);
  CHECK(transfer_of(nodes, 1 << 20, kInside).chunk_bytes == 131072);
  CHECK(transfer_of(nodes, 1000, kInside).chunk_bytes == 32768);  // LL, half a slot
  CHECK(transfer_of(nodes, 1 << 20, kNetwork, {{"NCCL_CHUNK_SIZE", "70000"}}).chunk_bytes ==
        65536);  // kept with four bits
}

TEST_CASE("large transfers spread over channels until parts are small enough", "[nccl][p2p]") {
  const P2pShape nodes = cluster(2, 8);
  CHECK(transfer_of(nodes, 0, kNetwork).channels == 1);
  CHECK(transfer_of(nodes, 65536, kNetwork).channels == 1);
  const P2pTransfer large = transfer_of(nodes, 1 << 24, kNetwork);
  CHECK(large.channels == 2);
  CHECK(large.part_bytes == 1 << 23);
  CHECK(large.steps_per_part == 64);
  // Channels are shared by the peers: with few of them a transfer begins on as many as it may, in a crowd on one.
  CHECK(layout_of(cluster(2, 8)).channels == 32);
  CHECK(transfer_of(cluster(2, 8), 131072, kNetwork).channels == 2);
  CHECK(layout_of(cluster(6, 8)).channels_per_peer == 2);
  CHECK(transfer_of(cluster(6, 8), 131072, kNetwork).channels == 1);
  CHECK(transfer_of(cluster(6, 8), 131073, kNetwork).channels == 2);
  const P2pTransfer node = transfer_of(nvlink_node(2), std::int64_t{1} << 30, kInside);
  CHECK(node.channels == 32);
  const P2pTransfer odd = transfer_of(nodes, 200001, kNetwork);
  CHECK(odd.channels == 2);
  CHECK(odd.part_bytes % 4096 == 0);
  CHECK(odd.part_bytes >= 100001);
}

TEST_CASE("every round pairs all ranks and every peer is met once", "[nccl][p2p]") {
  for (const auto& [nodes, locals] : {std::pair{1, 1},
                                      {1, 8},
                                      {1, 6},
                                      {2, 8},
                                      {3, 8},
                                      {5, 4},
                                      {4, 16},
                                      {3, 6},
                                      {7, 1},
                                      {6, 12}}) {
    INFO(nodes << " nodes of " << locals);
    const P2pShape shape = cluster(nodes, locals);
    const int n = shape.n_ranks();
    std::vector<std::vector<P2pRound>> all;
    for (int rank = 0; rank < n; ++rank) all.push_back(rounds_of(shape, rank));
    bool paired = true;
    for (int rank = 0; rank < n; ++rank) {
      const auto& rounds = all[static_cast<std::size_t>(rank)];
      REQUIRE(rounds.size() == static_cast<std::size_t>(n));
      CHECK(rounds[0].send_rank == rank);
      std::set<int> peers;
      for (std::size_t r = 0; r < rounds.size(); ++r) {
        peers.insert(rounds[r].send_rank);
        const auto& peer = all[static_cast<std::size_t>(rounds[r].send_rank)][r];
        paired = paired && peer.recv_rank == rank && peer.first_channel == rounds[r].first_channel;
      }
      CHECK(peers.size() == static_cast<std::size_t>(n));
    }
    CHECK(paired);
  }
}

TEST_CASE("groups of nodes are visited by triangular distances", "[nccl][p2p]") {
  std::vector<int> nodes;
  const std::vector<P2pRound> rounds = rounds_of(cluster(16, 1), 0);
  for (const P2pRound& round : rounds) nodes.push_back(round.send_rank);
  CHECK(nodes == std::vector<int>{0, 1, 3, 6, 10, 15, 5, 12, 4, 13, 7, 2, 14, 11, 9, 8});
}

TEST_CASE("rounds start on channels far apart", "[nccl][p2p]") {
  const std::vector<P2pRound> rounds = rounds_of(nvlink_node(8), 0);  // 32 channels
  std::vector<int> first;
  for (const P2pRound& round : rounds) first.push_back(round.first_channel);
  CHECK(first == std::vector<int>{0, 16, 8, 24, 4, 20, 12, 28});
  // Between nodes the eight transfers of a group share their first channel.
  const std::vector<P2pRound> far = rounds_of(cluster(4, 8), 0);
  CHECK(far[0].first_channel == 0);
  CHECK(far[7].first_channel == 0);
  CHECK(far[8].first_channel == 16);
}

TEST_CASE("point-to-point input out of range is refused", "[nccl][p2p]") {
  P2pShape shape = nvlink_node(8);
  shape.n_channels = 0;
  CHECK(!p2p_layout(shape, Settings{}));
  CHECK(!p2p_rounds(nvlink_node(8), Settings{}, 8));
  CHECK(!p2p_rounds(nvlink_node(8), Settings{}, -1));
  CHECK(!p2p_transfer(nvlink_node(8), Settings{}, -1, kInside));
}

}  // namespace rehearse::nccl_p2p_test
