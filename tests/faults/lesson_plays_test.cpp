// SPDX-License-Identifier: Apache-2.0
// Every shipped lab played through the real engine: the broken job shows its symptom, the reference solution passes,
// doing nothing, a longer timeout and the wrong repairs fail with the right remark. Minutes; not part of the fast tests.
#include <fmt/format.h>

#include "faults/lessons/play.hpp"
#include "tests/faults/lessons.hpp"

namespace rehearse::lesson_plays_test {
using namespace rehearse;
using namespace rehearse::faults;
using rehearse::faults::testing::job_of;
using rehearse::faults::testing::shipped_labs;

namespace {

// Labs whose place in the list leaves this remainder; with seeds of their own, so that more places are tried.
void play_every_fourth(size_t remainder) {
  SilentReporter reporter;
  const auto& labs = shipped_labs().entries();
  for (size_t i = remainder; i < labs.size(); i += 4) {
    const std::string id = labs[i]->lab.id();
    for (const uint64_t seed : {uint64_t{1}, uint64_t{100 + i}}) {
      const auto played = play_lab(job_of(id, seed), reporter);
      if (!played) FAIL_CHECK(id << ": " << played.error().message());
      if (!played) continue;
      CHECK(played->size() >= 6);
      for (const Played& each : *played) {
        INFO(fmt::format("{} seed {}, {}: {}", id, seed, each.what, each.said));
        CHECK(each.as_promised);
      }
    }
  }
}

}  // namespace

TEST_CASE("labs do what they promise, first quarter", "[lessons]") { play_every_fourth(0); }
TEST_CASE("labs do what they promise, second quarter", "[lessons]") { play_every_fourth(1); }
TEST_CASE("labs do what they promise, third quarter", "[lessons]") { play_every_fourth(2); }
TEST_CASE("labs do what they promise, last quarter", "[lessons]") { play_every_fourth(3); }

}  // namespace rehearse::lesson_plays_test
