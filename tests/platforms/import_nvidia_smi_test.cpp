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
