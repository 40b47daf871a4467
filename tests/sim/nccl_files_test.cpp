// SPDX-License-Identifier: Apache-2.0
// NCCL_TOPO_FILE and NCCL_GRAPH_FILE: NCCL believes the file, the wires stay what they are.
#include <fmt/format.h>

#include "platforms/import/told.hpp"
#include "sim/nccl/explain.hpp"
#include "sim/nccl/graphs.hpp"
#include "sim/nccl/placement.hpp"
#include "tests/sim/testbeds.hpp"

namespace rehearse::nccl_files_test {
using namespace rehearse;
using namespace rehearse::sim;
using namespace rehearse::sim::testing;

namespace {

// Eight GPUs, `per_switch` below each switch, on two processors; without NVLinks.
std::string topology(int per_switch) {
  std::string out = "<system version=\"1\">\n";
  for (int numa = 0; numa < 2; ++numa) {
    out += fmt::format(
        "<cpu numaid=\"{}\" affinity=\"ff\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" "
        "modelid=\"85\">\n",
        numa);
    for (int g = numa * 4; g < numa * 4 + 4; ++g) {
      if (g % per_switch == 0) {
        out += fmt::format(
            "<pci busid=\"0000:{:02x}:00.0\" class=\"0x060400\" link_speed=\"16 GT/s\" "
            "link_width=\"16\">\n",
            0xa0 + g);
      }
      out += fmt::format(
          "<pci busid=\"0000:{:02x}:00.0\" class=\"0x030200\" vendor=\"0x10de\" "
          "device=\"0x20b2\" link_speed=\"16 GT/s\" link_width=\"16\"><gpu dev=\"{}\" "
          "sm=\"80\" rank=\"{}\" gdr=\"1\"/></pci>\n",
          0x20 + g, g, g);
      if (g % per_switch == per_switch - 1) out += "</pci>\n";
    }
    out += "</cpu>\n";
  }
  return out + "</system>\n";
}

pb::LaunchFile file_of(const std::string& path, const std::string& text) {
  pb::LaunchFile file;
  file.set_path(path);
  file.set_text(text);
  return file;
}

Result<std::unique_ptr<Testbed>> testbed(const std::string& machine,
                                         std::vector<RankSetting> settings,
                                         std::vector<pb::LaunchFile> files) {
  TestbedOptions options;
  options.nodes = 1;
  options.settings = std::move(settings);
  options.files = std::move(files);
  return Testbed::make(catalogue_platform(machine), options, "test");
}

std::string refusal(const std::string& text, const char* variable = "NCCL_TOPO_FILE") {
  const auto bed = testbed("dgx-a100", {{variable, "/topo.xml", {}}}, {file_of("/topo.xml", text)});
  REQUIRE(bed);
  const auto world = (*bed)->world();
  return world ? "" : world.error().where + ": " + world.error().what;
}

}  // namespace

TEST_CASE("NCCL_CONF_FILE and /etc/nccl.conf set what the environment does not",
          "[sim][variables]") {
  const auto algorithm = [](std::vector<RankSetting> settings, std::vector<pb::LaunchFile> files) {
    const auto bed = testbed("dgx-a100", std::move(settings), std::move(files));
    REQUIRE(bed);
    const auto world = (*bed)->world();
    if (!world) FAIL(world.error().message());
    Question question;
    question.bytes = Bytes{1} << 28;
    const auto e = explain((*bed)->context(), *world, question);
    REQUIRE(e);
    return e->chosen;
  };
  const std::string tree = "# tuned\n\n NCCL_ALGO=Tree\nno line\n";
  CHECK(algorithm({}, {}) == "RING/SIMPLE");
  CHECK(algorithm({}, {file_of("/etc/nccl.conf", tree)}).starts_with("TREE"));
  CHECK(algorithm({}, {file_of("/own.conf", tree)}) == "RING/SIMPLE");
  CHECK(algorithm({{"NCCL_CONF_FILE", "/own.conf", {}}}, {file_of("/own.conf", tree)})
            .starts_with("TREE"));
  CHECK(algorithm({{"NCCL_ALGO", "Ring", {}}}, {file_of("/etc/nccl.conf", tree)}) == "RING/SIMPLE");
  CHECK(algorithm({{"NCCL_CONF_FILE", "/own.conf", {}}},
                  {file_of("/own.conf", "NCCL_ALGO=Ring\n"), file_of("/etc/nccl.conf", tree)}) ==
        "RING/SIMPLE");
  // One that nobody told is a finding.
  const auto bed = testbed("dgx-a100", {{"NCCL_CONF_FILE", "/own.conf", {}}}, {});
  REQUIRE(bed);
  CHECK((*bed)->world()->findings().count("nccl-setting") == 1);
}

TEST_CASE("a topology file without NVLinks keeps NCCL from them", "[sim][variables]") {
  const auto transport = [](std::vector<RankSetting> settings, const std::string& text) {
    const auto bed = testbed("dgx-a100", std::move(settings), {file_of("/topo.xml", text)});
    REQUIRE(bed);
    const auto world = (*bed)->world();
    if (!world) FAIL(world.error().message());
    return world->transport();
  };
  // A file that no variable names changes nothing.
  CHECK(transport({}, topology(4)) == "P2P/NVL");
  // Every GPU still has neighbours below its switch.
  CHECK(transport({{"NCCL_TOPO_FILE", "/topo.xml", {}}}, topology(4)) == "P2P/PCIe");
  // Where NVIDIA's daemon puts its file NCCL looks by itself.
  const auto bed = testbed("dgx-a100", {},
                           {file_of("/var/run/nvidia-topologyd/virtualTopology.xml", topology(4))});
  REQUIRE(bed);
  const auto world = (*bed)->world();
  REQUIRE(world);
  CHECK(world->transport() == "P2P/PCIe");
  CHECK(world->offered() == "P2P/NVL");
}

TEST_CASE("a file that is not given, or is of another machine, is a finding", "[sim][variables]") {
  const auto findings = [](std::vector<pb::LaunchFile> files) {
    const auto bed = testbed("dgx-a100", {{"NCCL_TOPO_FILE", "/topo.xml", {}}}, std::move(files));
    REQUIRE(bed);
    const auto world = (*bed)->world();
    REQUIRE(world);
    CHECK(world->transport() == "P2P/NVL");
    std::string out;
    for (const Finding& each : world->findings().rows()) {
      out += each.id + ": " + each.first + ", " + each.advice + "\n";
    }
    return out;
  };
  CHECK_THAT(findings({}), Catch::Contains("not one of launch.files"));
  std::string four = topology(4);
  four.erase(four.find("<cpu numaid=\"1\""));
  CHECK_THAT(findings({file_of("/topo.xml", four + "</system>")}),
             Catch::Contains("does not have the GPUs of the node"));
}

TEST_CASE("GPUs that a topology file does not know are found as they are", "[sim][variables]") {
  pb::Platform platform = catalogue_platform("dgx-a100");
  REQUIRE(platforms::expand(platform, "dgx-a100"));
  pb::Node node = platform.nodes(0);
  for (int g = 0; g < 8; ++g) {
    node.mutable_gpus(g)->set_bus_id(fmt::format("0000:{:02x}:00.0", 0x20 + g));
  }
  Findings findings;
  std::string four = topology(4);
  four.erase(four.find("<cpu numaid=\"1\""));
  const auto told = platforms::told_topology(node, {"topo.xml", four + "</system>"}, findings);
  REQUIRE(told);
  CHECK(findings.count("nccl-file") == 1);
  CHECK_THAT(findings.rows().front().advice, Catch::Contains("4 of the 8 GPUs"));
  // What the file knows has no NVLinks in it; the others keep theirs, and their switches.
  CHECK(told->gpus(0).nvlink().links() == 0);
  CHECK(told->gpus(7).nvlink().links() == node.gpus(7).nvlink().links());
  CHECK(told->nvswitch().count() == node.nvswitch().count());
  CHECK(told->numa_size() == 2);
  CHECK(told->gpus(7).pcie().parent() == "found-" + node.gpus(7).pcie().parent());
  // A file of a larger machine loses what is not there.
  pb::Node half = node;
  half.mutable_gpus()->DeleteSubrange(4, 4);
  Findings none;
  const auto cut = platforms::told_topology(half, {"topo.xml", topology(4)}, none);
  REQUIRE(cut);
  CHECK(cut->gpus_size() == 4);
  CHECK(cut->gpus(0).nvlink().links() == 0);
  CHECK(none.count("nccl-file") == 0);
}

TEST_CASE("files that NCCL cannot read are refused with their place", "[sim][variables]") {
  CHECK_THAT(refusal("<system version=\"1\"><cpu"), Catch::Contains("/topo.xml:1:"));
  CHECK_THAT(refusal("<graphs/>"), Catch::Contains("not <system>"));
  CHECK_THAT(refusal("<system/>", "NCCL_GRAPH_FILE"), Catch::Contains("not <graphs>"));
  CHECK_THAT(refusal("<graphs version=\"1\"><graph id=\"0\" pattern=\"4\" crossnic=\"0\" "
                     "nchannels=\"1\" speedintra=\"20\" speedinter=\"20\" latencyinter=\"0\" "
                     "typeintra=\"NVL\" typeinter=\"PIX\" samechannels=\"1\"><channel><gpu "
                     "dev=\"9\"/></channel></graph></graphs>",
                     "NCCL_GRAPH_FILE"),
             Catch::Contains("there is no GPU 9"));
}

TEST_CASE("a graph file stands in for the search", "[sim][variables]") {
  std::string channels;
  for (int g = 0; g < 8; ++g) channels += fmt::format("<gpu dev=\"{}\"/>", (g * 3) % 8);
  const std::string graph =
      "<graphs version=\"1\"><graph id=\"0\" pattern=\"4\" crossnic=\"0\" nchannels=\"2\" "
      "speedintra=\"20\" speedinter=\"20\" latencyinter=\"0\" typeintra=\"NVL\" typeinter=\"PIX\" "
      "samechannels=\"1\"><channel>" +
      channels + "</channel><channel>" + channels + "</channel></graph></graphs>";
  const auto rings = [&](std::vector<RankSetting> settings) {
    const auto bed = testbed("dgx-a100", std::move(settings), {file_of("/graph.xml", graph)});
    REQUIRE(bed);
    const auto world = (*bed)->world();
    if (!world) FAIL(world.error().message());
    return world->graphs().rings;
  };
  const auto searched = rings({}), told = rings({{"NCCL_GRAPH_FILE", "/graph.xml", {}}});
  CHECK(searched.size() > 2);
  REQUIRE(told.size() == 2);
  CHECK(told[0][0].members == std::vector<uint32_t>{0, 3, 6, 1, 4, 7, 2, 5});
}

TEST_CASE("small packets of RoCE cost five percent", "[sim][variables]") {
  const auto time = [](uint32_t mtu) {
    pb::Platform platform = catalogue_platform("oci-h100");
    for (pb::Node& node : *platform.mutable_nodes()) {
      for (pb::Nic& nic : *node.mutable_nics()) nic.set_mtu(mtu);
    }
    TestbedOptions options;
    options.nodes = 2;
    // One port for all, so that it bounds the call.
    options.settings = {
        {"NCCL_ALGO", "Ring", {}}, {"NCCL_PROTO", "Simple", {}}, {"NCCL_IB_HCA", "=mlx5_0", {}}};
    Question question;
    question.bytes = Bytes{1} << 30;
    return static_cast<double>(bed_of(std::move(platform), options).explained(question).time);
  };
  // fault-catalogue F72: about 5 % of the bandwidth for 1500 (1024 of data) against 4096.
  CHECK(time(1024) / time(4096) == Approx(1.056).margin(0.008));
  CHECK(time(8192) == time(4096));
}

}  // namespace rehearse::nccl_files_test
