// SPDX-License-Identifier: Apache-2.0
#include "platforms/model/draw.hpp"

#include "tests/platforms/platforms_for_tests.hpp"

namespace rehearse::platforms::draw_test {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("the tree shows the devices of a node below their switches", "[platforms][draw]") {
  const std::string text = draw_text(expanded(R"(name: "small" nodes {
    numa { cpu: "EPYC" cores: 64 memory_bandwidth: 200e9 }
    switches { name: "plx0" pcie { generation: 4 } }
    gpus { model: "A100" memory: 85899345920 pcie { generation: 4 parent: "plx0" } }
    nics { kind: INFINIBAND bandwidth: 25e9 gpudirect: true pcie { generation: 4 parent: "plx0" } } })"));
  CHECK(text ==
        "small: 1 node, 1 GPU, 1 NIC\n"
        "├─ node0\n"
        "│  └─ numa0  EPYC, 64 cores, memory 200 GB/s\n"
        "│     └─ plx0  PCIe 4 x16, 31.5 GB/s\n"
        "│        ├─ gpu0  A100, 80.0 GiB, PCIe 4 x16, 31.5 GB/s\n"
        "│        └─ mlx5_0  InfiniBand 25.0 GB/s, rail 0, GPUDirect\n"
        "└─ fabric  none\n");
}

TEST_CASE("nodes that look alike are shown once", "[platforms][draw]") {
  pb::Platform platform = expanded(kTwoSockets + "scale: 4");
  CHECK(alike_nodes(platform) == std::vector<std::vector<uint32_t>>{{0, 1, 2, 3}});
  CHECK(contains(draw_text(platform), "nodes 0-3 (4 alike"));
  CHECK(count(draw_text(platform), "gpu0") == 1);
  platform.mutable_nodes(2)->mutable_nics(1)->set_down(true);
  CHECK(alike_nodes(platform) == std::vector<std::vector<uint32_t>>{{0, 1, 3}, {2}});
  CHECK(contains(draw_text(platform), "down"));
}

TEST_CASE("direct NVLinks are listed per GPU", "[platforms][draw]") {
  const std::string text = draw_text(expanded(R"(nodes {
    gpus { count: 3 pcie { generation: 3 } nvlink { generation: 2 links: 6 } }
    nvlinks { a: 0 b: 1 links: 2 } nvlinks { a: 0 b: 2 } })"));
  CHECK(contains(text, "gpu0  to gpu1 x2 and gpu2 x1 (25.0 GB/s per link)"));
}

TEST_CASE("the drawing is one self-contained element with every device in it",
          "[platforms][draw]") {
  const std::string svg = draw_svg(expanded(kTwoSockets + R"(scale: 3 name: "a <b> & \"c\"")"));
  CHECK(svg.starts_with("<svg "));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(count(svg, "class=\"gpu\"") == 4);
  CHECK(count(svg, "class=\"nic\"") == 2);
  CHECK(count(svg, "class=\"bridge\"") == 2);
  CHECK(contains(svg, "a &lt;b&gt; &amp; &quot;c&quot;"));
  CHECK(contains(svg, "prefers-color-scheme:dark"));
  CHECK_FALSE(contains(svg, "href"));
  CHECK_FALSE(contains(svg, "<script"));
  CHECK(count(svg, "<rect") ==
        count(svg, "</rect>") + count(svg, "\"/>\n") - count(svg, "<path class=\"net\""));
}

TEST_CASE("labels fit their boxes and stand above the NVLinks that cross them",
          "[platforms][draw]") {
  const std::string svg = draw_svg(expanded(R"(name: "cube" nodes {
    numa { cpu: "EPYC" }
    gpus { count: 2 model: "NVIDIA A100-SXM4-80GB" nvlink { generation: 3 links: 12 } }
    nvlinks { a: 0 b: 1 links: 4 } })"));
  CHECK(svg.rfind("class=\"nv\"") < svg.find("numa0: EPYC"));
  const std::string label = "A100-SXM4-80GB";
  REQUIRE(contains(svg, label));
  const size_t cell = svg.find("class=\"gpu\"");
  const size_t width = svg.find("width=\"", cell) + 7;
  // Small letters take up to 6.4 of these units in common fonts.
  CHECK(std::stod(svg.substr(width)) >= 6 + 6.4 * static_cast<double>(label.size()));
}

TEST_CASE("NVSwitches are told with their number and what they join", "[platforms][draw]") {
  const std::string rack = draw_svg(expanded(R"(name: "rack" nodes {
    numa { cpu: "Grace" }
    gpus { count: 2 nvlink { generation: 5 links: 18 bandwidth: 5e10 } }
    nvswitch { count: 1 domain: "rack0" } })"));
  CHECK(contains(rack, "1 NVSwitch, 18 links and 900 GB/s per GPU, domain rack0"));
}

TEST_CASE("drawing twice gives the same bytes", "[platforms][draw]") {
  pb::Platform platform = expanded(kTwoSockets);
  for (const char* key : {"nccl", "cuda", "driver"})
    (*platform.mutable_nodes(0)->mutable_versions())[key] = "1";
  CHECK(draw_svg(platform) == draw_svg(platform));
  CHECK(draw_text(platform) == draw_text(platform));
}

}  // namespace rehearse::platforms::draw_test
