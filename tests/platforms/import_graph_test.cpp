// SPDX-License-Identifier: Apache-2.0
#include "tests/platforms/import_for_tests.hpp"

namespace rehearse::import_graph_test {
using namespace rehearse;
using namespace rehearse::platforms;
using namespace rehearse::platforms::testing;

namespace {

Result<ImportedPlatform> import(const std::string& text,
                                const std::optional<pb::Platform>& into = std::nullopt) {
  return import_nccl_graph({"graph.xml", text}, into, machines());
}

pb::Platform two_sockets() {
  auto imported = import_nccl_topology(corpus("nccl_topology/two-sockets.xml"), machines(), {});
  REQUIRE(imported);
  return imported->platform;
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), with);
}

}  // namespace

TEST_CASE("a graph stands on the node of its topology", "[platforms][import]") {
  const auto imported = import(corpus("nccl_graph/two-gpus.xml").text, two_sockets());
  REQUIRE(imported);
  const pb::Platform platform = whole(*imported);
  REQUIRE(platform.nodes(0).nccl_graphs_size() == 2);
  const pb::NcclGraph& ring = platform.nodes(0).nccl_graphs(0);
  CHECK(ring.pattern() == 4);
  CHECK(ring.intra() == 40e9);
  CHECK(ring.intra_type() == "NVL");
  REQUIRE(ring.channels_size() == 1);
  CHECK(ring.channels(0).gpus(1) == 1);
  CHECK(ring.channels(0).nics(1) == "mlx5_1");
}

TEST_CASE("a graph alone stands on the best machine of the catalogue", "[platforms][import]") {
  const auto imported = import(corpus("nccl_graph/two-gpus.xml").text);
  REQUIRE(imported);
  CHECK(whole(*imported).nodes(0).gpus_size() >= 2);
  CHECK(imported->findings.count("assumed") > 0);
  // Several of them have names and addresses of their own.
  ImportedPlatform more = *imported;
  more.platform.set_scale(3);
  const pb::Platform platform = whole(more);
  REQUIRE(platform.nodes_size() == 3);
  CHECK(platform.nodes(1).name() == "node1");
  for (int i = 0; i < platform.nodes(0).interfaces_size(); ++i) {
    const pb::Interface& own = platform.nodes(0).interfaces(i);
    if (own.kind() == pb::LOOPBACK || own.kind() == pb::BRIDGE) continue;
    CHECK(own.addresses(0) != platform.nodes(2).interfaces(i).addresses(0));
  }
}

TEST_CASE("a graph with a GPU that does not exist is refused with its place",
          "[platforms][import]") {
  const auto text =
      replaced(corpus("nccl_graph/two-gpus.xml").text, "<gpu dev=\"1\"/>", "<gpu dev=\"5\"/>");
  const auto imported = import(text, two_sockets());
  REQUIRE_FALSE(imported);
  CHECK(imported.error().code == Code::kBadInput);
  CHECK(imported.error().what == "there is no GPU 5: the node has 2");
  CHECK(imported.error().where == "graph.xml:6:8");
  CHECK_FALSE(imported.error().fix.empty());
}

TEST_CASE("channels that repeat or miss GPUs are refused", "[platforms][import]") {
  const std::string good = corpus("nccl_graph/two-gpus.xml").text;
  const auto twice = import(replaced(good, "<gpu dev=\"1\"/>", "<gpu dev=\"0\"/>"), two_sockets());
  REQUIRE_FALSE(twice);
  CHECK(twice.error().what == "a channel visits GPU 0 twice");
  const auto type = import(replaced(good, "typeintra=\"NVL\"", "typeintra=\"XYZ\""), two_sockets());
  REQUIRE_FALSE(type);
  CHECK(type.error().where == "graph.xml:2:4");
}

TEST_CASE("cut and flipped graphs are answered", "[platforms][import]") {
  survives_damage(corpus("nccl_graph/two-gpus.xml").text, 40,
                  [](const std::string& text) { return import(text, two_sockets()); });
}

}  // namespace rehearse::import_graph_test
