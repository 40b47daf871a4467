// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <tuple>

#include "traces/synth/pipeline.hpp"

namespace rehearse::synth::synth_schedule_test {
namespace {

// Time of the last pass when a chunk's forward takes 1 and its backward 2, and messages no time.
double makespan(const Pipeline& p) {
  std::vector<std::vector<Work>> works;
  for (uint32_t s = 0; s < p.stages; ++s) works.push_back(schedule(p, s));
  std::map<std::tuple<Pass, uint32_t, uint32_t>, double> done;  // pass, micro-batch, virtual stage
  std::vector<size_t> next(p.stages, 0);
  std::vector<double> clock(p.stages, 0);
  const uint32_t virtual_stages = p.stages * p.chunks;
  bool moved = true;
  while (moved) {
    moved = false;
    for (uint32_t s = 0; s < p.stages; ++s) {
      while (next[s] < works[s].size()) {
        const Work& w = works[s][next[s]];
        const uint32_t v = w.chunk * p.stages + s;
        double start = clock[s];
        std::vector<std::tuple<Pass, uint32_t, uint32_t>> needs;
        if (w.pass == Pass::kForward && v > 0)
          needs.push_back({Pass::kForward, w.micro_batch, v - 1});
        if (w.pass == Pass::kBackward) {
          needs.push_back({Pass::kForward, w.micro_batch, v});
          if (v + 1 < virtual_stages) needs.push_back({Pass::kBackward, w.micro_batch, v + 1});
        }
        bool ready = true;
        for (const auto& need : needs) {
          ready = ready && done.count(need) > 0;
          if (ready) start = std::max(start, done[need]);
        }
        if (!ready) break;
        clock[s] = start + (w.pass == Pass::kForward ? 1 : 2);
        done[{w.pass, w.micro_batch, v}] = clock[s];
        ++next[s];
        moved = true;
      }
    }
  }
  for (uint32_t s = 0; s < p.stages; ++s) REQUIRE(next[s] == works[s].size());
  return *std::max_element(clock.begin(), clock.end());
}

std::string text(const std::vector<Work>& works) {
  std::string line;
  for (const Work& w : works)
    line += (w.pass == Pass::kForward ? 'F' : 'B') + std::to_string(w.micro_batch) + ' ';
  return line;
}

}  // namespace

TEST_CASE("one forward, one backward after a warm-up of the stages behind", "[traces][synth]") {
  CHECK(text(schedule({2, 4, 1}, 0)) == "F0 F1 B0 F2 B1 F3 B2 B3 ");
  CHECK(text(schedule({2, 4, 1}, 1)) == "F0 B0 F1 B1 F2 B2 F3 B3 ");
  CHECK(text(schedule({4, 2, 1}, 0)) == "F0 F1 B0 B1 ");
  CHECK(text(schedule({1, 2, 1}, 0)) == "F0 B0 F1 B1 ");
}

TEST_CASE("every stage passes every micro-batch and chunk once each way", "[traces][synth]") {
  for (const Pipeline& p : {Pipeline{4, 8, 1}, Pipeline{4, 8, 2}, Pipeline{3, 3, 4}}) {
    for (uint32_t s = 0; s < p.stages; ++s) {
      std::map<std::tuple<Pass, uint32_t, uint32_t>, int> seen;
      for (const Work& w : schedule(p, s)) ++seen[{w.pass, w.micro_batch, w.chunk}];
      CHECK(seen.size() == 2 * p.micro_batches * p.chunks);
    }
  }
}

TEST_CASE("the bubble is (stages - 1) / (micro-batches * chunks) of the ideal time",
          "[traces][synth]") {
  for (const Pipeline& p :
       {Pipeline{1, 8, 1}, Pipeline{2, 8, 1}, Pipeline{4, 8, 1}, Pipeline{8, 32, 1},
        Pipeline{4, 8, 2}, Pipeline{4, 16, 4}, Pipeline{3, 9, 3}}) {
    INFO(p.stages << " stages, " << p.micro_batches << " micro-batches, " << p.chunks << " chunks");
    const double ideal = 3.0 * p.micro_batches * p.chunks;
    const double bubble = (p.stages - 1.0) / (p.micro_batches * p.chunks);
    CHECK(makespan(p) == Approx(ideal * (1 + bubble)));
  }
}

}  // namespace rehearse::synth::synth_schedule_test
