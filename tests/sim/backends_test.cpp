// SPDX-License-Identifier: Apache-2.0
// Gloo, Open MPI and Horovod's controller.
#include "sim/horovod/controller.hpp"
#include "sim/host/gloo.hpp"
#include "sim/host/open_mpi.hpp"
#include "tests/sim/testbeds.hpp"

namespace rehearse::backends_test {
using namespace rehearse;
using namespace rehearse::sim;
using namespace rehearse::sim::testing;
using traces::Collective;

namespace {

traces::Call call(Collective collective, Bytes bytes) {
  traces::Call out;
  out.collective = collective;
  out.bytes_in = out.bytes_out = bytes;
  out.dtype = traces::DType::kFp32;
  out.peer = 0;
  return out;
}

Bed bed_with(pb::Backend backend, uint32_t nodes, std::vector<RankSetting> settings = {}) {
  TestbedOptions options;
  options.nodes = nodes;
  options.backend = backend;
  options.settings = std::move(settings);
  return bed_of(catalogue_platform("dgx-a100"), options);
}

Nanos time_of(const Bed& bed, const traces::Call& c) {
  const auto traffic = bed.world->traffic(c, 0);
  if (!traffic) FAIL(traffic.error().message());
  const auto alone = time_alone(bed.testbed->context(), *traffic);
  REQUIRE(alone);
  return alone->total();
}

}  // namespace

TEST_CASE("the backend of a job or of a communicator decides who carries its calls",
          "[sim][backends]") {
  const traces::Call c = call(Collective::kAllReduce, 1 << 20);
  CHECK(bed_with(pb::NCCL, 2).world->traffic(c, 0)->algorithm.find('/') != std::string::npos);
  CHECK(bed_with(pb::GLOO, 2).world->traffic(c, 0)->algorithm == "GLOO/RING");
  CHECK(bed_with(pb::MPI, 2).world->traffic(c, 0)->algorithm == "MPI/RING");
  const Bed bed = bed_of("dgx-a100", 1);
  const auto gloo =
      CommunicatorModel::create(bed.testbed->context(), {"c", "", {0, 1, 2, 3}, "cpu:gloo"});
  REQUIRE(gloo);
  CHECK(gloo->traffic(c, 0)->algorithm == "GLOO/RING");
  CHECK(gloo->transport() == "TCP");
  const auto both = CommunicatorModel::create(bed.testbed->context(),
                                              {"c", "", {0, 1, 2, 3}, "cpu:gloo,cuda:nccl"});
  REQUIRE(both);
  CHECK_FALSE(both->traffic(c, 0)->algorithm.starts_with("GLOO"));
}

TEST_CASE("a large Gloo all-reduce moves 2(n-1)/n of its bytes at the rate of one connection",
          "[sim][backends]") {
  const HostPlan plan = gloo_plan(call(Collective::kAllReduce, 1000), 4);
  CHECK(plan.bytes == Approx(1500));
  CHECK(plan.rounds == 6);
  CHECK(plan.reduces);
  const Bed bed = bed_with(pb::GLOO, 2);
  const double bytes = 1 << 28;
  // 2.5 GB/s of one TCP connection, and two copies of the GPU's buffer.
  const double wire = bytes * 2 * 15 / 16 / 2.5e9;
  const double seconds =
      static_cast<double>(time_of(bed, call(Collective::kAllReduce, 1 << 28))) * 1e-9;
  CHECK(seconds > wire);
  CHECK(seconds < wire * 1.3);
}

TEST_CASE("Gloo uses the interface it is told and refuses one that is not there",
          "[sim][backends]") {
  CHECK_FALSE(Testbed::make(catalogue_platform("dgx-a100"), {}, "t")->get()->links().size() == 0);
  TestbedOptions options;
  options.nodes = 2;
  options.backend = pb::GLOO;
  options.settings = {{"GLOO_SOCKET_IFNAME", "nosuch0", {}}};
  const auto bed = Testbed::make(catalogue_platform("dgx-a100"), options, "t");
  REQUIRE(bed);
  const auto world = (*bed)->world();
  REQUIRE_FALSE(world);
  CHECK_THAT(world.error().fix, Catch::Contains("GLOO_SOCKET_IFNAME"));
}

TEST_CASE("Open MPI changes its algorithm with size and takes TCP where it is told to",
          "[sim][backends]") {
  CHECK(mpi_plan(call(Collective::kAllReduce, 1000), 16).algorithm == "MPI/RECURSIVE_DOUBLING");
  CHECK(mpi_plan(call(Collective::kAllReduce, 1 << 20), 16).algorithm == "MPI/RING");
  CHECK(mpi_plan(call(Collective::kBroadcast, 100), 16).rounds == 4);
  const traces::Call c = call(Collective::kAllReduce, 1 << 26);
  const Nanos rdma = time_of(bed_with(pb::MPI, 2), c);
  const Nanos tcp = time_of(
      bed_with(pb::MPI, 2, {{"OMPI_MCA_pml", "ob1", {}}, {"OMPI_MCA_btl", "^openib", {}}}), c);
  CHECK(tcp > rdma);
}

TEST_CASE("host collectives never take less time with more bytes or more ranks",
          "[sim][backends][property]") {
  for (const pb::Backend backend : {pb::GLOO, pb::MPI}) {
    for (const Collective collective :
         {Collective::kAllReduce, Collective::kAllGather, Collective::kBroadcast,
          Collective::kReduce, Collective::kAllToAll, Collective::kBarrier, Collective::kGather}) {
      const Bed two = bed_with(backend, 2), four = bed_with(backend, 4);
      Nanos last = 0;
      for (Bytes bytes = 1 << 14; bytes <= Bytes{1} << 30; bytes *= 4) {
        const Nanos now = time_of(two, call(collective, bytes));
        INFO(static_cast<int>(backend) << " " << static_cast<int>(collective) << " " << bytes);
        CHECK(now >= last);
        CHECK(time_of(four, call(collective, bytes)) >= now);
        last = now;
      }
    }
  }
}

TEST_CASE("a send between hosts names a member that exists", "[sim][backends]") {
  const Bed bed = bed_with(pb::GLOO, 2);
  traces::Call send = call(Collective::kSend, 1 << 20);
  send.peer = 9;
  const auto traffic = bed.world->traffic(send, 1);
  REQUIRE(traffic);
  CHECK(traffic->algorithm == "GLOO/SEND");
  send.peer = 99;
  CHECK_FALSE(bed.world->traffic(send, 1));
}

TEST_CASE("Horovod waits half a cycle and negotiates faster with its cache", "[sim][horovod]") {
  const HorovodSettings plain = horovod_settings({}, "");
  CHECK(plain.cycle == 1'000'000);
  CHECK(plain.fusion == Bytes{128} << 20);
  const auto sum = [](const std::vector<LatencyPart>& parts) {
    double us = 0;
    for (const LatencyPart& part : parts) us += static_cast<double>(part.count) * part.each_us;
    return us;
  };
  CHECK(sum(negotiation(plain, 64)) > 500);
  CHECK(sum(negotiation(horovod_settings({{"HOROVOD_CACHE_CAPACITY", "0"}}, ""), 64)) >
        sum(negotiation(plain, 64)));
  CHECK(sum(negotiation(horovod_settings({{"HOROVOD_CYCLE_TIME", "5"}}, ""), 64)) >
        sum(negotiation(plain, 64)));
  CHECK(sum(negotiation(horovod_settings({{"HOROVOD_CONTROLLER", "gloo"}}, ""), 64)) >
        sum(negotiation(plain, 64)));
  CHECK(negotiation(plain, 1).empty());
  const HorovodSettings bad = horovod_settings({{"HOROVOD_CYCLE_TIME", "fast"}}, "");
  CHECK(bad.cycle == 1'000'000);
  CHECK(bad.notes.size() == 1);
}

}  // namespace rehearse::backends_test
