// SPDX-License-Identifier: Apache-2.0
// From a placement to the rings, trees, transports and shape of a communicator.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>
#include <set>

#include "base/install.hpp"
#include "platforms/model/catalogue.hpp"
#include "sim/nccl/choice.hpp"
#include "sim/nccl/graphs.hpp"

namespace rehearse::nccl_graphs_test {
using namespace rehearse;
using namespace rehearse::sim;

namespace {

struct Job {
  Job(const std::vector<std::string>& ids, uint32_t scale) {
    const auto folder = shipped("platforms/catalogue");
    REQUIRE(folder);
    const platforms::PlatformCatalogue catalogue(*folder);
    for (const std::string& id : ids) {
      auto found = catalogue.platform(id);
      REQUIRE(found);
      if (platform.nodes().empty()) {
        platform = *found;
      } else {
        *platform.add_nodes() = found->nodes(0);
      }
    }
    platform.set_scale(scale);
    const auto done = platforms::expand(platform, "test");
    INFO((done ? std::string() : done.error().message()));
    REQUIRE(done);
    launch.set_nccl_version("2.28.9");
    for (int n = 0; n < platform.nodes_size(); ++n) {
      for (int g = 0; g < platform.nodes(n).gpus_size(); ++g) {
        seat(static_cast<uint32_t>(n), static_cast<uint32_t>(g));
      }
    }
  }

  void seat(uint32_t node, uint32_t gpu) {
    pb::RankLaunch& entry = *launch.add_ranks();
    entry.set_rank(static_cast<uint32_t>(launch.ranks_size() - 1));
    entry.set_node(node);
    entry.set_gpu(gpu);
  }

  Result<Placement> placed(std::vector<uint32_t> members = {}) {
    if (members.empty()) {
      members.resize(static_cast<size_t>(launch.ranks_size()));
      std::iota(members.begin(), members.end(), 0u);
    }
    auto built = platforms::Links::build(platform);
    REQUIRE(built);
    links.emplace(std::move(*built));
    return place({platform, *links, launch}, {"c", "test", members, "nccl"});
  }

  Graphs graphs(std::vector<uint32_t> members = {}) {
    placement = placed(std::move(members));
    if (!placement) FAIL(placement.error().message());
    auto out = build_graphs({platform, *links, launch}, *placement, 0);
    REQUIRE(out);
    REQUIRE(check_shape(out->shape));
    return *out;
  }

  void set(uint32_t rank, const char* name, const char* value) {
    (*launch.mutable_ranks(static_cast<int>(rank))->mutable_env())[name] = value;
  }
  void set_all(const char* name, const char* value) { (*launch.mutable_env())[name] = value; }

  pb::Platform platform;
  pb::Launch launch;
  std::optional<platforms::Links> links;
  Result<Placement> placement = Placement{};
};

void check_complete(const Graphs& graphs, size_t ranks) {
  for (const auto* list : {&graphs.rings, &graphs.trees}) {
    REQUIRE_FALSE(list->empty());
    for (const auto& channel : *list) {
      std::set<uint32_t> seen;
      for (const NodePath& path : channel) seen.insert(path.members.begin(), path.members.end());
      CHECK(seen.size() == ranks);
    }
  }
}

}  // namespace

TEST_CASE("every machine of the catalogue gets whole rings and trees on 1 and 3 nodes",
          "[sim][nccl]") {
  const auto folder = shipped("platforms/catalogue");
  REQUIRE(folder);
  const auto entries = platforms::PlatformCatalogue(*folder).list();
  REQUIRE(entries);
  for (const auto& entry : *entries) {
    for (const uint32_t nodes : {1u, 3u}) {
      INFO(entry.id << " x " << nodes);
      Job job({entry.id}, nodes);
      if (job.launch.ranks_size() < 2) continue;
      const Graphs graphs = job.graphs();
      check_complete(graphs, static_cast<size_t>(job.launch.ranks_size()));
      CHECK(graphs.shape.n_channels >= 2);
      CHECK(graphs.shape.ring.bw_intra > 0.1);
    }
  }
}

TEST_CASE("the order of ranks inside an NVSwitch node does not matter", "[sim][nccl]") {
  Job straight({"dgx-h100"}, 2);
  const CommShape reference = straight.graphs().shape;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    Job job({"dgx-h100"}, 2);
    job.launch.clear_ranks();
    for (uint32_t node = 0; node < 2; ++node) {
      std::vector<uint32_t> order(8);
      std::iota(order.begin(), order.end(), 0u);
      for (size_t i = 7; i > 0; --i)
        std::swap(order[i], order[(seed * 2654435761u >> i) % (i + 1)]);
      for (const uint32_t gpu : order) job.seat(node, gpu);
    }
    const Graphs graphs = job.graphs();
    CHECK(graphs.shape == reference);
    check_complete(graphs, 16);
  }
}

TEST_CASE("nodes of different machines take the weakest of both", "[sim][nccl]") {
  Job mixed({"dgx-a100", "dgx-h100"}, 0);
  const Graphs graphs = mixed.graphs();
  CHECK(graphs.shape.cc_min == 80);
  CHECK(graphs.shape.cc_max == 90);
  CHECK(graphs.shape.cpu_vendor == CpuVendor::kMixed);
  CHECK(graphs.shape.ring.bw_inter <= 24);
  CHECK_FALSE(graphs.shape.nvls_support);
  check_complete(graphs, 16);
}

TEST_CASE("part of a node gets channels of what it has", "[sim][nccl]") {
  Job job({"dgx-h100"}, 1);
  for (const std::vector<uint32_t>& members :
       {std::vector<uint32_t>{0, 1}, {0, 1, 2, 3}, {0, 1, 2, 3, 4, 5}}) {
    const Graphs graphs = job.graphs(members);
    CHECK(graphs.shape.n_channels == 24);
    CHECK(graphs.shape.nvls_heads == static_cast<int>(members.size()));
    CHECK(graphs.shape.nvls_channels == 16);
  }
}

TEST_CASE("an NVLink domain of several hosts is one node for NCCL", "[sim][nccl]") {
  Job rack({"gb200-nvl72"}, 4);
  const Graphs graphs = rack.graphs();
  CHECK(graphs.shape.n_nodes == 1);
  CHECK(graphs.shape.ranks_per_node == 16);
  CHECK(graphs.shape.nvls_channels == 24);
  CHECK(rack.placement->inter == InterTransport::kNvlink);
  rack.set_all("NCCL_MNNVL_ENABLE", "0");
  CHECK(rack.graphs().shape.n_nodes == 4);
}

TEST_CASE("Gloo on hosts of one NVLink domain talks between them", "[sim][nccl]") {
  Job rack({"gb200-nvl72"}, 2);
  rack.launch.set_backend(pb::GLOO);
  REQUIRE(rack.placed());
  const auto model = CommunicatorModel::create({rack.platform, *rack.links, rack.launch},
                                               {"c", "test", {0, 1, 4, 5}, "gloo"});
  REQUIRE(model);
  traces::Call call;
  call.collective = traces::Collective::kAllReduce;
  call.bytes_in = call.bytes_out = 1 << 20;
  call.dtype = traces::DType::kFp32;
  const auto traffic = model->traffic(call, 0);
  REQUIRE(traffic);
  CHECK_FALSE(traffic->flows.empty());
}

TEST_CASE("ranks without peer access and shared memory meet on the network", "[sim][nccl]") {
  Job job({"dgx-a100"}, 1);
  job.set_all("NCCL_P2P_DISABLE", "1");
  CHECK(job.graphs({0, 1, 2, 3}).shape.n_nodes == 1);
  job.set_all("NCCL_SHM_DISABLE", "1");
  const Graphs graphs = job.graphs({0, 1, 2, 3});
  CHECK(graphs.shape.n_nodes == 4);
  CHECK(job.placement->inter == InterTransport::kRdmaDirect);
}

TEST_CASE("the adapters that NCCL_IB_HCA allows are the only ones used", "[sim][nccl]") {
  Job job({"dgx-h100"}, 2);
  job.set_all("NCCL_IB_HCA", "=mlx5_2,mlx5_5");
  const Graphs graphs = job.graphs();
  CHECK(job.placement->groups[0].system().nets.size() == 2);
  CHECK(graphs.shape.ring.n_channels == 4);  // each of 48 GB/s as two of 24
  CHECK(graphs.shape.ring.bw_inter == 24);
  std::set<uint32_t> nics;
  for (const auto& ring : graphs.rings) {
    nics.insert(job.placement->groups[0].system().nets[ring[0].nic].index);
  }
  CHECK(nics == std::set<uint32_t>{2, 5});
}

TEST_CASE("a variable of one rank weakens its whole node", "[sim][nccl]") {
  Job job({"dgx-h100"}, 2);
  job.set(3, "NCCL_PXN_DISABLE", "1");
  job.graphs();
  CHECK_FALSE(job.placement->groups[0].settings.pxn);
  CHECK(job.placement->groups[1].settings.pxn);
}

TEST_CASE("cards without peer access go through shared memory", "[sim][nccl]") {
  Job job({"rtx4090-8"}, 1);
  const Graphs graphs = job.graphs();
  CHECK(job.placement->intra == IntraTransport::kHost);
  CHECK(graphs.shape.ring.type_intra >= PathType::kPhb);
}

TEST_CASE("what NCCL 2.12.12 predicted on 4 nodes of RTX 3090 is reproduced", "[sim][nccl]") {
  // Public log of Panlichen/nccl-tests (BSD-3-Clause): bytes, algorithm, protocol, microseconds.
  struct Line {
    int64_t bytes;
    Algorithm algorithm;
    Protocol protocol;
    double time_us;
  };
  Job job({"rtx3090-8"}, 4);
  job.launch.set_nccl_version("2.12.12");
  const Graphs graphs = job.graphs();
  CHECK(graphs.shape.ring.bw_inter == 7);
  CHECK(job.placement->intra == IntraTransport::kHost);
  const auto model = make_nccl_model(graphs.shape, {}, {2, 12, 12});
  REQUIRE(model);
  for (const Line& line : {Line{64, Algorithm::kTree, Protocol::kLl, 49.68},
                           Line{65536, Algorithm::kTree, Protocol::kLl, 178.50},
                           Line{131072, Algorithm::kRing, Protocol::kLl, 267.52},
                           Line{524288, Algorithm::kRing, Protocol::kLl, 702.86},
                           Line{1048576, Algorithm::kTree, Protocol::kSimple, 1155.29},
                           Line{4194304, Algorithm::kRing, Protocol::kSimple, 2187.30},
                           Line{134217728, Algorithm::kRing, Protocol::kSimple, 38175.93}}) {
    INFO(line.bytes << " bytes");
    Call call;
    call.count = line.bytes / 4;
    const auto chosen = choose(*model, call);
    REQUIRE(chosen);
    CHECK(chosen->algorithm == line.algorithm);
    CHECK(chosen->protocol == line.protocol);
    CHECK(chosen->time_us == Approx(line.time_us).epsilon(0.001));
  }
}

TEST_CASE("a rank on a GPU that does not exist is refused with its place", "[sim][nccl]") {
  Job job({"dgx-a100"}, 1);
  job.launch.mutable_ranks(2)->set_gpu(9);
  const auto wrong = job.placed();
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().code == Code::kBadInput);
  CHECK(wrong.error().where == "launch.ranks[2].gpu");
  CHECK(wrong.error().what == "rank 2 is on GPU 9: node 0 has 8");
  job.launch.mutable_ranks(2)->set_node(7);
  CHECK(job.placed().error().where == "launch.ranks[2].node");
}

TEST_CASE("channels of a graph file replace the search", "[sim][nccl]") {
  Job job({"dgx-a100"}, 1);
  pb::Node& node = *job.platform.mutable_nodes(0);
  for (const uint32_t id : {0u, 1u}) {
    pb::NcclGraph& graph = *node.add_nccl_graphs();
    graph.set_id(id);
    graph.set_pattern(id == 0 ? 4 : 1);
    graph.set_intra(12e9);
    graph.set_inter(12e9);
    graph.set_intra_type("SYS");
    graph.set_inter_type("PIX");
    for (int c = 0; c < 2; ++c) {
      pb::NcclChannel& channel = *graph.add_channels();
      for (uint32_t g = 0; g < 8; ++g) channel.add_gpus(c == 0 ? g : 7 - g);
    }
  }
  const Graphs graphs = job.graphs();
  CHECK(graphs.recorded);
  CHECK(graphs.shape.ring.n_channels == 2);
  CHECK(graphs.shape.ring.bw_intra == 12);
  CHECK(graphs.shape.n_channels == 4);
  CHECK(graphs.rings[1][0].members.front() == 7);
  // A part of the node is searched again.
  CHECK_FALSE(job.graphs({0, 1, 2, 3}).recorded);
}

TEST_CASE("reduction in the network needs a fabric that offers it", "[sim][nccl]") {
  Job job({"dgx-h100"}, 2);
  job.set_all("NCCL_COLLNET_ENABLE", "1");
  CHECK_FALSE(job.graphs().shape.collnet);
  job.platform.mutable_fabric()->set_sharp(true);
  const Graphs graphs = job.graphs();
  CHECK(graphs.shape.collnet);
  CHECK(graphs.shape.collnet_heads > 0);
  job.set(3, "NCCL_COLLNET_ENABLE", "0");
  CHECK_FALSE(job.graphs().shape.collnet);
}

}  // namespace rehearse::nccl_graphs_test
