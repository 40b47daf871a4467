// SPDX-License-Identifier: Apache-2.0
// Properties of the time model: they hold for every machine, algorithm and protocol.
#include "sim/nccl/timing.hpp"

#include "sim/nccl/threads.hpp"
#include "tests/sim/testbeds.hpp"

namespace rehearse::timing_test {
using namespace rehearse;
using namespace rehearse::sim;
using namespace rehearse::sim::testing;

namespace {

constexpr const char* kMachines[] = {"dgx-a100", "dgx-h100", "a100-pcie-8", "rtx4090-8", "aws-p4d"};

// Time of a collective with everything but its size held fast.
Nanos time_of(const Bed& bed, Function function, int64_t count, Algorithm algorithm,
              Protocol protocol, int channels) {
  const NcclModel& nccl = bed.world->nccl();
  Call call;
  call.function = function;
  call.count = count;
  Choice choice{algorithm, protocol, 0, channels, 512};
  PlannedCall plan = plan_choice(nccl, call, choice);
  plan.split.channel_lo = 0;
  plan.split.channel_hi = channels - 1;
  const auto alone = time_alone(bed.testbed->context(), bed.world->traffic_of({call, plan}));
  REQUIRE(alone);
  return alone->total();
}

void each_variant(const Bed& bed, const std::function<void(const Variant&)>& visit) {
  for (const Variant& v : all_variants()) {
    if (bed.world->nccl().table.at(v).available()) visit(v);
  }
}

}  // namespace

TEST_CASE("with algorithm, protocol and channels fixed more bytes never take less time",
          "[sim][timing][property]") {
  for (const char* id : kMachines) {
    for (const uint32_t nodes : {1U, 3U}) {
      const Bed bed = bed_of(id, nodes);
      each_variant(bed, [&](const Variant& v) {
        for (const int channels : {1, 4}) {
          Nanos last = 0;
          for (int64_t count = 1; count <= int64_t{1} << 28; count = count * 3 / 2 + 1) {
            const Nanos now = time_of(bed, v.function, count, v.algorithm, v.protocol, channels);
            INFO(id << " " << nodes << " nodes, " << to_string(v) << ", " << count << " floats");
            REQUIRE(now >= last);
            last = now;
          }
        }
      });
    }
  }
}

TEST_CASE("with algorithm, protocol and channels fixed a faster link never hurts",
          "[sim][timing][property]") {
  for (const char* id : kMachines) {
    TestbedOptions options;
    options.nodes = 2;
    pb::Platform fast = catalogue_platform(id);
    fast.set_scale(2);
    REQUIRE(platforms::expand(fast, "fast"));
    const pb::Platform slow = fast;
    for (pb::Node& node : *fast.mutable_nodes()) {
      for (pb::Nic& nic : *node.mutable_nics()) nic.set_bandwidth(nic.bandwidth() * 1.5);
      for (pb::Gpu& gpu : *node.mutable_gpus()) {
        gpu.mutable_nvlink()->set_bandwidth(gpu.nvlink().bandwidth() * 1.5);
      }
    }
    const Bed a = bed_of(slow, options), b = bed_of(fast, options);
    each_variant(a, [&](const Variant& v) {
      if (!b.world->nccl().table.at(v).available()) return;
      for (const int64_t count : {int64_t{256}, int64_t{1} << 18, int64_t{1} << 27}) {
        INFO(id << " " << to_string(v) << ", " << count << " floats");
        CHECK(time_of(b, v.function, count, v.algorithm, v.protocol, 4) <=
              time_of(a, v.function, count, v.algorithm, v.protocol, 4));
      }
    });
  }
}

TEST_CASE("busbw never exceeds what the slowest link leaves", "[sim][timing][property]") {
  for (const char* id : kMachines) {
    for (const uint32_t nodes : {1U, 2U, 4U}) {
      const Bed bed = bed_of(id, nodes);
      for (const char* collective : {"all_reduce", "all_gather", "broadcast", "alltoall"}) {
        for (const Bytes bytes : {Bytes{1} << 16, Bytes{1} << 24, Bytes{1} << 32}) {
          Question question;
          question.collective = collective;
          question.bytes = bytes;
          const Explanation e = bed.explained(question);
          INFO(id << " " << nodes << " nodes, " << collective << " of " << bytes << ", "
                  << e.chosen);
          REQUIRE_FALSE(e.links.empty());
          for (const ExplainedLink& link : e.links) {
            // The link needs at least this long for what it carries, even at its data sheet.
            CHECK(static_cast<double>(e.time) * 1e-9 >= link.bytes / link.data_sheet * 0.999);
            CHECK(link.effective <= link.data_sheet);
          }
        }
      }
    }
  }
}

TEST_CASE("the order of ranks inside a node does not matter on an NVSwitch",
          "[sim][timing][property]") {
  for (const char* id : {"dgx-a100", "dgx-h100"}) {
    const Bed bed = bed_of(id, 1);
    std::vector<uint32_t> order = {5, 2, 7, 0, 3, 6, 1, 4};
    const auto other = CommunicatorModel::create(bed.testbed->context(), {"c", "", order, ""});
    REQUIRE(other);
    for (const Bytes bytes : {Bytes{1} << 12, Bytes{1} << 22, Bytes{1} << 30}) {
      Question question;
      question.bytes = bytes;
      const auto a = explain(bed.testbed->context(), *bed.world, question);
      const auto b = explain(bed.testbed->context(), *other, question);
      REQUIRE(a);
      REQUIRE(b);
      CHECK(a->time == b->time);
      CHECK(a->chosen == b->chosen);
    }
  }
}

TEST_CASE("latency is the sum of its parts and grows with the ranks of a ring", "[sim][timing]") {
  Nanos last = 0;
  for (const uint32_t ranks : {2U, 4U, 8U}) {
    const Bed bed =
        bed_of("dgx-h100", 1, ranks, {{"NCCL_ALGO", "Ring", {}}, {"NCCL_PROTO", "LL", {}}});
    Question question;
    question.bytes = 8;
    const Explanation e = bed.explained(question);
    CHECK(e.chosen == "RING/LL");
    CHECK(sum_of(e.latency) == e.latency_time);
    CHECK(e.latency_time > last);
    last = e.latency_time;
  }
}

TEST_CASE("hops through host memory and sockets take longer than over NVLink and RDMA",
          "[sim][timing]") {
  for (const Protocol protocol : kProtocols) {
    const auto hop = [&](HopKind kind) { return hop_latency_us(kind, Algorithm::kRing, protocol); };
    CHECK(hop(HopKind::kNvlink) <= hop(HopKind::kPcie));
    CHECK(hop(HopKind::kPcie) <= hop(HopKind::kHost));
    CHECK(hop(HopKind::kRdmaDirect) < hop(HopKind::kRdma));
    CHECK(hop(HopKind::kRdma) < hop(HopKind::kSocket));
  }
}

TEST_CASE("a small connection buffer shows the waits that slices no longer hide", "[sim][timing]") {
  Question question;
  question.bytes = Bytes{1} << 30;
  const auto time = [&](const char* buffer) {
    return bed_of("dgx-a100", 2, 0,
                  {{"NCCL_ALGO", "Ring", {}},
                   {"NCCL_PROTO", "Simple", {}},
                   {"NCCL_BUFFSIZE", buffer, {}}})
        .explained(question)
        .time;
  };
  CHECK(time("65536") > time("4194304"));
}

TEST_CASE("sockets of one connection bound its rate until the card does", "[sim][timing]") {
  Question question;
  question.bytes = Bytes{1} << 28;
  const auto time = [&](const char* threads) {
    return bed_of("dgx-a100", 2, 0,
                  {{"NCCL_IB_DISABLE", "1", {}}, {"NCCL_SOCKET_NTHREADS", threads, {}}})
        .explained(question)
        .time;
  };
  CHECK(time("1") > time("2"));
}

TEST_CASE("one thread serves all sockets of a rank that has no threads for them", "[sim][timing]") {
  const auto time = [](std::vector<RankSetting> settings) {
    settings.push_back({"NCCL_IB_DISABLE", "1", {}});
    settings.push_back({"NCCL_ALGO", "Ring", {}});
    Question question;
    question.bytes = Bytes{1} << 28;
    return bed_of("dgx-spark", 2, 0, settings).explained(question).time;
  };
  const Nanos plain = time({});
  CHECK(plain == time({{"NCCL_SOCKET_NTHREADS", "0", {}}}));
  // NCCL reads the number of sockets of a thread only where there are threads.
  CHECK(plain == time({{"NCCL_NSOCKS_PERTHREAD", "4", {}}}));
  CHECK(plain > 2 * time({{"NCCL_SOCKET_NTHREADS", "1", {}}}));
  // However many channels there are, 2.5 GB/s of one core: a ring of two sends every byte once.
  CHECK(static_cast<double>(plain) == Approx(0.107e9).epsilon(.02));
}

TEST_CASE("a tree on three nodes does not branch", "[sim][timing]") {
  const auto rate = [](uint32_t nodes) {
    Question question;
    question.bytes = Bytes{1} << 32;
    const auto bed = bed_of("dgx-b200", nodes, 0, {{"NCCL_ALGO", "Tree", {}}});
    return static_cast<double>(question.bytes) / static_cast<double>(bed.explained(question).time);
  };
  CHECK(rate(3) == Approx(rate(2)).epsilon(.03));
  CHECK(rate(4) < .7 * rate(3));
}

TEST_CASE("a chain to the switch is bound by its channels as a tree is", "[sim][timing]") {
  pb::Platform platform = catalogue_platform("dgx-b200");
  platform.mutable_fabric()->set_sharp(true);
  const auto rate = [&](const char* algorithm) {
    TestbedOptions options;
    options.nodes = 4;
    options.settings = {{"NCCL_COLLNET_ENABLE", "1", {}}, {"NCCL_ALGO", algorithm, {}}};
    Question question;
    question.bytes = Bytes{1} << 34;
    return static_cast<double>(question.bytes) /
           static_cast<double>(bed_of(platform, options).explained(question).time);
  };
  CHECK(rate("CollnetChain") < rate("CollnetDirect"));
}

TEST_CASE("more channels than NCCL takes by itself move more by LL", "[sim][timing]") {
  const auto time = [](const char* channels) {
    Question question;
    question.bytes = Bytes{1} << 21;
    return bed_of("dgx1-v100", 1, 0,
                  {{"NCCL_ALGO", "Ring", {}},
                   {"NCCL_PROTO", "LL", {}},
                   {"NCCL_MIN_NCHANNELS", channels, {}}})
        .explained(question)
        .time;
  };
  CHECK(time("24") < time("12"));
}

}  // namespace rehearse::timing_test
