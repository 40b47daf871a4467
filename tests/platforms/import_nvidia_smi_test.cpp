// SPDX-License-Identifier: Apache-2.0
#include "tests/platforms/import_for_tests.hpp"

namespace rehearse::import_nvidia_smi_test {
using namespace rehearse;
using namespace rehearse::platforms;
using namespace rehearse::platforms::testing;

namespace {

Result<ImportedPlatform> import(const std::string& text, const std::string& gpu = {}) {
  return import_nvidia_smi({"topo.txt", text}, machines(), {gpu});
}

}  // namespace

TEST_CASE("the table of nvidia-smi gives NVLinks, distances and NIC names", "[platforms][import]") {
  const auto imported = import(corpus("nvidia_smi/two-gpus.txt").text);
  REQUIRE(imported);
  const pb::Platform platform = whole(*imported);
  const pb::Node& node = platform.nodes(0);
  REQUIRE(node.gpus_size() == 2);
  CHECK(node.gpus(0).compute_capability() == 80);
  REQUIRE(node.nvlinks_size() == 1);
  CHECK(node.nvlinks(0).links() == 12);
  REQUIRE(node.nics_size() == 3);
  CHECK(node.nics(0).name() == "mlx5_0");
  CHECK(node.nics(2).kind() == pb::ROCE);
  const auto links = Links::build(platform);
  CHECK(links->distance(GpuRef{0, 0}, 0u) == Links::Distance::kPix);
  CHECK(links->distance(GpuRef{0, 1}, 1u) == Links::Distance::kPxb);
  CHECK(links->distance(GpuRef{0, 0}, 1u) == Links::Distance::kPhb);
}

TEST_CASE("a GPU that the user names is taken", "[platforms][import]") {
  const auto imported = import(corpus("nvidia_smi/two-gpus.txt").text, "a100-pcie-80gb");
  REQUIRE(imported);
  CHECK(whole(*imported).nodes(0).gpus(0).model() == "NVIDIA A100 80GB PCIe");
}

TEST_CASE("a table whose tabs became blanks is the same table", "[platforms][import]") {
  // As terminals print it, below other output, without the indentation of its first line.
  const std::string text =
      "$ nvidia-smi topo -m\n"
      "GPU0    GPU1    GPU2    GPU3    mlx5_0  mlx5_1  CPU Affinity    NUMA Affinity   GPU NUMA "
      "ID\n"
      "GPU0     X      NV12    NV12    NV12    NODE    SYS     0-31            0               "
      "N/A\n"
      "GPU1    NV12     X      NV12    NV12    NODE    SYS     0-31            0               "
      "N/A\n"
      "GPU2    NV12    NV12     X      NV12    SYS     PXB     32-63           1               "
      "N/A\n"
      "GPU3    NV12    NV12    NV12     X      SYS     PXB     32-63           1               "
      "N/A\n"
      "mlx5_0  NODE    NODE    SYS     SYS      X      SYS\n"
      "mlx5_1  SYS     SYS     PXB     PXB     SYS      X\n\n"
      "Legend:\n\n  X    = Self\n";
  CHECK(format_of(text) == ImportFormat::kNvidiaSmi);
  const auto imported = import(text);
  REQUIRE(imported);
  const pb::Platform platform = whole(*imported);
  const pb::Node& node = platform.nodes(0);
  REQUIRE(node.gpus_size() == 4);
  CHECK(node.gpus(0).compute_capability() == 80);
  REQUIRE(node.nics_size() == 2);
  CHECK(node.nics(1).name() == "mlx5_1");
  const auto links = Links::build(platform);
  CHECK(links->distance(GpuRef{0, 2}, 1u) == Links::Distance::kPxb);
  CHECK(links->distance(GpuRef{0, 0}, 1u) == Links::Distance::kSys);
}

TEST_CASE("eight links through switches are no V100", "[platforms][import]") {
  std::string text = "\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity\n";
  for (int a = 0; a < 4; ++a) {
    text += "GPU" + std::to_string(a);
    for (int b = 0; b < 4; ++b) text += a == b ? "\t X " : "\tNV8";
    text += "\t0-31\t0\n";
  }
  const auto imported = import(text);
  REQUIRE(imported);
  CHECK(whole(*imported).nodes(0).gpus(0).compute_capability() == 90);
}

TEST_CASE("GPUs without NVLink are no GPUs that NVLink joins", "[platforms][import]") {
  // As many GPUs and adapters as a node of GH200 has.
  const auto imported = import(
      "\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tNIC2\tNIC3\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
      "GPU0\t X \tNODE\tSYS\tSYS\tNODE\tNODE\tSYS\tSYS\t0-15\t0\t\tN/A\n"
      "GPU1\tNODE\t X \tSYS\tSYS\tNODE\tNODE\tSYS\tSYS\t0-15\t0\t\tN/A\n"
      "GPU2\tSYS\tSYS\t X \tNODE\tSYS\tSYS\tNODE\tNODE\t16-31\t1\t\tN/A\n"
      "GPU3\tSYS\tSYS\tNODE\t X \tSYS\tSYS\tNODE\tNODE\t16-31\t1\t\tN/A\n"
      "NIC0\tNODE\tNODE\tSYS\tSYS\t X \tPIX\tSYS\tSYS\n"
      "NIC1\tNODE\tNODE\tSYS\tSYS\tPIX\t X \tSYS\tSYS\n"
      "NIC2\tSYS\tSYS\tNODE\tNODE\tSYS\tSYS\t X \tPIX\n"
      "NIC3\tSYS\tSYS\tNODE\tNODE\tSYS\tSYS\tPIX\t X \n");
  REQUIRE(imported);
  const pb::Platform platform = whole(*imported);
  CHECK_FALSE(platform.nodes(0).gpus(0).has_nvlink());
  CHECK(platform.nodes(0).numa(0).arch() == "x86");
}

TEST_CASE("a GPU whose memory is a NUMA domain is joined to Grace", "[platforms][import]") {
  const std::string head = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n";
  const auto grace = import(head +
                            "GPU0\t X \tNV18\t0-71\t0,2-9\t\t2\n"
                            "GPU1\tNV18\t X \t0-71\t0,2-9\t\t10\n");
  REQUIRE(grace);
  CHECK(whole(*grace).nodes(0).gpus(0).c2c() > 0);
  CHECK(whole(*grace).nodes(0).numa(0).arch() == "arm");
  const auto other = import(head +
                            "GPU0\t X \tNV18\t0-71\t0\t\tN/A\n"
                            "GPU1\tNV18\t X \t0-71\t0\t\tN/A\n");
  REQUIRE(other);
  CHECK(whole(*other).nodes(0).gpus(0).c2c() == 0);
}

TEST_CASE("GPUs of a table without NUMA domains are told apart by their processors",
          "[platforms][import]") {
  const std::string rows[] = {"GPU0\t X \tNV1\tNV2\tSOC\tPIX\t", "GPU1\tNV1\t X \tSOC\tNV2\tPHB\t",
                              "GPU2\tNV2\tSOC\t X \tNV1\tSOC\t", "GPU3\tSOC\tNV2\tNV1\t X \tSOC\t"};
  std::string text = "\tGPU0\tGPU1\tGPU2\tGPU3\tmlx5_0\tCPU Affinity\n";
  for (int i = 0; i < 4; ++i) text += rows[i] + (i < 2 ? "0-19,40-59\n" : "20-39,60-79\n");
  text += "mlx5_0\tPIX\tPHB\tSOC\tSOC\t X \n";
  const auto imported = import(text);
  REQUIRE(imported);
  const pb::Platform platform = whole(*imported);
  CHECK(platform.nodes(0).numa_size() == 2);
  const auto links = Links::build(platform);
  CHECK(links->distance(GpuRef{0, 0}, 0u) == Links::Distance::kPix);
  CHECK(links->distance(GpuRef{0, 3}, 0u) == Links::Distance::kSys);
}

TEST_CASE("without processors and NVLinks the distances tell sockets apart",
          "[platforms][import]") {
  const auto imported =
      import("\tGPU0\tGPU1\tGPU2\nGPU0\t X \tPHB\tSYS\nGPU1\tPHB\t X \tSYS\nGPU2\tSYS\tSYS\t X \n");
  REQUIRE(imported);
  const pb::Platform platform = whole(*imported);
  CHECK(platform.nodes(0).numa_size() == 2);
  CHECK(platform.nodes(0).gpus(2).pcie().numa() == 1);
}

TEST_CASE("a table with a strange cell is refused with line and column", "[platforms][import]") {
  std::string text = corpus("nvidia_smi/two-gpus.txt").text;
  text.replace(text.find("PXB"), 3, "QQQ");
  const auto imported = import(text);
  REQUIRE_FALSE(imported);
  CHECK(imported.error().where.starts_with("topo.txt:3:"));
  CHECK_FALSE(imported.error().fix.empty());
}

TEST_CASE("cut and flipped tables are answered", "[platforms][import]") {
  survives_damage(corpus("nvidia_smi/two-gpus.txt").text, 60,
                  [](const std::string& text) { return import(text); });
}

}  // namespace rehearse::import_nvidia_smi_test
