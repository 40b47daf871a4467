// SPDX-License-Identifier: Apache-2.0
#include "cli/platform_drawing.hpp"

#include <catch2/catch.hpp>

using namespace rehearse;
using Catch::Matchers::Contains;

namespace {

pb::Platform platform_of(int nodes) {
  pb::Platform platform;
  platform.set_name("a <b> & c");
  for (int n = 0; n < nodes; ++n) {
    pb::Node* node = platform.add_nodes();
    node->set_name("node" + std::to_string(n));
    node->add_gpus()->set_model("A100");
    pb::Nic* nic = node->add_nics();
    nic->set_name("mlx5_0");
    nic->set_down(n == 1);
  }
  return platform;
}

}  // namespace

TEST_CASE("a platform is drawn with its nodes, GPUs and NICs", "[cli]") {
  const std::string svg = cli::draw(platform_of(2));
  CHECK_THAT(svg, Contains("a &lt;b&gt; &amp; c"));
  CHECK_THAT(svg, Contains(">node0 ") && Contains(">node1 ") && Contains(">gpu0<"));
  CHECK_THAT(svg, Contains("mlx5_0") && Contains(" down</title>"));
  CHECK_THAT(svg, !Contains("more nodes"));
}

TEST_CASE("a large platform is drawn by its first nodes and says so", "[cli]") {
  const std::string svg = cli::draw(platform_of(20));
  CHECK_THAT(svg, Contains("and 12 more nodes") && !Contains(">node8 "));
}

TEST_CASE("a platform without nodes can be drawn", "[cli]") {
  CHECK_THAT(cli::draw(pb::Platform()), Contains("</svg>"));
}
