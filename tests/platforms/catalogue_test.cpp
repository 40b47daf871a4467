// SPDX-License-Identifier: Apache-2.0
#include "platforms/model/catalogue.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <set>

#include "base/install.hpp"
#include "tests/platforms/platforms_for_tests.hpp"
#include "tests/temporary_folder.hpp"

namespace rehearse::platforms::catalogue_test {
namespace {

namespace fs = std::filesystem;

PlatformCatalogue shipped_catalogue() {
  const auto folder = shipped("platforms/catalogue");
  REQUIRE(folder);
  return PlatformCatalogue(*folder);
}

template <typename T>
T value(Result<T> result) {
  INFO((result ? std::string() : result.error().message()));
  REQUIRE(result);
  return std::move(*result);
}

// A folder of files that is gone when the test ends.
class Folder {
 public:
  Folder() { fs::create_directories(path_ / "gpus"); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  tests::TemporaryFolder folder_;
  fs::path path_ = folder_.path;
};

}  // namespace

TEST_CASE("every shipped platform loads, expands to two nodes and has links",
          "[platforms][catalogue]") {
  const PlatformCatalogue catalogue = shipped_catalogue();
  const auto entries = value(catalogue.list());
  CHECK(entries.size() >= 25);
  for (const Entry& entry : entries) {
    INFO(entry.id);
    pb::Platform platform = value(catalogue.platform(entry.id));
    CHECK_FALSE(entry.name.empty());
    CHECK_FALSE(entry.description.empty());
    CHECK_FALSE(platform.sources().empty());
    platform.set_scale(2);
    const auto ok = expand(platform, entry.id);
    INFO((ok ? std::string() : ok.error().message()));
    REQUIRE(ok);
    REQUIRE(platform.nodes_size() == 2);
    for (const auto& source : platform.sources()) {
      CHECK_FALSE(source.figure().empty());
      CHECK(source.url().starts_with("https://"));
    }
    const Links links = links_of(platform);
    const pb::Node& node = platform.nodes(0);
    REQUIRE(node.gpus_size() > 0);
    std::set<std::string> kinds;
    for (const auto& each : node.interfaces()) kinds.insert(pb::InterfaceKind_Name(each.kind()));
    CHECK(kinds.contains("LAN"));
    CHECK(kinds.contains("LOOPBACK"));
    CHECK(kinds.contains("BRIDGE"));
    for (LinkId id = 0; id < links.size(); ++id) {
      INFO(links[id].name);
      CHECK(links[id].capacity > 0);
    }
    for (const auto& gpu : node.gpus()) {
      CHECK(gpu.memory() > 0);
      CHECK(gpu.memory_bandwidth() > 0);
      CHECK(gpu.flops().bf16() + gpu.flops().fp16() > 0);
      CHECK(gpu.sms() > 0);
    }
    for (uint32_t nic = 0; nic < static_cast<uint32_t>(node.nics_size()); ++nic) {
      std::vector<LinkId> route;
      links.network(0, nic, 1, nic, 0, route);
      CHECK(route.size() >= 2);
      for (const LinkId id : route) CHECK_FALSE(links[id].down);
    }
  }
}

TEST_CASE("every machine that was asked for is there", "[platforms][catalogue]") {
  std::set<std::string> ids;
  for (const Entry& entry : value(shipped_catalogue().list())) ids.insert(entry.id);
  for (const char* id :
       {"dgx1-v100", "dgx2",        "dgx-a100",   "dgx-h100",   "hgx-h100",    "dgx-h200",
        "dgx-b200",  "gb200-nvl72", "gh200-quad", "aws-p3",     "aws-p4d",     "aws-p4de",
        "aws-p5",    "aws-p5en",    "aws-g5",     "azure-ndv2", "azure-ndv4",  "azure-ndv5",
        "gcp-a2",    "gcp-a3",      "oci-gpu4",   "oci-h100",   "a100-pcie-8", "hgx-h800",
        "a40-8",     "dgx-spark",   "rtx3090-8",  "rtx4090-8",  "mi250x-8",    "mi300x-8"}) {
    INFO(id);
    CHECK(ids.contains(id));
  }
}

TEST_CASE("a GPU has the memory that its driver reports", "[platforms][catalogue]") {
  constexpr double kMiB = 1 << 20;
  const PlatformCatalogue catalogue = shipped_catalogue();
  const std::vector<std::pair<const char*, double>> devices = {
      {"a100-sxm4-40gb", 40960 * kMiB}, {"a100-sxm4-80gb", 81920 * kMiB},
      {"h100-sxm5", 81559 * kMiB},      {"h200-sxm", 143771 * kMiB},
      {"b200-sxm", 182630 * kMiB},      {"mi300x", 206141652992.0},
      {"a10g", 23028 * kMiB},           {"a40", 46068 * kMiB}};
  for (const auto& [id, reported] : devices) {
    INFO(id);
    CHECK(static_cast<double>(value(catalogue.gpu(id)).memory()) == Approx(reported).epsilon(.01));
  }
}

TEST_CASE("every figure of a GPU has a source", "[platforms][catalogue]") {
  const PlatformCatalogue catalogue = shipped_catalogue();
  for (const std::string& id : value(catalogue.gpus())) {
    const pb::Gpu gpu = value(catalogue.gpu(id));
    std::string told;
    for (const auto& source : gpu.sources()) {
      CHECK(source.url().starts_with("https://"));
      told += source.figure() + "; ";
    }
    INFO(id << ": " << told);
    const auto named = [&](const char* figure) { return told.find(figure) != std::string::npos; };
    CHECK(named("FLOPS"));
    CHECK(named("memory size"));
    CHECK((named("memory size and bandwidth") || named("memory bandwidth")));
    CHECK(named("SMs"));
    CHECK(named("clock"));
    if (gpu.compute_capability() > 0) CHECK(named("compute capability"));
    if (gpu.has_nvlink()) CHECK(named("NVLink"));
    if (gpu.has_pcie()) CHECK(named("PCIe"));
    if (gpu.c2c() > 0) CHECK(named("C2C"));
  }
}

TEST_CASE("every kind of figure of a machine has a source or is told to be assumed",
          "[platforms][catalogue]") {
  const PlatformCatalogue catalogue = shipped_catalogue();
  for (const Entry& entry : value(catalogue.list())) {
    const pb::Platform written = value(catalogue.platform(entry.id));
    std::string told;
    for (const auto& source : written.sources()) told += source.figure() + "; ";
    for (const auto& text : written.assumptions()) told += text + "; ";
    std::transform(told.begin(), told.end(), told.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    // Some word that stands for the figure.
    const auto covers = [&](const std::vector<const char*>& words) {
      return std::any_of(words.begin(), words.end(),
                         [&](const char* word) { return told.find(word) != std::string::npos; });
    };
    INFO(entry.id << ": " << told);
    const pb::Node& node = written.nodes(0);
    CHECK(covers({"processor", "cpu", "server", "node:"}));
    CHECK(covers({"memory", "server", "node:"}));
    CHECK(covers({"storage"}));
    CHECK(covers({"lan", "nic", "network", "eth"}));
    CHECK(covers({"switch", "fabric", "leaf", "dragonfly"}));
    if (!node.nics().empty()) {
      CHECK(covers(
          {"nic", "adapter", "efa", "infiniband", "network", "connectx", "slingshot", "server"}));
    }
    if (node.numa_size() > 1) CHECK(covers({"socket", "upi", "joined", "interconnect"}));
    if (node.nvswitch().count() || !node.nvlinks().empty()) {
      CHECK(covers({"nvlink", "nvswitch", "gpus", "board", "joined", "server"}));
    }
  }
}

TEST_CASE("known machines have the figures of their data sheets", "[platforms][catalogue]") {
  const PlatformCatalogue catalogue = shipped_catalogue();
  pb::Platform dgx = value(catalogue.platform("dgx-a100"));
  REQUIRE(expand(dgx, "dgx-a100"));
  const Links links = links_of(dgx);
  CHECK(links[links.find("node0/gpu7/nvlink-out")].capacity == Approx(300e9));
  CHECK(links[links.find("node0/mlx5_7/tx")].capacity == Approx(25e9));
  CHECK(dgx.nodes(0).gpus(0).flops().bf16() == Approx(312e12));
  CHECK(links.distance(GpuRef{0, 5}, 5u) == Links::Distance::kPix);
  CHECK(links.distance(GpuRef{0, 5}, 0u) == Links::Distance::kSys);

  pb::Platform cube = value(catalogue.platform("dgx1-v100"));
  REQUIRE(expand(cube, "dgx1-v100"));
  const Links mesh = links_of(cube);
  std::vector<LinkId> route;
  CHECK(mesh.nvlink({0, 0}, {0, 4}, route));
  CHECK(mesh[route[0]].capacity == Approx(50e9));
  CHECK_FALSE(mesh.nvlink({0, 0}, {0, 7}, route));

  pb::Platform rack = value(catalogue.platform("gb200-nvl72"));
  REQUIRE(expand(rack, "gb200-nvl72"));
  CHECK(rack.nodes_size() == 18);
  route.clear();
  CHECK(links_of(rack).nvlink({0, 0}, {17, 3}, route));
}

TEST_CASE("cloud machines have the cores, LAN and PCIe links that their descriptions tell",
          "[platforms][catalogue]") {
  struct Told {
    const char* id;
    uint32_t cores;          // of the machine
    double lan;              // bytes per second
    uint32_t generation;     // PCIe of the first switch
    uint32_t adapter_lanes;  // PCIe of an adapter
  };
  const PlatformCatalogue catalogue = shipped_catalogue();
  for (const Told& told : {Told{"azure-ndv4", 96, 3e9, 4, 16}, Told{"azure-ndv5", 96, 10e9, 5, 16},
                           Told{"aws-p5", 96, 12.5e9, 4, 8}}) {
    INFO(told.id);
    pb::Platform platform = value(catalogue.platform(told.id));
    REQUIRE(expand(platform, told.id));
    const pb::Node& node = platform.nodes(0);
    uint32_t cores = 0;
    for (const auto& numa : node.numa()) cores += numa.cores();
    CHECK(cores == told.cores);
    CHECK(node.interfaces(1).bandwidth() == Approx(told.lan));
    CHECK(node.switches(0).pcie().generation() == told.generation);
    CHECK(node.nics(0).pcie().width() == told.adapter_lanes);
  }
}

TEST_CASE("a cluster of 512 H100 is written in a few lines", "[platforms][catalogue]") {
  pb::Platform platform;
  const auto read = read_document(R"(
like: dgx-h100
name: my cluster
scale: 64
fabric:
  kind: rail-optimised
  nodes_per_leaf: 16
  spines: 8
  oversubscription: 2
)",
                                  "cluster.yaml", platform, shipped_catalogue().resolver());
  INFO((read ? std::string() : read.error().message()));
  REQUIRE(read);
  REQUIRE(expand(platform, "cluster.yaml"));
  CHECK(platform.name() == "my cluster");
  REQUIRE(platform.nodes_size() == 64);
  CHECK(platform.nodes(63).gpus_size() == 8);
  CHECK(platform.nodes(63).interfaces(1).addresses(0) == "10.0.0.64/16");
  const Links links = links_of(platform);
  CHECK(links[links.find("leaf0-up")].capacity == Approx(16 * 50e9 / 2));
  std::vector<LinkId> route;
  links.network(0, 3, 63, 3, 0, route);
  CHECK(names(links, route) ==
        Names{"node0/mlx5_3/tx", "leaf3-up", "leaf27-down", "node63/mlx5_3/rx"});
}

TEST_CASE("nodes of different machines are mixed by like", "[platforms][catalogue]") {
  pb::Platform platform;
  REQUIRE(read_document(
      "nodes: [{like: dgx-a100, count: 2, name: 'a{i}'}, {like: dgx-h100, name: head}]",
      "mixed.yaml", platform, shipped_catalogue().resolver()));
  REQUIRE(expand(platform, "mixed.yaml"));
  REQUIRE(platform.nodes_size() == 3);
  CHECK(platform.nodes(1).name() == "a1");
  CHECK(platform.nodes(2).gpus(0).compute_capability() == 90);
}

TEST_CASE("an unknown id is answered with the nearest one", "[platforms][catalogue]") {
  const auto missing = shipped_catalogue().platform("dgx-h10");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == Code::kMissingInput);
  CHECK(missing.error().fix.find("dgx-h100") != std::string::npos);
  for (const char* id : {"../catalogue/dgx-h100", "gpus/h100-sxm5", "", "/etc/passwd"}) {
    CHECK_FALSE(shipped_catalogue().platform(id));
  }
  CHECK_FALSE(shipped_catalogue().gpu("h101"));
}

TEST_CASE("entries that are like one another in a circle are refused", "[platforms][catalogue]") {
  const Folder folder;
  folder.write("a.yaml", "like: b");
  folder.write("b.yaml", "like: a");
  const PlatformCatalogue catalogue(folder.path());
  const auto circle = catalogue.platform("a");
  REQUIRE_FALSE(circle);
  CHECK(circle.error().code == Code::kBadInput);
}

TEST_CASE("a folder that is not there is an error of its own", "[platforms][catalogue]") {
  const PlatformCatalogue catalogue("/nonexistent/catalogue");
  REQUIRE_FALSE(catalogue.list());
  CHECK(catalogue.list().error().code == Code::kMissingInput);
}

}  // namespace rehearse::platforms::catalogue_test
