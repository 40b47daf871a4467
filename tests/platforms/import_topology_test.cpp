// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/platforms/import_for_tests.hpp"

namespace rehearse::import_topology_test {
using namespace rehearse;
using namespace rehearse::platforms;
using namespace rehearse::platforms::testing;

namespace {

Result<ImportedPlatform> import(const std::string& text) {
  return import_nccl_topology({"topo.xml", text}, machines(), {});
}

Error refused(const std::string& text) {
  const auto imported = import(text);
  REQUIRE_FALSE(imported);
  CHECK(imported.error().code == Code::kBadInput);
  CHECK_FALSE(imported.error().fix.empty());
  return imported.error();
}

std::string cpu(const std::string& inside) {
  return "<system version=\"1\">\n<cpu numaid=\"0\">\n" + inside + "\n</cpu>\n</system>\n";
}

const char kGpu[] =
    "<pci busid=\"0000:0f:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x20b2\" "
    "link_speed=\"16 GT/s\" link_width=\"16\"><gpu dev=\"0\" sm=\"80\" rank=\"0\" "
    "gdr=\"1\"/></pci>";

}  // namespace

TEST_CASE("an NCCL topology becomes a node with the same PCIe tree", "[platforms][import]") {
  const auto imported =
      import_nccl_topology(corpus("nccl_topology/two-sockets.xml"), machines(), {});
  REQUIRE(imported);
  const pb::Platform platform = whole(*imported);
  REQUIRE(platform.nodes_size() == 1);
  const pb::Node& node = platform.nodes(0);
  REQUIRE(node.gpus_size() == 2);
  CHECK(node.gpus(0).model() == "NVIDIA H100 80GB HBM3");
  CHECK(node.gpus(0).bus_id() == "0000:0f:00.0");
  CHECK(node.gpus(0).nvlink().links() == 18);
  CHECK(node.nvswitch().count() == 2);
  CHECK(node.nvswitch().sharp());
  REQUIRE(node.nics_size() == 2);
  CHECK(node.nics(0).name() == "mlx5_0");
  CHECK(node.nics(0).kind() == pb::INFINIBAND);
  CHECK(node.nics(0).bandwidth() == 50e9);
  CHECK(node.nics(0).gpudirect());
  CHECK(node.numa(1).model_id() == 143);
  CHECK(node.switches(0).device() == "1000:c030:1000:0072");
  const auto links = Links::build(platform);
  CHECK(links->distance(GpuRef{0, 0}, 0u) == Links::Distance::kPix);
  CHECK(links->distance(GpuRef{0, 0}, 1u) == Links::Distance::kSys);
  CHECK(imported->findings.count("assumed") > 0);
}

TEST_CASE("ports of one adapter share its PCIe link", "[platforms][import]") {
  const auto imported =
      import(cpu(std::string(kGpu) + "<pci busid=\"0000:0c:00.0\" class=\"0x020000\" "
                                     "vendor=\"0x15b3\" device=\"0x1021\" link_speed=\"16 GT/s\" "
                                     "link_width=\"16\"><nic>"
                                     "<net name=\"a\" dev=\"0\" speed=\"100000\" port=\"1\"/>"
                                     "<net name=\"b\" dev=\"1\" speed=\"100000\" port=\"2\"/>"
                                     "</nic></pci>"));
  REQUIRE(imported);
  const pb::Platform platform = whole(*imported);
  const auto links = Links::build(platform);
  std::vector<LinkId> a, b;
  links->gpu_to_nic({0, 0}, 0, true, a);
  links->gpu_to_nic({0, 0}, 1, true, b);
  CHECK(a == b);
  CHECK(links->find("node0/a/pcie-up") != kNoLink);
  CHECK(links->find("node0/b/pcie-up") == kNoLink);
}

TEST_CASE("a GPU to which no path leads is refused with its place", "[platforms][import]") {
  const Error outside = refused("<system version=\"1\">\n  <cpu numaid=\"0\"/>\n  " +
                                std::string(kGpu) + "\n</system>");
  CHECK(outside.where == "topo.xml:3:4");
  CHECK(outside.what.find("no path leads to it") != std::string::npos);
  const Error bare = refused(cpu("  <gpu dev=\"0\" sm=\"80\"/>"));
  CHECK(bare.where == "topo.xml:3:4");
}

TEST_CASE("two NICs with one name are refused with both places", "[platforms][import]") {
  const auto nic = [](const char* bus, int dev) {
    return "\n<pci busid=\"" + std::string(bus) +
           "\" class=\"0x020700\" vendor=\"0x15b3\" device=\"0x1021\"><nic><net name=\"mlx5_0\" "
           "dev=\"" +
           std::to_string(dev) + "\" speed=\"100000\" port=\"1\"/></nic></pci>";
  };
  const Error error = refused(cpu(kGpu + nic("0000:0c:00.0", 0) + nic("0000:0d:00.0", 1)));
  CHECK(error.where.starts_with("topo.xml:5:"));
  CHECK(error.what.find("mlx5_0") != std::string::npos);
  CHECK(error.fix.find("topo.xml:4:") != std::string::npos);
}

TEST_CASE("a PCI device above itself is refused as a cycle", "[platforms][import]") {
  const Error error = refused(
      cpu("<pci busid=\"0000:0a:00.0\" class=\"0x060400\">\n<pci busid=\"0000:0b:00.0\" "
          "class=\"0x060400\">\n<pci busid=\"0000:0a:00.0\" class=\"0x060400\"/></pci></pci>" +
          std::string(kGpu)));
  CHECK(error.where == "topo.xml:5:2");
  CHECK(error.what == "PCI device 0000:0a:00.0 is above itself");
  CHECK(error.fix.find("topo.xml:3:2") != std::string::npos);
}

TEST_CASE("two GPUs with one number are refused", "[platforms][import]") {
  std::string other = kGpu;
  other.replace(other.find("0f:00"), 5, "1f:00");
  CHECK(refused(cpu(kGpu + ("\n" + other))).what == "two GPUs have the device number 0");
}

TEST_CASE("text that is no XML is refused with line and column", "[platforms][import]") {
  const Error error = refused("<system>\n<cpu numaid=\"0\">\n</pci></system>");
  CHECK(error.where.starts_with("topo.xml:3:"));
  CHECK(refused(cpu("")).what == "the topology has no GPU");
  CHECK(refused("<system version=\"1\"/>").what == "the topology has no <cpu>");
}

TEST_CASE("a device that NCCL lists under several processors is one interface",
          "[platforms][import]") {
  const std::string nic = "<nic><net name=\"eth7\" dev=\"3\" speed=\"10000\" port=\"0\"/></nic>";
  const auto imported = import("<system version=\"1\"><cpu numaid=\"0\">" + std::string(kGpu) +
                               nic + "</cpu><cpu numaid=\"1\">" + nic + "</cpu></system>");
  REQUIRE(imported);
  CHECK(imported->findings.count("repeated-net") == 1);
  CHECK(imported->platform.nodes(0).interfaces_size() == 1);
}

TEST_CASE("a GPU under another name is matched by its chip and memory, and said so",
          "[platforms][import]") {
  Seen seen;
  seen.gpu_model = "NVIDIA A100-PG509-200";
  seen.gpu_memory = int64_t{40} << 30;
  seen.gpus = 8;
  const auto imported = import_seen(seen, 2, "trace.json", machines());
  REQUIRE(imported);
  const pb::Platform platform = whole(*imported);
  CHECK(platform.nodes_size() == 2);
  CHECK(platform.nodes(0).gpus(0).model() == "NVIDIA A100-SXM4-40GB");
  CHECK(std::any_of(
      platform.assumptions().begin(), platform.assumptions().end(),
      [](const std::string& text) { return text.find("A100-PG509-200") != std::string::npos; }));
  seen.gpu_model = "Some Accelerator 9";
  CHECK_FALSE(import_seen(seen, 1, "trace.json", machines()));
}

TEST_CASE("cut and flipped topologies are answered, never believed blindly",
          "[platforms][import]") {
  survives_damage(corpus("nccl_topology/two-sockets.xml").text, 60, import);
}

}  // namespace rehearse::import_topology_test
