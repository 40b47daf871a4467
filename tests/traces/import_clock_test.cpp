// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "traces/import/clock.hpp"

namespace rehearse::import_clock_test {
using namespace rehearse;
using namespace rehearse::traces;

namespace {

struct World {
  Trace trace;
  std::vector<Nanos> truth;  // true end of each collective
};

uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}
double noise(uint64_t a, uint64_t b, uint64_t c) {
  return static_cast<double>(mix(mix(mix(a) + b) + c) >> 11) * 0x1p-53;
}

// Ranks meet in collectives that end within 3 us of each other; each rank arrives up to 8 ms early
// or late and reads a clock with its own offset and drift.
World make_world(uint32_t ranks, int collectives, const std::vector<Communicator>& groups,
                 double offset_ms, double drift_ppm) {
  World w;
  w.trace.communicators = groups;
  constexpr Nanos kBegin = 1'700'000'000'000'000'000;
  std::vector<int64_t> next(groups.size(), 0);
  w.trace.ranks.resize(ranks);
  for (uint32_t r = 0; r < ranks; ++r) {
    w.trace.ranks[r].rank = r;
    w.trace.ranks[r].lanes.push_back({LaneKind::kStream, 20, 0});
  }
  for (int k = 0; k < collectives; ++k) {
    const auto g = static_cast<uint32_t>(k) % static_cast<uint32_t>(groups.size());
    const Nanos end = kBegin + Nanos{k} * 20'000'000;
    w.truth.push_back(end);
    for (const RankId r : groups[g].members) {
      const double offset = (2 * noise(r, 1, 0) - 1) * offset_ms * 1e6;
      const double drift = (2 * noise(r, 2, 0) - 1) * drift_ppm * 1e-6;
      const double late = noise(r, 3, static_cast<uint64_t>(k)) * 8e6;
      double tail = noise(r, 4, static_cast<uint64_t>(k)) * 3e3;
      if (noise(r, 5, static_cast<uint64_t>(k)) < 0.05)
        tail += 400e3;  // now and then something is wrong
      const double since = static_cast<double>(end - kBegin) + tail;
      const Nanos seen = kBegin + static_cast<Nanos>(std::llround(since + offset + drift * since));
      const auto length = static_cast<Nanos>(late + 50e3 * (1 + k % 5));
      Call call;
      call.communicator = g;
      call.sequence = next[g];
      call.collective = k % 3 == 0 ? Collective::kAllReduce : Collective::kAllGather;
      call.bytes_in = 1 << (10 + k % 12);
      w.trace.ranks[r].ops.add_call(0, 0, seen - length, length, 0, call);
    }
    ++next[g];
  }
  return w;
}

// Largest distance between ends of the same collective once the outliers are set aside.
double spread_of(const Trace& trace) {
  std::map<std::pair<uint32_t, int64_t>, std::vector<Nanos>> ends;
  for (const RankTrace& r : trace.ranks) {
    for (size_t op = 0; op < r.ops.size(); ++op) {
      const Call* c = r.ops.call(op);
      ends[{c->communicator, c->sequence}].push_back(r.ops.start[op] + r.ops.duration[op]);
    }
  }
  std::vector<double> away;
  for (auto& [key, list] : ends) {
    std::sort(list.begin(), list.end());
    for (const Nanos end : list)
      away.push_back(std::abs(static_cast<double>(end - list[list.size() / 2])));
  }
  std::sort(away.begin(), away.end());
  return away[away.size() * 90 / 100];
}

}  // namespace

TEST_CASE("offsets of 50 ms and drifts of 20 ppm are recovered within 5 us", "[import][clock]") {
  World w = make_world(8, 400, {{"all", "", {0, 1, 2, 3, 4, 5, 6, 7}, ""}}, 50, 20);
  CHECK(spread_of(w.trace) > 1e6);
  Findings findings;
  const ClockFit fit = align_clocks(w.trace, findings);
  CHECK(fit.aligned);
  CHECK(fit.collectives == 400);
  CHECK(fit.residual < 5'000);
  CHECK(spread_of(w.trace) < 5'000);
  CHECK(w.trace.header.clock_residual() == fit.residual);
  CHECK(findings.count("clocks-aligned") == 1);
  // Against the truth: what each clock read minus what the first read.
  for (uint32_t r = 1; r < 8; ++r) {
    const double offset = ((2 * noise(0, 1, 0) - 1) - (2 * noise(r, 1, 0) - 1)) * 50e6;
    const double drift = ((2 * noise(0, 2, 0) - 1) - (2 * noise(r, 2, 0) - 1)) * 20e-6;
    const double at_middle = offset + drift * 4e9;
    CHECK(std::abs(static_cast<double>(fit.offset[r]) - at_middle) < 5'000);
    CHECK(std::abs(fit.drift[r] - drift) < 2e-6);
  }
}

TEST_CASE("ranks that never meet directly are aligned through others", "[import][clock]") {
  World w = make_world(
      4, 600, {{"a", "", {0, 1}, ""}, {"b", "", {2, 3}, ""}, {"c", "", {1, 3}, ""}}, 50, 20);
  Findings findings;
  const ClockFit fit = align_clocks(w.trace, findings);
  CHECK(fit.aligned);
  CHECK(spread_of(w.trace) < 5'000);
  CHECK(findings.count("clock-not-connected") == 0);
}

TEST_CASE("the only collective of a host is not kept for checking", "[import][clock]") {
  World w = make_world(
      3, 3, {{"a", "", {0, 1}, ""}, {"a", "", {0, 1}, ""}, {"all", "", {0, 1, 2}, ""}}, 50, 0);
  Findings findings;
  const ClockFit fit = align_clocks(w.trace, findings);
  CHECK(fit.aligned);
  CHECK(findings.count("clock-not-connected") == 0);
  CHECK(spread_of(w.trace) < 1'000'000);
  CHECK(std::abs(fit.offset[2]) > 0);
  CHECK(fit.residual > 0);  // of what there is
}

TEST_CASE("ranks without a common collective stay as recorded and are told", "[import][clock]") {
  World w = make_world(4, 100, {{"a", "", {0, 1}, ""}, {"b", "", {2, 3}, ""}}, 50, 20);
  const Nanos before = w.trace.ranks[2].ops.start[0];
  Findings findings;
  align_clocks(w.trace, findings);
  CHECK(w.trace.ranks[2].ops.start[0] == before);
  CHECK(findings.count("clock-not-connected") == 2);
}

TEST_CASE("clocks that agree are left alone", "[import][clock]") {
  World w = make_world(4, 50, {{"all", "", {0, 1, 2, 3}, ""}}, 0, 0);
  const Nanos before = w.trace.ranks[3].ops.start[7];
  Findings findings;
  const ClockFit fit = align_clocks(w.trace, findings);
  CHECK_FALSE(fit.aligned);
  CHECK(w.trace.ranks[3].ops.start[7] == before);
}

TEST_CASE("clocks that are minutes apart are aligned and told, where they tell dates",
          "[import][clock]") {
  const auto told = [](Nanos later, Nanos since) {
    World w = make_world(2, 20, {{"all", "", {0, 1}, ""}}, 0, 0);
    for (RankTrace& rank : w.trace.ranks) {
      for (Nanos& start : rank.ops.start) start -= since;
    }
    for (Nanos& start : w.trace.ranks[1].ops.start) start += later;
    Findings findings;
    align_clocks(w.trace, findings);
    CHECK(spread_of(w.trace) < 5'000);
    return findings.count("clock-minutes-apart");
  };
  constexpr Nanos kSecond = 1'000'000'000;
  CHECK(told(900 * kSecond, 0) == 1);
  CHECK(told(30 * kSecond, 0) == 0);
  CHECK(told(900 * kSecond, 1'699'999'999 * kSecond) == 0);  // since the machines were started
}

TEST_CASE("few collectives give an offset and no invented drift", "[import][clock]") {
  World w = make_world(3, 4, {{"all", "", {0, 1, 2}, ""}}, 50, 0);
  Findings findings;
  const ClockFit fit = align_clocks(w.trace, findings);
  CHECK(fit.aligned);
  for (const double drift : fit.drift) CHECK(drift == 0);
}

}  // namespace rehearse::import_clock_test
