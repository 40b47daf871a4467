// SPDX-License-Identifier: Apache-2.0
// Every modelled NCCL_* variable changes something, or the table says why it does not.
#include "sim/nccl/variables.hpp"

#include <fmt/format.h>

#include "base/document.hpp"
#include "sim/nccl/graphs.hpp"
#include "tests/sim/job16.hpp"
#include "tests/sim/testbeds.hpp"

namespace rehearse::variables_test {
using namespace rehearse;
using namespace rehearse::sim;
using namespace rehearse::sim::testing;

namespace {

// A case in which a variable shows: machine, nodes, call, value, and what else is set.
struct Case {
  const char* name;
  const char* value;
  const char* machine = "dgx-h100";  // catalogue id, or a platform document
  uint32_t nodes = 2;
  const char* collective = "all_reduce";
  Bytes bytes = Bytes{1} << 26;
  std::vector<RankSetting> beside = {};
  uint32_t ranks = 0;
};

// Fabrics that hash, spread and tell classes apart; no catalogue machine has them all.
constexpr const char* kHashes =
    "like: oci-h100\nfabric: {kind: leaf-spine, nodes_per_leaf: 1, spines: 8, ecmp: true}";
constexpr const char* kSpreads =
    "like: dgx-h100\nfabric: {kind: leaf-spine, nodes_per_leaf: 1, spines: 8, adaptive: true}";
constexpr const char* kClasses =
    "like: dgx-h100\nfabric: {kind: single-switch, classes: [{id: 3, share: 0.25}]}";
constexpr const char* kLossy =
    "like: oci-h100\nfabric: {kind: single-switch, classes: [{id: 0, lossy: true}]}";
constexpr const char* kReduces =
    "like: dgx-h100\nfabric: {kind: rail-optimised, nodes_per_leaf: 2, spines: 4, sharp: true}";
// Cards and adapters below one switch per socket: across sockets the network is faster.
constexpr const char* kFarSockets =
    "nodes: [{numa: [{vendor: amd, arch: x86}, {vendor: amd, arch: x86}],"
    " switches: [{name: plx0, pcie: {generation: 4, numa: 0}},"
    "            {name: plx1, pcie: {generation: 4, numa: 1}}],"
    " gpus: {like: a100-pcie-80gb, count: 4, pcie: {parent: 'plx{i/2}'}},"
    " nics: {count: 2, kind: infiniband, bandwidth: 200Gbps, gpudirect: true,"
    "        pcie: {generation: 4, parent: 'plx{i}'}},"
    " interfaces: {name: eth0, addresses: ['10.0.0.{i}/16']}}]\nfabric: {kind: single-switch}";
constexpr const char* kDmabuf =
    "nodes: [{like: dgx-h100, gpudirect_way: dmabuf}]\nfabric: {kind: single-switch}";

pb::Platform machine_of(const std::string& machine) {
  if (machine.find(':') == std::string::npos) return catalogue_platform(machine);
  const auto folder = shipped("platforms/catalogue");
  REQUIRE(folder);
  pb::Platform platform;
  const auto read =
      read_document(machine, "test", platform, platforms::PlatformCatalogue(*folder).resolver());
  INFO((read ? std::string() : read.error().message()));
  REQUIRE(read);
  return platform;
}

// All of an explanation that a variable can change, as text.
std::string picture(const Case& c, bool set) {
  std::vector<RankSetting> settings = c.beside;
  if (set) settings.push_back({c.name, c.value, {}});
  TestbedOptions options;
  options.nodes = c.nodes;
  options.ranks = c.ranks;
  options.settings = settings;
  auto made = Testbed::make(machine_of(c.machine), options, "test");
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
      {"NCCL_MIN_NRINGS", "32"},
      {"NCCL_MAX_NRINGS", "2"},
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
       .beside = {kSockets, {"NCCL_SOCKET_NTHREADS", "1", {}}}},
      {.name = "NCCL_SOCKET_IFNAME", .value = "eth0", .beside = {kSockets}},
      {.name = "NCCL_SOCKET_FAMILY", .value = "AF_INET6", .beside = {kSockets}},
      {.name = "NCCL_NVLS_NCHANNELS",
       .value = "4",
       .nodes = 1,
       .beside = {{"NCCL_ALGO", "NVLS", {}}}},
      {.name = "NCCL_LL128_C2C", .value = "0", .machine = "gh200-quad"},
      {.name = "NCCL_COLLNET_ENABLE", .value = "1", .machine = kReduces, .nodes = 4},
      {.name = "NCCL_COLLNET_NODE_THRESHOLD",
       .value = "8",
       .machine = kReduces,
       .nodes = 4,
       .beside = {{"NCCL_COLLNET_ENABLE", "1", {}}}},
      {.name = "NCCL_SHM_DISABLE", .value = "1", .machine = "rtx4090-8", .nodes = 1},
      {.name = "NCCL_CROSS_NIC", .value = "1", .beside = {kRing}},
      {.name = "NCCL_PXN_DISABLE", .value = "1", .collective = "alltoall"},
      {.name = "NCCL_P2P_PXN_LEVEL", .value = "0", .collective = "alltoall"},
      {.name = "NCCL_PXN_C2C", .value = "0", .machine = "gh200-quad", .collective = "alltoall"},
      {.name = "NCCL_NVB_DISABLE",
       .value = "1",
       .machine = "dgx1-v100",
       .nodes = 1,
       .collective = "alltoall"},
      {.name = "NCCL_NETDEVS_POLICY", .value = "MAX:1", .machine = "aws-p5"},
      {.name = "NCCL_NET_DISABLE_INTRA", .value = "1", .machine = kFarSockets, .nodes = 1},
      {.name = "NCCL_NET_GDR_C2C", .value = "0", .machine = "gh200-quad"},
      {.name = "NCCL_NET_GDR_READ", .value = "0", .machine = "dgx-a100"},
      {.name = "NCCL_MNNVL_ENABLE", .value = "0", .machine = "gb200-nvl72"},
      {.name = "NCCL_CUMEM_ENABLE", .value = "0", .machine = "gb200-nvl72"},
      {.name = "NCCL_DMABUF_ENABLE", .value = "0", .machine = kDmabuf},
      {.name = "NCCL_IB_MERGE_NICS", .value = "0", .machine = "oci-h100"},
      {.name = "NCCL_IB_SL", .value = "3", .machine = kClasses},
      {.name = "NCCL_IB_TC", .value = "106", .machine = kLossy},
      {.name = "NCCL_IB_QPS_PER_CONNECTION", .value = "4", .machine = kHashes, .nodes = 4},
      {.name = "NCCL_IB_SPLIT_DATA_ON_QPS",
       .value = "1",
       .machine = kHashes,
       .nodes = 4,
       .bytes = 1 << 20,
       .beside = {kRing, {"NCCL_PROTO", "Simple", {}}, {"NCCL_IB_QPS_PER_CONNECTION", "8", {}}}},
      {.name = "NCCL_IB_ADAPTIVE_ROUTING", .value = "0", .machine = kSpreads, .nodes = 4},
      {.name = "NCCL_IB_AR_THRESHOLD", .value = "1073741824", .machine = kSpreads, .nodes = 4},
      {.name = "NCCL_IB_PCI_RELAXED_ORDERING", .value = "0", .machine = "azure-ndv4"},
  };
  return all;
}

// Variables that act at the start of a job or when it loses something: what is done to the job of 16 ranks, the value that
// shows, and the rank that may have it alone (negative: all).
struct JobCase {
  const char* name;
  const char* value;
  std::vector<std::string> beside = {};
  int rank = -1;
};

const std::vector<JobCase>& job_cases() {
  static const std::string kLost =
      "{set: {\"platform.nodes[1].nics[0].down\": \"true\"}, from: 1us, until: 900s}";
  static const std::string kShortLoss =
      "{set: {\"platform.nodes[1].nics[0].down\": \"true\"}, from: 1us, until: 100ms}";
  static const std::string kPorts =
      "{set: {\"platform.nodes[*].nics[0-1].adapter\": a, \"platform.nodes[*].nics[2-3].adapter\": "
      "b, \"platform.nodes[*].nics[4-5].adapter\": c, \"platform.nodes[*].nics[6-7].adapter\": d}}";
  static const std::string kRefused =
      "platform.nodes[1].firewall=[{direction: inbound, ports: 32768-60999, action: reject}]";
  static const std::string kRoce =
      "{set: {\"platform.nodes[*].nics[*].kind\": roce, \"platform.nodes[*].nics[*].gid_index\": "
      "\"3\"}}";
  static const std::vector<JobCase> all = {
      {"NCCL_SOCKET_IFNAME", "wl", {}, 9},
      {"NCCL_SOCKET_FAMILY", "AF_INET6", {}, 9},
      {"NCCL_IB_GID_INDEX", "1", {kRoce}, 9},
      {"NCCL_IB_PKEY", "3", {}, 9},
      {"NCCL_SOCKET_RETRY_CNT", "3", {kRefused}},
      {"NCCL_SOCKET_RETRY_SLEEP_MSEC", "1000", {kRefused}},
      {"NCCL_IB_TIMEOUT", "14", {kLost}},
      {"NCCL_IB_RETRY_CNT", "1", {kLost}},
      {"NCCL_IB_RESILIENCY_PORT_FAILOVER", "1", {kPorts, kLost}},
      {"NCCL_IB_RESILIENCY_PORT_RECOVERY",
       "1",
       {kPorts, "platform.nodes[*].nics[*].bandwidth=2Gbps", kShortLoss,
        "launch.env.NCCL_IB_RESILIENCY_PORT_FAILOVER=1", "launch.env.NCCL_IB_TIMEOUT=1"}},
  };
  return all;
}

std::string outcome_of(const JobCase& c, bool set) {
  std::vector<std::string> changes = c.beside;
  const std::string where = c.rank < 0 ? "launch" : fmt::format("launch.ranks[{}]", c.rank);
  if (set) changes.push_back(fmt::format("{}.env.{}={}", where, c.name, c.value));
  const pb::Outcome outcome = tests::run_job16(changes);
  // What came of it, and nothing of what was asked.
  std::string out =
      fmt::format("{} {} {} {}", static_cast<int>(outcome.verdict()), outcome.end_ns(),
                  outcome.step_time_ns().mean(), outcome.first_failure().SerializeAsString());
  for (const pb::ErrorText& text : outcome.error_text()) out += text.SerializeAsString();
  return out;
}

// Shown by tests of their own.
const std::map<std::string_view, const char*> kElsewhere = {
    {"NCCL_LAUNCH_RACE_FATAL",
     "needs threads that launch side by side; launch_order_test shows it"},
    {"NCCL_IGNORE_CPU_AFFINITY", "needs a process with few cores; launch_variables_test shows it"},
    {"NCCL_RAS_ENABLE", "what a health query says of a hang; start_records_test shows it"},
    {"NCCL_CTA_POLICY", "needs registered buffers; nccl_choice_test shows it"},
    {"NCCL_CONF_FILE", "needs a file; nccl_files_test shows it"},
    {"NCCL_TOPO_FILE", "needs a file; nccl_files_test shows it"},
    {"NCCL_GRAPH_FILE", "needs a file; nccl_files_test shows it"},
    {"NCCL_LAUNCH_ORDER_IMPLICIT", "needs a job; launch_order_test shows it"},
    {"NCCL_DEBUG", "changes what is logged only"},
    {"NCCL_DEBUG_SUBSYS", "changes what is logged only"},
    {"NCCL_DEBUG_FILE", "changes where it is logged only"},
    {"NCCL_TOPO_DUMP_FILE", "changes what is written down only"},
    {"NCCL_GRAPH_DUMP_FILE", "changes what is written down only"},
};

}  // namespace

TEST_CASE("every variable that acts on a collective changes something", "[sim][variables]") {
  for (const Case& c : cases()) {
    INFO(c.name << "=" << c.value);
    REQUIRE(find_variable(c.name) != nullptr);
    CHECK(picture(c, true) != picture(c, false));
  }
}

TEST_CASE("few threads of a block carry less, many no more", "[sim][variables]") {
  const auto time_with = [](const char* threads) {
    TestbedOptions options;
    options.nodes = 1;
    options.settings = {{"NCCL_ALGO", "Ring", {}}, {"NCCL_PROTO", "Simple", {}}};
    if (threads != nullptr) options.settings.push_back({"NCCL_NTHREADS", threads, {}});
    auto made = Testbed::make(machine_of("dgx-a100"), options, "test");
    REQUIRE(made);
    const auto world = (*made)->world();
    REQUIRE(world);
    Question question;
    question.collective = "all_reduce";
    question.bytes = Bytes{1} << 30;
    const auto e = explain((*made)->context(), *world, question);
    REQUIRE(e);
    return e->time;
  };
  const auto usual = time_with(nullptr);
  CHECK(time_with("512") == usual);
  CHECK(time_with("256") == usual);
  CHECK(time_with("64") > usual + usual / 10);
}

TEST_CASE("settings of verbs change nothing where a plugin of another network is used",
          "[sim][variables]") {
  for (const auto& [name, value] :
       {std::pair{"NCCL_IB_PCI_RELAXED_ORDERING", "0"}, std::pair{"NCCL_IB_DISABLE", "1"},
        std::pair{"NCCL_IB_QPS_PER_CONNECTION", "4"}}) {
    const Case on_efa{.name = name, .value = value, .machine = "aws-p4d", .nodes = 4};
    INFO(name);
    CHECK(picture(on_efa, true) == picture(on_efa, false));
  }
}

TEST_CASE("every variable that acts at the start or on a loss changes the outcome",
          "[sim][variables]") {
  for (const JobCase& c : job_cases()) {
    INFO(c.name << "=" << c.value);
    REQUIRE(find_variable(c.name) != nullptr);
    CHECK(outcome_of(c, true) != outcome_of(c, false));
  }
}

TEST_CASE("every variable of the table is shown, acts elsewhere, or says why it is idle",
          "[sim][variables]") {
  for (const Variable& variable : nccl_variables()) {
    INFO(variable.name);
    CHECK_FALSE(variable.note.empty());
    if (variable.acts == Acts::kNowhere) continue;
    const bool shown = std::any_of(cases().begin(), cases().end(),
                                   [&](const Case& c) { return c.name == variable.name; }) ||
                       std::any_of(job_cases().begin(), job_cases().end(),
                                   [&](const JobCase& c) { return c.name == variable.name; });
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
  const Bed bed = bed_of("dgx-a100", 1, 0,
                         {{"NCCL_ALGOS", "Ring", {}},
                          {"NCCL_DEBUG", "INFO", {}},
                          {"NCCL_COMM_ID", "10.0.0.1:4000", {}}});
  CHECK(bed.world->findings().count("nccl-variable-unknown") == 1);
  // What is logged changes nothing and need not be said; what NCCL would do and the model does not is told with why.
  CHECK(bed.world->findings().count("nccl-variable-idle") == 1);
  const auto& rows = bed.world->findings().rows();
  const auto idle = std::find_if(rows.begin(), rows.end(),
                                 [](const Finding& f) { return f.id == "nccl-variable-idle"; });
  REQUIRE(idle != rows.end());
  CHECK(idle->first == "NCCL_COMM_ID");
  CHECK(idle->severity == Severity::kWarning);
  CHECK_THAT(idle->advice, Catch::Contains("where rank 0 is"));
  CHECK_THAT(bed.world->findings().rows().front().advice, Catch::Contains("NCCL_ALGO"));
}

TEST_CASE("a name that is no slip of a known one is told without a guess", "[sim][variables]") {
  for (const char* name : {"NCCL_GRAPH_REGISTER", "NCCL_SET_STACK_SIZE"}) {
    const Bed bed = bed_of("dgx-a100", 1, 0, {{name, "1", {}}});
    const auto& rows = bed.world->findings().rows();
    REQUIRE(rows.size() == 1);
    CHECK(rows.front().advice == "it changes nothing in the simulation");
  }
}

TEST_CASE("of two limits of channels the tighter one holds", "[sim][variables]") {
  const auto channels = [](std::vector<RankSetting> settings) {
    return bed_of("dgx-h100", 2, 0, std::move(settings)).explained({}).channels;
  };
  CHECK(channels({{"NCCL_MAX_NCHANNELS", "8", {}}, {"NCCL_MAX_CTAS", "4", {}}}) ==
        channels({{"NCCL_MAX_CTAS", "4", {}}}));
  CHECK(channels({{"NCCL_MAX_NCHANNELS", "4", {}}, {"NCCL_MAX_CTAS", "8", {}}}) ==
        channels({{"NCCL_MAX_NCHANNELS", "4", {}}}));
  CHECK(channels({{"NCCL_MAX_NCHANNELS", "4", {}}, {"NCCL_MAX_NRINGS", "2", {}}}) ==
        channels({{"NCCL_MAX_NCHANNELS", "4", {}}}));
}

TEST_CASE("ranks whose variables make them decide otherwise never end a call", "[sim][variables]") {
  const Bed bed = bed_of("dgx-a100", 2, 0, {{"NCCL_ALGO", "Tree", {3, 9}}});
  Question question;
  question.bytes = Bytes{1} << 28;
  const Explanation e = bed.explained(question);
  CHECK(e.never);
  CHECK(e.findings.count("nccl-decisions-differ") == 1);
  const auto traffic = traffic_of(bed.testbed->context(), *bed.world, question);
  REQUIRE(traffic);
  CHECK(traffic->dissenters == std::vector<uint32_t>{3, 9});
  CHECK_THAT(traffic->dissent, Catch::Contains("TREE") && Catch::Contains("RING"));
  // A variable that differs and changes nothing about this call is a finding only.
  const Bed same = bed_of("dgx-a100", 2, 0, {{"NCCL_NVLS_CHUNKSIZE", "65536", {3}}});
  CHECK_FALSE(same.explained(question).never);
  CHECK(same.world->findings().count("nccl-environment-differs") == 1);
}

TEST_CASE("a network that is not there is refused with the rank that asks for it",
          "[sim][variables]") {
  const auto refusal = [](const char* machine, const char* value) {
    TestbedOptions options;
    options.nodes = 2;
    options.settings = {{"NCCL_NET", value, {5}}};
    auto made = Testbed::make(catalogue_platform(machine), options, "test");
    REQUIRE(made);
    const auto world = (*made)->world();
    return world ? std::string() : world.error().where + ": " + world.error().what;
  };
  CHECK_THAT(refusal("dgx-a100", "Infiniband"),
             Catch::Contains("rank 5") && Catch::Contains("network Infiniband not found"));
  CHECK_THAT(refusal("rtx4090-8", "IB"), Catch::Contains("has no adapter"));
  CHECK(refusal("dgx-a100", "ib").empty());
  CHECK(refusal("dgx-a100", "Socket").empty());
  CHECK(refusal("aws-p4d", "AWS Libfabric").empty());
  CHECK_FALSE(refusal("dgx-a100", "AWS Libfabric").empty());
}

TEST_CASE("one rank's variables of the network are its own", "[sim][variables]") {
  const auto time = [](std::vector<RankSetting> settings) {
    Question question;
    question.bytes = Bytes{1} << 28;
    TestbedOptions options;
    options.nodes = 2;
    options.settings = std::move(settings);
    return bed_of(machine_of(kClasses), options).explained(question).time;
  };
  CHECK(time({{"NCCL_IB_SL", "3", {11}}}) > 2 * time({}));
  CHECK(time({{"NCCL_IB_SL", "4", {11}}}) == time({}));
}

}  // namespace rehearse::variables_test
