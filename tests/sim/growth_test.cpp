// SPDX-License-Identifier: Apache-2.0
// How the engine's work grows, by counts of what it does, not by time.
#include <catch2/catch.hpp>
#include <cmath>

#include "base/install.hpp"
#include "platforms/model/catalogue.hpp"
#include "sim/efficiency.hpp"
#include "sim/nccl/messages.hpp"
#include "sim/nccl/node_graphs.hpp"
#include "sim/replay/replay.hpp"
#include "tests/sim/iteration.hpp"
#include "tests/sim/small_trace.hpp"

namespace rehearse::growth_test {
using namespace rehearse;
using namespace rehearse::sim;
using rehearse::tests::iteration;
using rehearse::tests::SmallTrace;
using traces::Call;

namespace {

constexpr Nanos kUs = 1000;

struct Work {
  uint64_t lanes = 0, events = 0, flows = 0, visits = 0;
};

// `rounds` times eight kernels and an all-reduce of all ranks, over a ring of links, with
// contention.
Work work(uint32_t ranks, int rounds) {
  SmallTrace small(ranks);
  std::vector<uint32_t> all(ranks);
  for (uint32_t r = 0; r < ranks; ++r) all[r] = r;
  for (int i = 0; i < rounds; ++i) {
    for (uint32_t r = 0; r < ranks; ++r) {
      for (int k = 0; k < 8; ++k) small.kernel(r, (10 + r % 5) * kUs);
    }
    small.all_reduce(all, 100'000);
  }
  auto program = traces::build_program(small.trace());
  REQUIRE(program);
  const std::vector<BytesPerSec> capacity(ranks, 25e9);
  const auto fabric = make_reference_fabric(capacity);
  SilentReporter silent;
  ReplayOptions options;
  options.traffic = [&](const Call& call, uint32_t) -> Result<CallTraffic> {
    CallTraffic out;
    FlowLoad flow;
    for (LinkId l = 0; l < ranks; ++l) flow.links.push_back({l, 2});
    flow.bytes = static_cast<double>(call.bytes_in);
    out.flows.push_back(flow);
    out.channels = 20;
    return out;
  };
  options.capacity = capacity;
  options.gpus.assign(ranks, {100, 0});
  const auto out = replay(*program, options, *fabric, silent);
  REQUIRE(out);
  REQUIRE(out->completed);
  return {out->lane_visits, out->events, out->counters.flows, out->counters.visits};
}

// An iteration with tensor- and data-parallel groups on nodes of 8 GPUs and 4 cards, with NCCL's own traffic: rings
// of several groups meet on cards.
Work work_of_job(uint32_t ranks, int rounds) {
  const auto folder = shipped("platforms/catalogue");
  REQUIRE(folder);
  auto platform = platforms::PlatformCatalogue(*folder).platform("dgx1-v100");
  REQUIRE(platform);
  platform->set_scale(ranks / 8);
  REQUIRE(platforms::expand(*platform, "test"));
  pb::Launch launch;
  launch.set_nccl_version("2.21.5");
  for (uint32_t r = 0; r < ranks; ++r) {
    pb::RankLaunch& entry = *launch.add_ranks();
    entry.set_rank(r);
    entry.set_node(r / 8);
    entry.set_gpu(r % 8);
  }
  auto links = platforms::Links::build(*platform);
  REQUIRE(links);
  NodeGraphCache cache(*platform);
  const ModelContext context{*platform, *links, launch, &cache};
  const auto program = iteration(ranks, rounds);
  REQUIRE(program);
  std::vector<CommunicatorModel> models;
  for (const auto& communicator : program->communicators) {
    auto model = CommunicatorModel::create(context, communicator);
    REQUIRE(model);
    models.push_back(std::move(*model));
  }
  const std::vector<BytesPerSec> capacity = effective_capacities(*platform, *links);
  ReplayOptions options;
  options.traffic = [&](const Call& call, uint32_t member) {
    return models[call.communicator].traffic(call, member);
  };
  options.capacity = capacity;
  options.gpus.assign(ranks, {80, 900e9});
  const auto fabric = make_reference_fabric(capacity);
  SilentReporter silent;
  const auto out = replay(*program, options, *fabric, silent);
  REQUIRE(out);
  REQUIRE(out->completed);
  return {out->lane_visits, out->events, out->counters.flows, out->counters.visits};
}

// Each count of `large` is at most `most` times that of `small`.
void check_growth(const Work& small, const Work& large, double most) {
  const auto ratio = [](uint64_t a, uint64_t b) {
    return static_cast<double>(a) / static_cast<double>(b);
  };
  CHECK(ratio(large.lanes, small.lanes) <= most);
  CHECK(ratio(large.events, small.events) <= most);
  CHECK(ratio(large.flows, small.flows) <= most);
  CHECK(ratio(large.visits, small.visits) <= most);
}

}  // namespace

TEST_CASE("a job's work grows linearly with its operations", "[sim][growth]") {
  check_growth(work_of_job(64, 20), work_of_job(64, 80), 4.4);
}

TEST_CASE("a job's work grows at most n log n with its ranks", "[sim][growth]") {
  check_growth(work_of_job(32, 20), work_of_job(128, 20), 4.0 * 7 / 5);
}

TEST_CASE("work grows linearly with operations", "[sim][growth]") {
  const Work small = work(8, 20), large = work(8, 200);
  CHECK(large.lanes <= 11 * small.lanes);
  CHECK(large.events <= 11 * small.events);
  CHECK(large.flows == 10 * small.flows);
  CHECK(large.visits <= 11 * small.visits);
}

TEST_CASE("work grows at most n log n with ranks, the fabric's not at all", "[sim][growth]") {
  const Work small = work(16, 10), large = work(256, 10);
  const double most = 16.0 * std::log2(256) / std::log2(16);
  CHECK(static_cast<double>(large.lanes) <= most * static_cast<double>(small.lanes));
  CHECK(static_cast<double>(large.events) <= most * static_cast<double>(small.events));
  CHECK(large.flows == small.flows);
  CHECK(large.visits == small.visits);  // folded: a ring is a ring
}

}  // namespace rehearse::growth_test
