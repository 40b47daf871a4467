// SPDX-License-Identifier: Apache-2.0
// Whole replays against closed forms, exact to rounding.
#include <array>
#include <catch2/catch.hpp>
#include <cmath>

#include "sim/replay/replay.hpp"
#include "tests/sim/call_program.hpp"
#include "tests/sim/small_trace.hpp"

namespace rehearse::analytic_test {
using namespace rehearse;
using namespace rehearse::sim;
using rehearse::tests::CallProgram;
using rehearse::tests::SmallTrace;
using traces::Call;
using traces::Collective;

namespace {

constexpr Nanos kUs = 1000;
constexpr double kRate = 25e9;  // of every link

Replayed run(const traces::Program& program, const TrafficOf& traffic, size_t links,
             const MessagesOf& messages = {}) {
  const std::vector<BytesPerSec> capacity(links, kRate);
  const auto fabric = make_reference_fabric(capacity);
  SilentReporter silent;
  ReplayOptions options;
  options.traffic = traffic;
  options.messages = messages;
  options.capacity = capacity;
  auto out = replay(program, options, *fabric, silent);
  REQUIRE(out);
  return std::move(*out);
}

Nanos nanos(double bytes, double rate = kRate) {
  return static_cast<Nanos>(std::nearbyint(bytes / rate * 1e9));
}

// A ring over links 0 .. n-1, link m from member m to the next, `channels` at once.
CallTraffic ring(const Call& call, uint32_t n, uint32_t channels, Nanos latency) {
  CallTraffic out;
  out.latency = latency;
  FlowLoad flow;
  for (LinkId l = 0; l < n; ++l) flow.links.push_back({l, channels});
  flow.bytes = 2.0 * (n - 1) / n * static_cast<double>(call.bytes_in) / channels;
  out.flows.push_back(flow);
  return out;
}

// The same as messages.
MessagePlan ring_messages(const Call& call, uint32_t n, uint32_t channels) {
  MessagePlan out;
  for (LinkId l = 0; l < n; ++l) {
    FlowLoad flow;
    flow.links = {{l, channels}};
    out.routes.push_back(flow);
  }
  for (uint32_t s = 0; s < 2 * (n - 1); ++s) {
    for (uint32_t p = 0; p < n; ++p) {
      out.after_begin.push_back(static_cast<uint32_t>(out.after.size()));
      out.messages.push_back(
          {p, (p + 1) % n, p, static_cast<double>(call.bytes_in) / n / channels});
      if (s == 0) continue;
      out.after.push_back((s - 1) * n + p);
      out.after.push_back((s - 1) * n + (p + n - 1) % n);
    }
  }
  out.after_begin.push_back(static_cast<uint32_t>(out.after.size()));
  return out;
}

}  // namespace

TEST_CASE("a ring all-reduce takes latency plus 2(n-1)/n times size over bandwidth",
          "[sim][analytic]") {
  for (uint32_t n : {2u, 3u, 8u, 64u}) {
    for (uint32_t channels : {1u, 8u}) {
      CallProgram calls(n);
      std::vector<uint32_t> all(n);
      for (uint32_t m = 0; m < n; ++m) all[m] = m;
      calls.collective(calls.communicator(all), Collective::kAllReduce, 64'000'000);
      const TrafficOf traffic = [&](const Call& call, uint32_t) -> Result<CallTraffic> {
        return ring(call, n, channels, 20 * kUs);
      };
      const Nanos expected = 20 * kUs + nanos(2.0 * (n - 1) / n * 64e6);
      const Replayed fluid = run(calls.program(), traffic, n);
      CHECK(std::abs(fluid.meetings[0].end - expected) <= 1);
      const Replayed step =
          run(calls.program(), traffic, n, [&](const Call& call, uint32_t) -> Result<MessagePlan> {
            return ring_messages(call, n, channels);
          });
      CHECK(std::abs(step.meetings[0].end - expected) <= 1);
      CHECK(step.counters.flows == 2 * (n - 1) * n);
    }
  }
}

TEST_CASE("a tree all-reduce crosses every edge once up and once down", "[sim][analytic]") {
  // Links m up and n + m down between node m and its parent (m - 1) / 2.
  constexpr uint32_t kNodes = 7;
  CallProgram calls(kNodes);
  calls.collective(calls.communicator({0, 1, 2, 3, 4, 5, 6}), Collective::kAllReduce, 10'000'000);
  const TrafficOf traffic = [&](const Call& call, uint32_t) -> Result<CallTraffic> {
    CallTraffic out;
    out.latency = 7 * kUs;
    FlowLoad flow;
    for (LinkId m = 1; m < kNodes; ++m) {
      flow.links.push_back({m, 1});
      flow.links.push_back({kNodes + m, 1});
    }
    flow.bytes = static_cast<double>(call.bytes_in);
    out.flows.push_back(flow);
    return out;
  };
  const Replayed out = run(calls.program(), traffic, 2 * kNodes);
  CHECK(out.meetings[0].end == 7 * kUs + nanos(10e6));
}

TEST_CASE("two flows on one link each get half until the shorter has ended", "[sim][analytic]") {
  CallProgram calls(4);
  calls.send(calls.communicator({0, 1}), 10'000'000, 0, 0);
  calls.send(calls.communicator({2, 3}), 30'000'000, 0, 0);
  const TrafficOf traffic = [](const Call& call, uint32_t) -> Result<CallTraffic> {
    CallTraffic out;
    FlowLoad flow;
    flow.links = {{0, 1}};
    flow.bytes = static_cast<double>(call.bytes_in);
    out.flows.push_back(flow);
    return out;
  };
  const Replayed out = run(calls.program(), traffic, 1);
  CHECK(out.meetings[0].end == nanos(20e6));
  CHECK(out.meetings[1].end == nanos(40e6));
}

TEST_CASE("eight GPUs behind one card get an eighth of it each", "[sim][analytic]") {
  CallProgram calls(16);
  for (uint32_t g = 0; g < 8; ++g) calls.send(calls.communicator({g, 8 + g}), 5'000'000, 0, 0);
  const TrafficOf traffic = [](const Call& call, uint32_t) -> Result<CallTraffic> {
    CallTraffic out;
    FlowLoad flow;
    flow.links = {{0, 1}, {1 + call.communicator, 1}};  // the card, and each GPU's own link
    flow.bytes = static_cast<double>(call.bytes_in);
    out.flows.push_back(flow);
    return out;
  };
  const Replayed out = run(calls.program(), traffic, 9);
  for (const Meeting& meeting : out.meetings) CHECK(meeting.end == nanos(8 * 5e6));
}

TEST_CASE("a pipeline's bubble is (p-1)/(v m) of its work", "[sim][analytic]") {
  // p stages, v chunks of the model on each, m micro-batches, a kernel of 1 ms for each chunk and micro-batch. Stages
  // take p micro-batches through all chunks, then the next p (interleaved); the last stage hands over to the first.
  const std::vector<std::array<uint32_t, 3>> cases = {
      {4, 1, 8}, {4, 2, 8}, {2, 1, 2}, {3, 3, 6}, {8, 4, 16}};
  for (const auto& one : cases) {
    const uint32_t p = one[0], v = one[1], m = one[2];
    CAPTURE(p, v, m);
    SmallTrace small(p);
    // Written down in the order in which it can be done: stage s is s slots behind the first.
    for (uint32_t slot = 0; slot < v * m + p - 1; ++slot) {
      const auto works = [&](uint32_t stage) { return slot >= stage && slot - stage < v * m; };
      for (uint32_t stage = 0; stage < p; ++stage) {
        if (works(stage)) small.kernel(stage, 1000 * kUs);
      }
      for (uint32_t stage = 0; stage < p; ++stage) {
        if (!works(stage)) continue;
        const uint32_t chunk = (slot - stage) / p % v;
        if (stage + 1 < p) small.send(stage, stage + 1, 4);
        if (stage + 1 == p && chunk + 1 < v) small.send(stage, 0, 4);
      }
    }
    auto program = traces::build_program(small.trace());
    REQUIRE(program);
    // Launches take no time here and sends neither: what remains is the order.
    for (auto& rank : program->ranks) {
      for (OpId op = 0; op < rank.size(); ++op) {
        rank.gap[op] = 0;
        if (rank.kind[op] != traces::OpKind::kKernel) rank.duration[op] = 0;
      }
    }
    const TrafficOf traffic = [](const Call&, uint32_t) -> Result<CallTraffic> {
      return CallTraffic{};
    };
    const Replayed out = run(*program, traffic, 1);
    REQUIRE(out.completed);
    const Nanos work = static_cast<Nanos>(v) * m * 1000 * kUs;
    const Nanos bubble = static_cast<Nanos>(p - 1) * 1000 * kUs;
    CHECK(out.end_time == work + bubble);
    CHECK(static_cast<double>(out.end_time - work) / static_cast<double>(work) ==
          Approx(static_cast<double>(p - 1) / (v * m)));
  }
}

}  // namespace rehearse::analytic_test
