// SPDX-License-Identifier: Apache-2.0
// Every modelled NCCL_* variable changes something, or the table says why it does not.
#include "sim/nccl/variables.hpp"

#include <fmt/format.h>

#include "sim/nccl/graphs.hpp"
#include "tests/sim/testbeds.hpp"

using namespace rehearse;
using namespace rehearse::sim;
using namespace rehearse::sim::testing;

namespace {

// A case in which a variable shows: machine, nodes, call, value, and what else is set.
struct Case {
  const char* name;
  const char* value;
  const char* machine = "dgx-h100";
  uint32_t nodes = 2;
  const char* collective = "all_reduce";
  Bytes bytes = Bytes{1} << 26;
  std::vector<RankSetting> beside = {};
  uint32_t ranks = 0;
};

// All of an explanation that a variable can change, as text.
std::string picture(const Case& c, bool set) {
  std::vector<RankSetting> settings = c.beside;
  if (set) settings.push_back({c.name, c.value, {}});
  TestbedOptions options;
  options.nodes = c.nodes;
  options.ranks = c.ranks;
  options.settings = settings;
  auto made = Testbed::make(catalogue_platform(c.machine), options, "test");
  REQUIRE(made);
  const auto world = (*made)->world();
  if (!world) return "refused: " + world.error().what;
  Question question;
  question.collective = c.collective;
  question.bytes = c.bytes;
  const auto e = explain((*made)->context(), *world, question);
  if (!e) return "refused: " + e.error().what;
  std::string out = fmt::format("{} {} {} {} {} {} {}", e->chosen, e->channels, e->threads,
                                e->channels_offered, e->inside, e->between, e->time);
  out += fmt::format(" {} {}", e->chunks.chunk_bytes, e->chunks.loops);
  for (const auto& v : e->variants) out += fmt::format(" {}{}", v.latency_us, v.bandwidth);
  for (const auto& link : e->links) out += fmt::format(" {}={}", link.name, link.bytes);
  for (const auto& channel : e->graph) {
    for (const uint32_t rank : channel.ring) out += fmt::format(",{}", rank);
    for (const std::string& adapter : channel.adapters) out += adapter;
  }
  return out;
}

const std::vector<Case>& cases() {
  static const RankSetting kRing{"NCCL_ALGO", "Ring", {}};
  static const RankSetting kSockets{"NCCL_IB_DISABLE", "1", {}};
  static const std::vector<Case> all = {
      {"NCCL_ALGO", "Tree"},
      {"NCCL_PROTO", "LL"},
      {.name = "NCCL_BUFFSIZE", .value = "65536", .bytes = Bytes{1} << 30, .beside = {kRing}},
      {.name = "NCCL_LL_BUFFSIZE", .value = "65536", .beside = {kRing, {"NCCL_PROTO", "LL", {}}}},
      {.name = "NCCL_LL128_BUFFSIZE",
       .value = "131072",
       .beside = {kRing, {"NCCL_PROTO", "LL128", {}}}},
      {"NCCL_MIN_NCHANNELS", "32"},
      {"NCCL_MAX_NCHANNELS", "2"},
      {"NCCL_MIN_CTAS", "32"},
      {"NCCL_MAX_CTAS", "2"},
      {.name = "NCCL_NTHREADS", .value = "64", .beside = {kRing, {"NCCL_PROTO", "Simple", {}}}},
      {.name = "NCCL_LL128_NTHREADS",
       .value = "160",
       .beside = {kRing, {"NCCL_PROTO", "LL128", {}}}},
      {.name = "NCCL_THREAD_THRESHOLDS",
       .value = "64 64 4096 64 64 4096",
       .bytes = 1 << 22,
       .beside = {kRing, {"NCCL_PROTO", "Simple", {}}}},
      {.name = "NCCL_NVLS_ENABLE", .value = "0", .nodes = 1},
      {.name = "NCCL_NVLS_CHUNKSIZE",
       .value = "16384",
       .nodes = 1,
       .bytes = Bytes{1} << 30,
       .beside = {{"NCCL_ALGO", "NVLS", {}}}},
      {.name = "NCCL_NVLSTREE_MAX_CHUNKSIZE",
       .value = "16384",
       .bytes = Bytes{1} << 30,
       .beside = {{"NCCL_ALGO", "NVLSTree", {}}}},
      {.name = "NCCL_PAT_ENABLE", .value = "0", .nodes = 4, .collective = "all_gather", .ranks = 4},
      {.name = "NCCL_NET_OVERHEAD", .value = "50000", .beside = {kRing}},
      {.name = "NCCL_MIN_P2P_NCHANNELS", .value = "64", .nodes = 1, .collective = "alltoall"},
      {.name = "NCCL_MAX_P2P_NCHANNELS", .value = "2", .collective = "alltoall"},
      {.name = "NCCL_NCHANNELS_PER_NET_PEER", .value = "8", .collective = "sendrecv"},
      {.name = "NCCL_P2P_NET_CHUNKSIZE", .value = "16384", .collective = "sendrecv"},
      {.name = "NCCL_P2P_PCI_CHUNKSIZE",
       .value = "16384",
       .machine = "rtx4090-8",
       .nodes = 1,
       .collective = "sendrecv"},
      {.name = "NCCL_P2P_NVL_CHUNKSIZE", .value = "16384", .nodes = 1, .collective = "sendrecv"},
      {.name = "NCCL_CHUNK_SIZE", .value = "8192", .collective = "sendrecv"},
      {.name = "NCCL_P2P_LL_THRESHOLD",
       .value = "0",
       .nodes = 1,
       .collective = "sendrecv",
       .bytes = 4096},
      {.name = "NCCL_ALLOC_P2P_NET_LL_BUFFERS",
       .value = "1",
       .collective = "sendrecv",
       .bytes = 4096},
      {.name = "NCCL_P2P_DISABLE", .value = "1", .nodes = 1},
      {.name = "NCCL_P2P_LEVEL", .value = "LOC", .nodes = 1},
      {"NCCL_NET", "Socket"},
      {"NCCL_IB_DISABLE", "1"},
      {"NCCL_NET_GDR_LEVEL", "LOC"},
      {"NCCL_IB_HCA", "mlx5_0"},
      {.name = "NCCL_SOCKET_NTHREADS",
       .value = "2",
       .machine = "dgx-a100",
       .bytes = Bytes{1} << 28,
       .beside = {kSockets}},
      {.name = "NCCL_NSOCKS_PERTHREAD",
       .value = "2",
       .machine = "dgx-a100",
       .bytes = Bytes{1} << 28,
       .beside = {kSockets}},
      {.name = "NCCL_SOCKET_IFNAME", .value = "eth0", .beside = {kSockets}},
  };
  return all;
}

// Act on what this catalogue has no machine for, or in rooms other than this one.
const std::map<std::string_view, const char*> kElsewhere = {
    {"NCCL_LL128_C2C", "needs a Hopper machine whose adapters are reached by PXN or C2C only"},
    {"NCCL_CTA_POLICY", "needs registered buffers; nccl_choice_test shows it"},
    {"NCCL_COLLNET_ENABLE", "needs a CollNet plugin; nccl_tuning_test shows it"},
    {"NCCL_COLLNET_NODE_THRESHOLD", "needs a CollNet plugin"},
    {"NCCL_SHM_DISABLE", "topology settings"},
    {"NCCL_CROSS_NIC", "topology settings"},
    {"NCCL_PXN_DISABLE", "topology settings"},
    {"NCCL_PXN_C2C", "topology settings"},
    {"NCCL_P2P_PXN_LEVEL", "topology settings"},
    {"NCCL_NVB_DISABLE", "topology settings"},
    {"NCCL_NETDEVS_POLICY", "topology settings"},
    {"NCCL_NET_DISABLE_INTRA", "topology settings"},
    {"NCCL_NET_GDR_C2C", "topology settings"},
    {"NCCL_MNNVL_ENABLE", "topology settings"},
};

}  // namespace

TEST_CASE("every variable that acts on a collective changes something", "[sim][variables]") {
  for (const Case& c : cases()) {
    INFO(c.name << "=" << c.value);
    REQUIRE(find_variable(c.name) != nullptr);
    CHECK(picture(c, true) != picture(c, false));
  }
}

TEST_CASE("every variable of the table is shown, acts elsewhere, or says why it is idle",
          "[sim][variables]") {
  for (const Variable& variable : nccl_variables()) {
    INFO(variable.name);
    CHECK_FALSE(variable.note.empty());
    if (variable.acts == Acts::kNowhere || variable.acts == Acts::kBringUp) continue;
    const bool shown = std::any_of(cases().begin(), cases().end(),
                                   [&](const Case& c) { return c.name == variable.name; });
    CHECK((shown || kElsewhere.contains(variable.name)));
  }
}

TEST_CASE("a variable that differs between ranks is a finding", "[sim][variables]") {
  const Bed bed =
      bed_of("dgx-a100", 2, 0, {{"NCCL_ALGO", "Ring", {3}}, {"NCCL_IB_HCA", "mlx5", {9}}});
  const Findings& findings = bed.world->findings();
  CHECK(findings.count("nccl-environment-differs") == 2);
  const auto& rows = findings.rows();
  const auto row = std::find_if(rows.begin(), rows.end(), [](const Finding& f) {
    return f.id == "nccl-environment-differs";
  });
  CHECK_THAT(row->first, Catch::Contains("NCCL_ALGO") && Catch::Contains("3"));
  CHECK(row->severity == Severity::kWarning);
  CHECK(bed_of("dgx-a100", 2, 0, {{"NCCL_ALGO", "Ring", {}}})
            .world->findings()
            .count("nccl-environment-differs") == 0);
}

TEST_CASE("a variable that NCCL does not know is a finding with the nearest name",
          "[sim][variables]") {
  const Bed bed =
      bed_of("dgx-a100", 1, 0, {{"NCCL_ALGOS", "Ring", {}}, {"NCCL_DEBUG", "INFO", {}}});
  CHECK(bed.world->findings().count("nccl-variable-unknown") == 1);
  CHECK(bed.world->findings().count("nccl-variable-idle") == 1);
  CHECK_THAT(bed.world->findings().rows().front().advice, Catch::Contains("NCCL_ALGO"));
}
