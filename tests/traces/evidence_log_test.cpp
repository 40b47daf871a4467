// SPDX-License-Identifier: Apache-2.0
// NCCL logs: what single lines say, and to which communicator they belong.
#include <fmt/format.h>

#include "tests/traces/evidence_samples.hpp"
#include "traces/import/nccl_log/log_facts.hpp"
#include "traces/import/nccl_log/log_line.hpp"

namespace rehearse::evidence_log_test {
using namespace rehearse;
using namespace rehearse::traces;
using samples::log_of;
using samples::must_read;

TEST_CASE("two interleaved ranks of one communicator are put together", "[evidence][nccl-log]") {
  const pb::NcclLog log = log_of(must_read(samples::kTwoRanks));
  REQUIRE(log.processes_size() == 2);
  CHECK(log.processes(0).network() == "IB");
  CHECK(log.processes(0).environment().at("NCCL_SOCKET_IFNAME") == "eth0");
  CHECK(log.processes(1).environment().at("NCCL_IB_HCA") == "mlx5");
  REQUIRE(log.processes(0).nics_size() == 2);
  CHECK(log.processes(0).nics(1).name() == "mlx5_1");
  CHECK(log.processes(0).nics(1).detail() == "1/RoCE");
  REQUIRE(log.communicators_size() == 1);
  const pb::NcclCommunicator& c = log.communicators(0);
  CHECK(c.id() == "0xabc");
  CHECK(c.ranks_total() == 2);
  CHECK(c.nodes() == 2);
  CHECK(c.nccl_version() == "2.21.5");
  REQUIRE(c.ranks_size() == 2);
  CHECK_FALSE(c.ranks(0).init_complete());
  CHECK(c.ranks(1).init_complete());
  CHECK(c.ranks(1).nvml_device() == 3);
  CHECK(c.ranks(0).calls() == 1);
  CHECK(c.ranks(0).last_call().op_count() == 0x1f);
  CHECK(c.rings_size() == 2);
  CHECK(c.ring_channels() == 2);
  CHECK(c.trees_size() == 4);
  CHECK(c.trees(0).down(0) == 1);
  CHECK(c.coll_channels() == 2);
  CHECK(c.p2p_channels_per_peer() == 2);
  CHECK(c.ring_gdr());
  REQUIRE(c.connections_size() == 2);
  CHECK(c.connections(0).nic() == 1);
  CHECK_FALSE(c.connections(0).gpu_direct());
  CHECK(c.connections(1).gpu_direct());
  CHECK(c.connections(1).direction() == "receive");
  REQUIRE(c.choices_size() == 1);
  CHECK(c.choices(0).collective() == "all_reduce");
  CHECK(c.choices(0).algorithm() == "Ring");
  CHECK(c.choices(0).protocol() == "LL");
  CHECK(c.choices(0).predicted_us() == 12.5);
  REQUIRE(log.warnings_size() == 1);
  CHECK(log.warnings(0).place() == "transport/net.cc:512");
  CHECK(log.warnings(0).time() == "2024-08-13 10:22:33");
}

TEST_CASE("versions are read as NVIDIA and AMD write them", "[evidence][nccl-log]") {
  using nccl_log::version_in;
  using Version = std::pair<std::string, std::string>;
  CHECK(version_in("NCCL version 2.28.9+cuda13.0") == Version("2.28.9", "13.0"));
  CHECK(version_in("RCCL version 2.20.5+hip6.2 HEAD:d380693") == Version("2.20.5", ""));
  CHECK(version_in("RCCL version : 2.22.3-develop:abc") == Version("2.22.3", ""));
  CHECK_FALSE(version_in("NCCL version of yesterday"));
}

TEST_CASE("choices are read in the spellings of all versions", "[evidence][nccl-log]") {
  using nccl_log::choice_in;
  const auto old = choice_in("64 Bytes -> Algo 0 proto 2 time 49.675526");
  REQUIRE(old);
  CHECK(old->algorithm() == "Tree");
  CHECK(old->protocol() == "Simple");
  const auto named =
      choice_in("AllGather: 64 Bytes -> Algo NVLS_TREE proto LL128 channel{Lo..Hi}={2..5}");
  REQUIRE(named);
  CHECK(named->collective() == "all_gather");
  CHECK(named->algorithm() == "NVLSTree");
  CHECK(named->channel_lo() == 2);
  CHECK(named->channel_hi() == 5);
  const auto both =
      choice_in("AllReduce: 8 Bytes -> Algo 1 proto 0 time 3.5 channel{Lo..Hi}={0..0}");
  REQUIRE(both);
  CHECK(both->predicted_us() == 3.5);
  const auto symmetric = choice_in(
      "AllReduce [Symmetric]: 4096 Bytes -> Kernel AllReduce_AGxLL_R nchannels 16 nthreads 512 "
      "nWorks 1");
  REQUIRE(symmetric);
  CHECK(symmetric->kernel() == "AllReduce_AGxLL_R");
  CHECK(symmetric->kernel_channels() == 16);
  CHECK_FALSE(choice_in("AllReduce: 8 Bytes -> Algo RING proto SIMPLE"));
  CHECK_FALSE(choice_in("AllReduce: 8 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0.."));
  CHECK_FALSE(choice_in("99999999999999999999999 Bytes -> Algo 0 proto 0 time 1"));
}

TEST_CASE("connections of every transport are read", "[evidence][nccl-log]") {
  using nccl_log::connection_in;
  CHECK(connection_in("Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer")->transport() == "P2P");
  CHECK(connection_in("Channel 03 : 0[1b000] -> 1[3c000] via P2P/IPC/read")->channel() == 3);
  CHECK(connection_in("Channel 00 : 3[4] -> 2[3] via SHM/direct/direct")->transport() == "SHM");
  CHECK(connection_in("Channel 00/0 : 0[0] -> 2[2] via P2P/indirect/1[1]")->via() ==
        "P2P/indirect/1[1]");
  const auto net =
      connection_in("Channel 01/0 : 7[7] -> 8[0] [send] via NET/IBext/3(5)/GDRDMA/Shared");
  REQUIRE(net);
  CHECK(net->network() == "IBext");
  CHECK(net->nic() == 3);
  CHECK(net->gpu_direct());
  const auto shared = connection_in("Channel 00 : 2[89000] -> 3[b2000] via direct shared memory");
  REQUIRE(shared);
  CHECK(shared->transport() == "SHM");
  const auto ring = connection_in("Ring 01 : 7 -> 8 [receive] via NET/AWS Libfabric/0");
  REQUIRE(ring);
  CHECK(ring->network() == "AWS Libfabric");
  CHECK(ring->nic() == 0);
  CHECK_FALSE(connection_in("Ring 01 : 7 -> 8 -> 9"));
  CHECK_FALSE(connection_in("Channel 00 : 3[4] -> 2[3] via SHM/direct/dirston"));
  CHECK_FALSE(connection_in("Channel 00/24 : 0 1 2 3"));
  CHECK_FALSE(connection_in("Channel 00/0 : -1[0] -> 1[1] via P2P/IPC"));
}

TEST_CASE("a message that is glued to other text begins at a known host", "[evidence][nccl-log]") {
  nccl_log::Hosts hosts = {"38dcf168f605"};
  const auto line = nccl_log::split_line(
      "  268435456  67108864 float sum  -138dcf168f605:1343:1350 [1] NCCL INFO hello", hosts);
  REQUIRE(line.messages.size() == 1);
  CHECK(line.messages[0].host == "38dcf168f605");
  CHECK(line.messages[0].pid == 1343);
  CHECK(line.messages[0].thread == 1350);
  CHECK(line.messages[0].device == 1);
  CHECK(line.messages[0].text == "hello");
  CHECK(line.other == "  268435456  67108864 float sum  -1");
  const auto two = nccl_log::split_line(
      "38dcf168f605:1:2 [0] NCCL INFO Ring 0038dcf168f605:1:3 NCCL CALL ncclGroupEnd()", hosts);
  REQUIRE(two.messages.size() == 2);
  CHECK(two.messages[0].text == "Ring 00");
  CHECK(two.messages[1].level == nccl_log::Level::kCall);
  CHECK(two.messages[1].device == -1);
}

TEST_CASE("the function that newer versions warn from is no hindrance", "[evidence][nccl-log]") {
  nccl_log::Hosts hosts;
  const auto line = nccl_log::split_line(
      "[2026-02-03 10:22:33] a:1:2 [3] transport/net.cc:512 (sendConnect) NCCL WARN closed", hosts);
  REQUIRE(line.messages.size() == 1);
  CHECK(line.messages[0].level == nccl_log::Level::kWarn);
  CHECK(line.messages[0].device == 3);
  CHECK(line.messages[0].place == "transport/net.cc:512");
  CHECK(line.messages[0].time == "2026-02-03 10:22:33");
}

TEST_CASE("launcher prefixes do not hide a message", "[evidence][nccl-log]") {
  CHECK(nccl_log::without_launcher_prefix("12: a:1:2 [0] NCCL INFO x") == "a:1:2 [0] NCCL INFO x");
  CHECK(nccl_log::without_launcher_prefix("[1,0]<stdout>:# nThread 1") == "# nThread 1");
  CHECK(nccl_log::without_launcher_prefix("[2024-08-13 10:22:33] a:1:2") ==
        "[2024-08-13 10:22:33] a:1:2");
}

TEST_CASE("what launchers of many kinds put before lines does not hide them", "[evidence]") {
  const std::vector<std::string> prefixes = {"[1,mpirank:0,algo-1]<stdout>:",
                                             "[prterun-node-4711@1,0]<stdout>: ",
                                             "[0]<stderr>:",
                                             "node-1: ",
                                             "[0] ",
                                             "[rank0]:",
                                             "[default0]:",
                                             "(Worker pid=313, ip=10.0.0.7) ",
                                             "web-1  | ",
                                             "\x1b[36m(Worker pid=313)\x1b[0m ",
                                             "I0927 12:07:22.643 1012 run.cc:5] "};
  for (const std::string& prefix : prefixes) {
    std::string text;
    for (const char* line :
         {"# nThread 1 nGpus 1 minBytes 1048576 maxBytes 2097152 step: 2(factor) warmup iters: 5",
          "#  Rank  0 Group  0 Pid    313 on   node-a device  0 [0000:18:00] NVIDIA A40",
          "#  Rank  1 Group  0 Pid    213 on   node-b device  0 [0000:18:00] NVIDIA A40",
          "NCCL version 2.19.3+cuda12.3",
          "node-a:313:320 [0] NCCL INFO comm 0x5 rank 0 nranks 2 cudaDev 0 busId 1 commId 0x9 - "
          "Init START",
          "#       size         count      type   redop    root     time   algbw   busbw #wrong",
          "     1048576        262144     float     sum      -1    120.1    8.73    8.73      0",
          "     2097152        524288     float     sum      -1    210.1    9.98    9.98      0",
          "# Avg bus bandwidth    : 9.355"}) {
      text += prefix + line + "\n";
    }
    INFO(prefix);
    const auto read = must_read(text, "all_reduce.log");
    const auto log = log_of(read);
    REQUIRE(log.communicators_size() == 1);
    CHECK(log.processes(0).host() == "node-a");
    CHECK(log.communicators(0).nccl_version() == "2.19.3");
    const auto tables = samples::tables_of(read);
    REQUIRE(tables.tables_size() == 1);
    CHECK(tables.tables(0).gpus() == 2);
    CHECK(tables.tables(0).nodes() == 2);
    CHECK(tables.tables(0).rows_size() == 2);
    CHECK(tables.tables(0).average_busbw() == 9.355);
  }
}

TEST_CASE("what Ray writes behind and between is no part of a message", "[evidence][nccl-log]") {
  const std::string before = "\x1b[36m(RayWorkerWrapper pid=539, ip=10.0.0.7)\x1b[0m ";
  const std::string behind =
      "\x1b[32m [repeated 15x across cluster] (Ray deduplicates logs by default.)\x1b[0m\n";
  std::string text;
  for (const char* line :
       {"NCCL_P2P_LEVEL set by environment to NVL", "Using network AWS Libfabric",
        "comm 0x5 rank 0 nranks 2 cudaDev 0 busId 1 commId 0x9 - Init START",
        "Channel 00/02 :    0   1", "Channel 00/0 : 0[0] -> 1[1] via P2P/IPC",
        "Channel 00/0 : 0["}) {
    text += before + "vllm-0:539:539 [0] NCCL INFO " + line + behind;
  }
  const pb::NcclLog log = log_of(must_read(text));
  REQUIRE(log.processes_size() == 1);
  CHECK(log.processes(0).network() == "AWS Libfabric");
  CHECK(log.processes(0).environment().at("NCCL_P2P_LEVEL") == "NVL");
  REQUIRE(log.communicators_size() == 1);
  CHECK(log.communicators(0).rings_size() == 1);
  REQUIRE(log.communicators(0).connections_size() == 1);
  CHECK(log.communicators(0).connections(0).via() == "P2P/IPC");
  CHECK(log.unused_lines() == 1);
}

TEST_CASE("rings of before 2.5 do not tell how many there are", "[evidence][nccl-log]") {
  const auto ring = nccl_log::ring_in("Channel 01 :    0   1   3   2");
  REQUIRE(ring);
  CHECK(ring->first.channel() == 1);
  CHECK(ring->first.ranks_size() == 4);
  CHECK(ring->second == 2);
  CHECK_FALSE(nccl_log::ring_in("Channel 01 : 0[90] -> 2[a0] via P2P/IPC"));
}

TEST_CASE("a ring tells how many ranks there are where the log begins later",
          "[evidence][nccl-log]") {
  const pb::NcclLog log =
      log_of(must_read("h:1:11 [0] NCCL INFO Channel 00/02 : 0 1 3 2\n"
                       "h:1:11 [0] NCCL INFO Channel 01/02 : 0 1 3 2\n"));
  REQUIRE(log.communicators_size() == 1);
  CHECK(log.communicators(0).ranks_total() == 4);
}

TEST_CASE("AMD's library names the communicator at the end of its lines", "[evidence][nccl-log]") {
  const char* text =
      R"(a:1:9 [0] NCCL INFO comm 0x5 rank 0 nranks 2 cudaDev 0 busId c1000 commId 0x77 - Init START
a:1:9 [0] NCCL INFO comm 0x6 rank 0 nranks 4 cudaDev 0 busId c1000 commId 0x88 - Init START
a:1:9 [0] NCCL INFO Channel 00/0 : 0[c1000] -> 1[c6000] via P2P/IPC comm 0x5 nRanks 02
a:1:9 [0] NCCL INFO Channel 01/0 : 0[c1000] -> 1[c6000] [send] via NET/Socket/1 comm 0x5 nRanks 02
a:1:9 [0] NCCL INFO Ring 00 : 1 -> 0 -> 1 comm 0x5 nRanks 02 busId c1000
a:1:9 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1 [1] 1/-1/-1->0->-1 comm 0x5 nRanks 02 busId c1000
a:1:9 [0] NCCL INFO Channel 00/0 : 0[c1000] -> 3[c6000] via P2P/direct pointer comm 0x6 nRanks 04
)";
  const pb::NcclLog log = log_of(must_read(text));
  CHECK(log.unused_lines() == 0);
  REQUIRE(log.communicators_size() == 2);
  const pb::NcclCommunicator& two = log.communicators(0);
  REQUIRE(two.connections_size() == 2);
  CHECK(two.connections(0).via() == "P2P/IPC");
  CHECK(two.connections(1).via() == "NET/Socket/1");
  CHECK(two.hops_size() == 1);
  CHECK(two.trees_size() == 2);
  REQUIRE(log.communicators(1).connections_size() == 1);
  CHECK(log.communicators(1).connections(0).to() == 3);
}

TEST_CASE("parts of a split are told apart by color", "[evidence][nccl-log]") {
  std::string text;
  for (int rank = 0; rank < 4; ++rank) {
    text += fmt::format(
        "h:{0}:{0} [0] NCCL INFO comm 0x5 rank {1} nranks 4 cudaDev {1} busId 1 "
        "commId 0x9 - Init START\n",
        rank + 10, rank);
  }
  // Ranks 0 and 2, 1 and 3; the second part comes between.
  for (const int rank : {0, 1, 2, 3}) {
    text += fmt::format(
        "h:{0}:{0} [0] NCCL INFO ncclCommSplit comm 0x6 rank {1} nranks 2 cudaDev {2} "
        "nvmlDev {2} busId 1 parent 0x5 splitCount 1 color {3} key 0- Init START\n",
        rank + 10, rank / 2, rank, rank % 2);
  }
  const pb::NcclLog log = log_of(must_read(text));
  REQUIRE(log.communicators_size() == 3);
  for (int part = 0; part < 2; ++part) {
    const pb::NcclCommunicator& two = log.communicators(1 + part);
    REQUIRE(two.ranks_size() == 2);
    CHECK(two.ranks(0).device() == part);
    CHECK(two.ranks(1).device() == part + 2);
  }
}

TEST_CASE("hosts that were blotted out are hosts", "[evidence][nccl-log]") {
  const char* text =
      R"(<my_node>:919:1150 [0] NCCL INFO NET/IB : No device found.
<my_node>:919:1150 [0] NCCL INFO comm 0x5 rank 8 nranks 16 cudaDev 0 busId 1 commId 0x9 - Init START
*****:926:1151 [7] NCCL INFO comm 0x6 rank 15 nranks 16 cudaDev 7 busId 2 commId 0x9 - Init START
[pod-name]:5310:5310 [1] NCCL INFO comm 0x7 rank 9 nranks 16 cudaDev 1 busId 3 commId 0x9 - Init START
)";
  const pb::NcclLog log = log_of(must_read(text));
  REQUIRE(log.processes_size() == 3);
  CHECK(log.processes(2).host() == "[pod-name]");
  CHECK(log.processes(0).host() == "<my_node>");
  CHECK(log.processes(0).ib_no_device());
  CHECK(log.processes(1).host() == "*****");
  REQUIRE(log.communicators_size() == 1);
  CHECK(log.communicators(0).ranks_size() == 3);
}

TEST_CASE("trees with their way down are read by their way up", "[evidence][nccl-log]") {
  const auto hops = nccl_log::trees_in(
      "Trees [0] 1/-1/-1->0->-1|-1->0->1/-1/-1 [1] -1/-1/-1->0->1|1->0->-1/-1/-1", "Trees ");
  REQUIRE(hops.size() == 2);
  CHECK(hops[0].up() == -1);
  CHECK(hops[0].down_size() == 1);
  CHECK(hops[1].channel() == 1);
  CHECK(hops[1].up() == 1);
}

TEST_CASE("AMD's count of channels has the numbers behind", "[evidence][nccl-log]") {
  const char* text =
      R"(h:1:9 [0] NCCL INFO RCCL version : 2.27.7-HEAD:0d2c4fd
h:1:9 [0] NCCL INFO ncclCommInitRankConfig_impl comm 0x2b rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 3000 commId 0xcd - Init START
h:1:9 [0] NCCL INFO comm:0x2b, nRanks:1, nNodes:1, coll channels:2 collnet channels:3, nvls channels:0, p2p channels:4, p2p channels per peer:1
h:1:9 [0] NCCL INFO ncclCommInitRankConfig_impl comm 0x2b rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 3000 commId 0xcd - Init COMPLETE
)";
  const pb::NcclLog log = log_of(must_read(text));
  REQUIRE(log.communicators_size() == 1);
  CHECK(log.communicators(0).coll_channels() == 2);
  CHECK(log.communicators(0).collnet_channels() == 3);
  CHECK(log.communicators(0).p2p_channels() == 4);
  CHECK(log.communicators(0).p2p_channels_per_peer() == 1);
}

TEST_CASE("sentences about versions are no banner", "[evidence][nccl-log]") {
  using nccl_log::version_in;
  CHECK(version_in("(Worker pid=7) NCCL version 2.21.5+cuda12.4")->first == "2.21.5");
  CHECK(version_in("rank0: RCCL version 2.20.5+hip6.2 HEAD:abc")->first == "2.20.5");
  CHECK_FALSE(version_in("this needs NCCL version 2.10 or newer"));
  CHECK_FALSE(version_in("MY_NCCL version 2.10+cuda11"));
}

TEST_CASE("logs without Init START give what a thread said to its Init COMPLETE",
          "[evidence][nccl-log]") {
  const char* text =
      R"(h:1:9 [0] NCCL INFO Channel 00/01 :    0   1
h:1:9 [0] NCCL INFO Channel 00 : 0[1b000] -> 1[3c000] via P2P/IPC
h:1:9 [0] NCCL INFO comm 0x5 rank 0 nranks 2 cudaDev 0 busId 1b000 - Init COMPLETE
h:2:8 [1] NCCL INFO comm 0x6 rank 1 nranks 2 cudaDev 1 busId 3c000 - Init COMPLETE
h:1:9 [0] NCCL INFO Channel 00/01 :    0   1   2   3
h:1:9 [0] NCCL INFO comm 0x7 rank 0 nranks 4 cudaDev 0 busId 1b000 - Init COMPLETE
)";
  const pb::NcclLog log = log_of(must_read(text));
  REQUIRE(log.communicators_size() == 2);
  CHECK(log.communicators(0).ranks_size() == 2);
  CHECK(log.communicators(0).rings(0).ranks_size() == 2);
  CHECK(log.communicators(0).connections_size() == 1);
  CHECK(log.communicators(1).rings(0).ranks_size() == 4);
}

TEST_CASE("ranks of one communicator with different NCCL versions are an error",
          "[evidence][nccl-log]") {
  const char* text =
      R"(a:1:1 [0] NCCL INFO NCCL version 2.18.3+cuda12.2
b:2:2 [0] NCCL INFO NCCL version 2.20.5+cuda12.4
a:1:1 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1 commId 0x5 - Init START
b:2:2 [0] NCCL INFO comm 0x2 rank 1 nranks 2 cudaDev 0 busId 1 commId 0x5 - Init START
)";
  CHECK(must_read(text).findings.count("nccl-versions-differ") == 1);
}

TEST_CASE("tuning tables of old and new layout give the same cells", "[evidence][nccl-log]") {
  const char* fresh =
      R"(h:1:1 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1 commId 0x5 - Init START
h:1:1 [0] NCCL INFO   Algorithm   |                            Tree                  |                            Ring                  |
h:1:1 [0] NCCL INFO   Protocol    |             LL |          LL128 |         Simple |             LL |          LL128 |         Simple |
h:1:1 [0] NCCL INFO  Max NThreads |            512 |            640 |            512 |            512 |            640 |            512 |
h:1:1 [0] NCCL INFO     AllReduce |    12.8/   0.0 |    26.5/   0.0 |    48.4/   0.0 |    12.6/   9.0 |    33.0/   0.0 |    42.4/   7.5 |
)";
  const char* old =
      R"(h:1:1 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1 commId 0x5 - Init START
h:1:1 [0] NCCL INFO   Latency/AlgBw |    Tree/    LL |    Tree/ LL128 |    Tree/Simple |    Ring/    LL |    Ring/ LL128 |    Ring/Simple |
h:1:1 [0] NCCL INFO     AllReduce |    12.8/   0.0 |    26.5/   0.0 |    48.4/   0.0 |    12.6/   9.0 |    33.0/   0.0 |    42.4/   7.5 |
)";
  for (const char* text : {fresh, old}) {
    const pb::NcclLog log = log_of(must_read(text));
    const auto& cells = log.communicators(0).tuning();
    REQUIRE(cells.size() == 6);
    CHECK(cells[3].algorithm() == "Ring");
    CHECK(cells[3].protocol() == "LL");
    CHECK(cells[3].bandwidth() == 9.0);
    CHECK(cells[5].protocol() == "Simple");
    CHECK(cells[5].latency_us() == 42.4);
  }
}

TEST_CASE("evidence attaches to a trace and survives the container", "[evidence]") {
  const pb::NcclLog log = log_of(must_read(samples::kTwoRanks));
  pb::Evidence good;
  *good.mutable_nccl_log() = log;
  CHECK(complaint_about(good).empty());
  good.mutable_nccl_log()->mutable_communicators(0)->mutable_ranks(0)->set_process(9);
  CHECK_FALSE(complaint_about(good).empty());
  CHECK_FALSE(complaint_about(pb::Evidence{}).empty());
}

TEST_CASE("bytes of a log that are no UTF-8 are replaced and counted", "[evidence][nccl-log]") {
  const auto read = must_read("h:1:1 [0] NCCL WARN socket \xff\xfe closed\n");
  CHECK(read.findings.count("text-not-utf8") == 1);
  CHECK(log_of(read).warnings(0).text() == "socket \xef\xbf\xbd\xef\xbf\xbd closed");
}

}  // namespace rehearse::evidence_log_test
