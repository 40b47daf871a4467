// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/traffic.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <numeric>
#include <set>

#include "base/install.hpp"
#include "platforms/model/catalogue.hpp"
#include "sim/nccl/environment.hpp"
#include "sim/nccl/graphs.hpp"

namespace rehearse::traffic_test {
using namespace rehearse;
using namespace rehearse::sim;
using traces::Collective;

namespace {

// A cluster from the catalogue with one rank per GPU.
struct Cluster {
  Cluster(const std::string& id, uint32_t nodes) {
    const auto folder = shipped("platforms/catalogue");
    REQUIRE(folder);
    auto found = platforms::PlatformCatalogue(*folder).platform(id);
    REQUIRE(found);
    platform = *found;
    platform.set_scale(nodes);
    REQUIRE(platforms::expand(platform, "test"));
    launch.set_nccl_version("2.28.9");
    uint32_t rank = 0;
    for (int n = 0; n < platform.nodes_size(); ++n) {
      for (int g = 0; g < platform.nodes(n).gpus_size(); ++g) {
        pb::RankLaunch& entry = *launch.add_ranks();
        entry.set_rank(rank++);
        entry.set_node(static_cast<uint32_t>(n));
        entry.set_gpu(static_cast<uint32_t>(g));
      }
    }
  }
  Result<CommunicatorModel> model(std::vector<uint32_t> members) {
    auto built = platforms::Links::build(platform);
    REQUIRE(built);
    links.emplace(std::move(*built));
    return CommunicatorModel::create({platform, *links, launch},
                                     {"c", "test", std::move(members), "nccl"});
  }
  CommunicatorModel all() {
    std::vector<uint32_t> members(static_cast<size_t>(launch.ranks_size()));
    std::iota(members.begin(), members.end(), 0u);
    auto made = model(members);
    if (!made) FAIL(made.error().message());
    return std::move(*made);
  }
  // Seconds the call's flows take alone on data-sheet links.
  [[nodiscard]] double seconds(const CallTraffic& traffic) const {
    double slowest = 0;
    for (const FlowLoad& flow : traffic.flows) {
      std::map<LinkId, double> weight;
      for (const LinkWeight& use : flow.links) weight[use.link] += use.weight;
      for (const auto& [link, w] : weight) {
        slowest = std::max(slowest, flow.bytes * w / (*links)[link].capacity);
      }
      if (flow.cap > 0) slowest = std::max(slowest, flow.bytes / flow.cap);
    }
    return slowest;
  }

  pb::Platform platform;
  pb::Launch launch;
  std::optional<platforms::Links> links;
};

traces::Call call(Collective collective, Bytes bytes) {
  traces::Call out;
  out.collective = collective;
  out.bytes_in = out.bytes_out = bytes;
  out.dtype = traces::DType::kFp32;
  out.peer = 0;
  return out;
}

}  // namespace

TEST_CASE("transports follow hardware and each rank's environment", "[sim][nccl]") {
  Cluster one("dgx-a100", 1);
  CHECK(one.all().transport() == "P2P/NVL");
  (*one.launch.mutable_ranks(3)->mutable_env())["NCCL_P2P_DISABLE"] = "1";
  const CommunicatorModel shm = one.all();
  CHECK(shm.transport() == "SHM");
  CHECK(shm.offered() == "P2P/NVL");
  REQUIRE(shm.fallbacks().size() == 1);
  CHECK(shm.fallbacks()[0].ranks == std::vector<uint32_t>{3});

  Cluster two("dgx-a100", 2);
  CHECK(two.all().transport() == "NET/IB/GDRDMA");
  two.platform.mutable_nodes(1)->mutable_nics(0)->set_gpudirect(false);
  for (auto& nic : *two.platform.mutable_nodes(1)->mutable_nics()) nic.set_gpudirect(false);
  CHECK(two.all().transport() == "NET/IB");
  for (auto& nic : *two.platform.mutable_nodes(1)->mutable_nics()) nic.set_down(true);
  const CommunicatorModel sockets = two.all();
  CHECK(sockets.transport() == "NET/Socket");
  REQUIRE_FALSE(sockets.fallbacks().empty());
  CHECK(sockets.fallbacks()[0].node == 1);
}

TEST_CASE("busbw never exceeds what the bounding links carry", "[sim][nccl]") {
  for (const char* id : {"dgx-a100", "dgx-h100", "dgx1-v100", "rtx4090-8", "aws-p4d"}) {
    for (uint32_t nodes : {1u, 2u, 4u}) {
      Cluster cluster(id, nodes);
      const CommunicatorModel model = cluster.all();
      for (Bytes bytes : {Bytes{4} << 10, Bytes{1} << 20, Bytes{1} << 30}) {
        const auto traffic = model.traffic(call(Collective::kAllReduce, bytes), 0);
        REQUIRE(traffic);
        INFO(id << " " << nodes << " nodes, " << bytes << " bytes, " << traffic->algorithm);
        const double seconds = cluster.seconds(*traffic);
        CHECK(seconds > 0);
        // In-switch reduction moves less than a ring; nothing else may beat the links of a GPU or node.
        double limit = 0;
        for (const auto& node : cluster.platform.nodes()) {
          double nics = 0;
          for (const auto& nic : node.nics()) nics += nic.bandwidth();
          double nvlink = 0;
          for (const auto& gpu : node.gpus()) {
            nvlink = std::max(nvlink, gpu.nvlink().links() * gpu.nvlink().bandwidth());
          }
          limit = std::max(limit, std::max(nvlink, 64e9) * 2 + nics);
        }
        CHECK(traffic->bus_bytes / seconds < limit);
      }
    }
  }
}

TEST_CASE("for fixed choices time never falls with more bytes", "[sim][nccl]") {
  Cluster cluster("dgx-a100", 2);
  for (auto& rank : *cluster.launch.mutable_ranks()) {
    (*rank.mutable_env())["NCCL_ALGO"] = "Ring";
    (*rank.mutable_env())["NCCL_PROTO"] = "Simple";
  }
  const CommunicatorModel model = cluster.all();
  double last = 0;
  for (Bytes bytes = 1 << 22; bytes <= Bytes{1} << 30; bytes *= 2) {
    const auto traffic = model.traffic(call(Collective::kAllReduce, bytes), 0);
    REQUIRE(traffic);
    CHECK(traffic->algorithm == "RING/SIMPLE");
    const double seconds = cluster.seconds(*traffic);
    CHECK(seconds >= last);
    last = seconds;
  }
}

TEST_CASE("a large ring all-reduce over two nodes takes the alpha-beta time of its cards",
          "[sim][nccl]") {
  Cluster cluster("dgx-a100", 2);
  for (auto& rank : *cluster.launch.mutable_ranks()) {
    (*rank.mutable_env())["NCCL_ALGO"] = "Ring";
    (*rank.mutable_env())["NCCL_PROTO"] = "Simple";
  }
  const CommunicatorModel model = cluster.all();
  const Bytes bytes = Bytes{1} << 30;
  const auto traffic = model.traffic(call(Collective::kAllReduce, bytes), 0);
  REQUIRE(traffic);
  // 2(n-1)/n of the data leaves each node over 8 cards of 25 GB/s.
  const double expected = 2.0 * 15 / 16 * static_cast<double>(bytes) / (8 * 25e9);
  CHECK(cluster.seconds(*traffic) == Approx(expected).epsilon(0.001));
}

TEST_CASE("an all-to-all loads each card with what leaves its node", "[sim][nccl]") {
  Cluster cluster("dgx-h100", 2);
  const CommunicatorModel model = cluster.all();
  const Bytes bytes = Bytes{1} << 30;  // per rank
  const auto traffic = model.traffic(call(Collective::kAllToAll, bytes), 0);
  REQUIRE(traffic);
  // Half of each rank's data goes to the other node over the rank's own card of 50 GB/s.
  const double expected = static_cast<double>(bytes) / 2 / 50e9;
  CHECK(cluster.seconds(*traffic) == Approx(expected).epsilon(0.02));
}

TEST_CASE("an all-to-all is one flow over cards and leaves, however many pairs it has",
          "[sim][nccl]") {
  const auto entries = [](uint32_t nodes) {
    Cluster cluster("dgx-h100", nodes);
    const CommunicatorModel model = cluster.all();
    const auto traffic = model.traffic(call(Collective::kAllToAll, 1 << 20), 0);
    REQUIRE(traffic);
    REQUIRE(traffic->flows.size() == 1);
    std::set<LinkId> links;
    for (const LinkWeight& use : traffic->flows[0].links) CHECK(links.insert(use.link).second);
    return links.size();
  };
  // Four times the ranks are sixteen times the pairs.
  const size_t few = entries(4), many = entries(16);
  CHECK(few <= 32 * 8);
  CHECK(many <= 5 * few);
}

TEST_CASE("a send crosses the links between its two ranks and no others", "[sim][nccl]") {
  Cluster cluster("dgx-h100", 2);
  const CommunicatorModel model = cluster.all();
  traces::Call send = call(Collective::kSend, 1 << 20);
  send.peer = 9;
  const auto traffic = model.traffic(send, 1);
  REQUIRE(traffic);
  REQUIRE(traffic->flows.size() == 1);
  for (const LinkWeight& use : traffic->flows[0].links) {
    const platforms::Link& link = (*cluster.links)[use.link];
    CHECK((link.node == 0 || link.node == 1 || link.node == UINT32_MAX));
  }
  send.peer = 99;
  CHECK_FALSE(model.traffic(send, 1));
}

TEST_CASE("a send inside an NVLink domain is planned as one, whichever tray the peer is in",
          "[sim][nccl]") {
  Cluster cluster("gb200-nvl72", 2);
  const CommunicatorModel model = cluster.all();
  traces::Call send = call(Collective::kSend, 1 << 20);
  send.peer = 1;
  const auto near = model.traffic(send, 0);
  send.peer = 4;
  const auto far = model.traffic(send, 0);
  REQUIRE(near);
  REQUIRE(far);
  CHECK(far->channels == near->channels);
  CHECK(far->latency == near->latency);
  REQUIRE(far->flows.size() == 1);
  CHECK(far->flows[0].bytes == near->flows[0].bytes);
  CHECK(far->flows[0].cap == near->flows[0].cap);
}

TEST_CASE("NCCL refuses an algorithm that does not exist", "[sim][nccl]") {
  Cluster cluster("dgx-a100", 1);
  for (auto& rank : *cluster.launch.mutable_ranks()) (*rank.mutable_env())["NCCL_ALGO"] = "Rings";
  const auto model = cluster.model({0, 1, 2, 3});
  REQUIRE_FALSE(model);
  CHECK(model.error().code == Code::kBadInput);
}

TEST_CASE("channel counts of well-known machines are NCCL's", "[sim][nccl]") {
  struct Row {
    const char* id;
    uint32_t nodes;
    int channels;
  };
  // DGX A100 and DGX H100: 24 channels in one node, 16 between nodes, as their logs print.
  for (const Row& row : {Row{"dgx-a100", 1, 24}, Row{"dgx-h100", 1, 24}, Row{"dgx-a100", 2, 16},
                         Row{"dgx-h100", 2, 16}}) {
    Cluster cluster(row.id, row.nodes);
    auto links = platforms::Links::build(cluster.platform);
    REQUIRE(links);
    const ModelContext context{cluster.platform, *links, cluster.launch};
    std::vector<uint32_t> members(static_cast<size_t>(cluster.launch.ranks_size()));
    std::iota(members.begin(), members.end(), 0u);
    const auto placement = place(context, {"c", "test", members, "nccl"});
    REQUIRE(placement);
    const auto graphs = build_graphs(context, *placement, 0);
    REQUIRE(graphs);
    INFO(row.id << " " << row.nodes);
    CHECK(graphs->shape.n_channels == row.channels);
  }
}

TEST_CASE("every node but the root has one parent in each binary tree", "[sim][nccl]") {
  for (int n : {2, 3, 4, 7, 8, 13, 32}) {
    for (int which : {0, 1}) {
      int roots = 0;
      for (int node = 0; node < n; ++node) {
        const TreeNode tree = binary_tree(node, n, which);
        if (tree.up < 0) {
          ++roots;
          continue;
        }
        const TreeNode parent = binary_tree(tree.up, n, which);
        INFO(n << " nodes, tree " << which << ", node " << node);
        CHECK((parent.down[0] == node || parent.down[1] == node));
      }
      CHECK(roots == 1);
    }
  }
}

TEST_CASE("name filters work as NCCL's", "[sim][nccl]") {
  CHECK(name_allowed("mlx5_0", ""));
  CHECK(name_allowed("mlx5_0", "mlx5"));
  CHECK_FALSE(name_allowed("mlx5_1", "=mlx5_0"));
  CHECK(name_allowed("mlx5_1", "=mlx5_0,mlx5_1:1"));
  CHECK_FALSE(name_allowed("docker0", "^docker,lo"));
  CHECK(name_allowed("eth0", "^docker,lo"));
  CHECK(name_allowed("docker01", "^=docker0"));
}

}  // namespace rehearse::traffic_test
