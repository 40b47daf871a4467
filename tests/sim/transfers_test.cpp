// SPDX-License-Identifier: Apache-2.0
// Copies and storage as flows: alone they take what they took, together they share.
#include <catch2/catch.hpp>

#include "sim/replay/replay.hpp"
#include "sim/transfer_traffic.hpp"
#include "tests/sim/cluster.hpp"
#include "tests/sim/job16.hpp"
#include "tests/sim/small_trace.hpp"

namespace rehearse::transfers_test {
using namespace rehearse;
using namespace rehearse::sim;
using rehearse::tests::blamed;
using rehearse::tests::Cluster;
using rehearse::tests::run_job16;
using rehearse::tests::SmallTrace;
using rehearse::tests::try_job16;
using traces::CopyDirection;

namespace {

constexpr Nanos kUs = 1000;
constexpr Nanos kLaunched = 5 * kUs;  // when the first operation of a SmallTrace starts

traces::Program program_of(SmallTrace& small) {
  auto program = traces::build_program(small.trace());
  REQUIRE(program);
  return std::move(*program);
}

Replayed run(const Cluster& cluster, const traces::Program& program, bool moves = true) {
  const ModelContext context = cluster.context();
  ReplayOptions options;
  // Calls cross what a copy of rank 0 from the host crosses.
  std::vector<LinkId> down;
  cluster.links->host_to_gpu({0, 0}, down);
  options.traffic = [&](const traces::Call& call, uint32_t) -> Result<CallTraffic> {
    CallTraffic out;
    out.latency = 2 * kUs;
    FlowLoad flow;
    for (LinkId link : down) flow.links.push_back({link, 1});
    flow.bytes = static_cast<double>(call.bytes_in);
    out.flows.push_back(flow);
    return out;
  };
  if (moves) {
    options.transfer = [&](size_t r, const traces::Transfer& transfer) {
      return transfer_traffic(context, program, program.ranks[r].rank, transfer,
                              program.ranks[r].duration[transfer.op]);
    };
  }
  options.capacity = cluster.capacities;
  const auto fabric = make_reference_fabric(cluster.capacities);
  SilentReporter silent;
  auto out = replay(program, options, *fabric, silent);
  REQUIRE(out);
  return std::move(*out);
}

// Smallest capacity on the way from host memory to a GPU.
double down_rate(const Cluster& cluster, uint32_t gpu) {
  std::vector<LinkId> route;
  cluster.links->host_to_gpu({0, gpu}, route);
  double rate = 1e18;
  for (LinkId link : route) rate = std::min(rate, cluster.capacities[link]);
  return rate;
}

}  // namespace

TEST_CASE("a copy that is alone takes its recorded time", "[sim][transfers]") {
  const Cluster cluster("dgx-a100", 1, 8);
  for (const CopyDirection direction :
       {CopyDirection::kHostToDevice, CopyDirection::kDeviceToHost, CopyDirection::kPeer}) {
    for (const Nanos duration : {Nanos{417'001}, Nanos{500'000}, Nanos{3'141'593}}) {
      SmallTrace small(1);
      small.copy(0, direction, 10'000'000, duration);
      const traces::Program program = program_of(small);
      const Replayed out = run(cluster, program);
      REQUIRE(out.completed);
      CHECK(std::abs(out.end_time - (kLaunched + duration)) <= 1);
      CHECK(out.transfer_begin[0][0] >= kLaunched);
    }
  }
}

TEST_CASE("copies below two PCIe bridges that share a switch share its way up",
          "[sim][transfers]") {
  // GPUs 0 and 1 of a DGX A100 hang on one PCIe switch, GPU 2 on another.
  const Cluster cluster("dgx-a100", 1, 8);
  const double rate = down_rate(cluster, 0);
  const Bytes bytes = 100'000'000;
  const auto alone = static_cast<Nanos>(static_cast<double>(bytes) / rate * 1e9);
  SmallTrace two(3);
  for (uint32_t r : {0u, 1u, 2u}) {
    two.copy(r, CopyDirection::kHostToDevice, bytes, alone + 10 * kUs);
  }
  const traces::Program program = program_of(two);
  const Replayed out = run(cluster, program);
  REQUIRE(out.completed);
  const auto took = [&](size_t r) { return out.end[r].back() - kLaunched; };
  CHECK(static_cast<double>(took(0)) == Approx(2.0 * static_cast<double>(alone)).epsilon(0.01));
  CHECK(took(1) == took(0));
  CHECK(std::abs(took(2) - (alone + 10 * kUs)) <= 1);
}

TEST_CASE("what was recorded together takes its recorded time together", "[sim][transfers]") {
  const Cluster cluster("dgx-a100", 1, 8);
  const double rate = down_rate(cluster, 0);
  const auto shared = static_cast<Nanos>(100e6 / (rate / 2.2) * 1e9);
  SmallTrace two(2);
  for (uint32_t r : {0u, 1u}) two.copy(r, CopyDirection::kHostToDevice, 100'000'000, shared);
  const traces::Program program = program_of(two);
  const Replayed out = run(cluster, program);
  for (size_t r : {0u, 1u}) CHECK(std::abs(out.end[r].back() - kLaunched - shared) <= 1);
}

TEST_CASE("a copy and a collective share the PCIe link between them", "[sim][transfers]") {
  const Cluster cluster("dgx-a100", 1, 8);
  const double rate = down_rate(cluster, 0);
  const double bytes = 200e6;
  SmallTrace both(2);
  both.copy(0, CopyDirection::kHostToDevice, static_cast<Bytes>(bytes),
            static_cast<Nanos>(bytes / rate * 1e9) + 2 * kUs);
  both.all_reduce({1}, static_cast<Bytes>(bytes));
  const traces::Program program = program_of(both);
  const Replayed out = run(cluster, program);
  REQUIRE(out.completed);
  const double together = 2 * bytes / rate * 1e9;
  CHECK(static_cast<double>(out.end[0].back()) == Approx(together).epsilon(0.001));
  CHECK(static_cast<double>(out.meetings[0].end) == Approx(together).epsilon(0.001));
  // Without transfers the copy is in nobody's way.
  const Replayed apart = run(cluster, program, false);
  CHECK(static_cast<double>(apart.meetings[0].end) == Approx(together / 2).epsilon(0.001));
}

TEST_CASE("pageable memory crosses host memory three times", "[sim][transfers]") {
  const Cluster cluster("dgx-a100", 1, 8);
  SmallTrace small(1);
  small.copy(0, CopyDirection::kHostToDevice, 1 << 20, 100 * kUs, "Memcpy HtoD (Pinned -> Device)");
  small.copy(0, CopyDirection::kHostToDevice, 1 << 20, 100 * kUs,
             "Memcpy HtoD (Pageable -> Device)");
  const traces::Program program = program_of(small);
  REQUIRE(program.ranks[0].transfers.size() == 2);
  uint32_t weight[2] = {0, 0};
  for (size_t i : {0u, 1u}) {
    const auto traffic =
        transfer_traffic(cluster.context(), program, 0, program.ranks[0].transfers[i], 100 * kUs);
    REQUIRE(traffic);
    REQUIRE(*traffic);
    for (const LinkWeight& use : (*traffic)->flows[0].links) {
      if ((*cluster.links)[use.link].kind == platforms::LinkKind::kHost) weight[i] += use.weight;
    }
  }
  CHECK(weight[0] > 0);
  CHECK(weight[1] == 3 * weight[0]);
}

TEST_CASE("small copies and copies inside a GPU keep their recorded time", "[sim][transfers]") {
  const Cluster cluster("dgx-a100", 1, 8);
  SmallTrace small(1);
  small.copy(0, CopyDirection::kHostToDevice, 4, 2 * kUs);
  small.copy(0, CopyDirection::kDeviceToDevice, 1 << 30, 1000 * kUs);
  const traces::Program program = program_of(small);
  const Replayed out = run(cluster, program);
  CHECK(out.end_time == kLaunched + 2 * kUs + 1000 * kUs + (kLaunched - 2 * kUs));
  CHECK(out.counters.flows == 0);
}

TEST_CASE("a PCIe link of one lane makes its rank late", "[sim][transfers]") {
  const std::string read = "read-checkpoint: {bytes: 1GB, rank: 3}";
  const pb::Outcome wide = run_job16({read});
  const pb::Outcome narrow = run_job16({read, "platform.nodes[0].gpus[3].pcie.width=1"});
  CHECK(narrow.verdict() == pb::COMPLETED);
  CHECK(narrow.end_ns() > wide.end_ns() + 100'000'000);
}

TEST_CASE("a checkpoint that is read comes before the first step", "[sim][transfers]") {
  const pb::Outcome healthy = run_job16();
  const pb::Outcome one = run_job16({"read-checkpoint: {bytes: 2GB, rank: 0}"});
  const pb::Outcome all = run_job16({"read-checkpoint: {bytes: 2GB}"});
  const pb::Outcome disk = run_job16({"read-checkpoint: {bytes: 2GB, storage: nvme, rank: 0}"});
  for (const pb::Outcome& outcome : {one, all, disk}) CHECK(outcome.verdict() == pb::COMPLETED);
  CHECK(one.end_ns() > healthy.end_ns());
  CHECK(all.end_ns() > one.end_ns());
  // 2 GB at 90 % of 6 GB/s, after 100 us.
  const Nanos expected = 100 * kUs + 370'370'370;
  CHECK(std::abs(disk.end_ns() - healthy.end_ns() - expected) < 2'000'000);
  CHECK(std::abs(all.step_time_ns().each(1) - healthy.step_time_ns().each(1)) < 10 * kUs);
}

TEST_CASE("data that is loaded ahead costs nothing until storage is too slow for it",
          "[sim][transfers]") {
  const pb::Outcome healthy = run_job16({"steps: 6"});
  const pb::Outcome enough = run_job16({"steps: 6", "load-data: {bytes: 100kB}"});
  CHECK(std::abs(enough.step_time_ns().each(8) - healthy.step_time_ns().each(8)) < 10 * kUs);
  // Bound by storage: a step takes as long as its batch, latency and bytes. The disk of each node serves 8 ranks.
  const auto step = [](const std::string& bytes) {
    return run_job16({"steps: 6", "load-data: {bytes: " + bytes + ", storage: nvme}"})
        .step_time_ns()
        .each(8);
  };
  const auto expected = [](double bytes) { return 8 * bytes / (6e9 * 0.9) * 1e9 + 100'000; };
  CHECK(static_cast<double>(step("100MB")) == Approx(expected(100e6)).epsilon(1e-4));
  CHECK(static_cast<double>(step("400MB")) == Approx(expected(400e6)).epsilon(1e-4));
}

TEST_CASE("a share that cannot be reached any more hangs its readers, and the link is named",
          "[sim][transfers]") {
  const pb::Outcome hang =
      run_job16({"write-checkpoint: {bytes: 1GB}",
                 "{set: {\"platform.nodes[1].interfaces[1].down\": \"true\"}, from: 1us}"});
  CHECK(hang.verdict() == pb::HANG);
  REQUIRE(hang.culprits_size() > 0);
  bool named = false;
  for (const pb::Culprit& culprit : hang.culprits()) {
    named |= culprit.kind() == "link" && culprit.link().find("node1/") == 0;
    CHECK(culprit.kind() == "link");
  }
  CHECK(named);
}

TEST_CASE("storage that is not there is refused", "[sim][transfers]") {
  for (const char* text :
       {"read-checkpoint: {}", "load-data: {}", "read-checkpoint: {bytes: 1GB, storage: tape}",
        "load-data: {bytes: 1MB, storage: tape}", "load-data: {bytes: 1MB, rank: 99}",
        "read-checkpoint: {bytes: 1MB, rank: 99}"}) {
    INFO(text);
    const auto outcome = try_job16({text});
    CHECK_FALSE(outcome);
    if (!outcome) CHECK_FALSE(outcome.error().fix.empty());
  }
}

}  // namespace rehearse::transfers_test
