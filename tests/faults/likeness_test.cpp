// SPDX-License-Identifier: Apache-2.0
// What a cause leaves unexplained: parts that stand out and that it does not make, however well the rest agrees.
#include "faults/diagnose/likeness.hpp"

#include <catch2/catch.hpp>

namespace rehearse::likeness_test {
using namespace rehearse;
using namespace rehearse::faults;

namespace {

Change of(double value) { return {.value = value, .noise = 0.03 + 0.12 * value}; }

// Sixteen ranks that compute a quarter of a step longer, and some of them more.
Changes computing(std::initializer_list<int> slow) {
  Changes out;
  for (int rank = 0; rank < 16; ++rank) {
    out[Aspect::kCompute]["rank " + std::to_string(rank)] = of(0.25);
  }
  for (const int rank : slow) out[Aspect::kCompute]["rank " + std::to_string(rank)] = of(0.7);
  out[Aspect::kStep]["mean"] = of(0.55);
  return out;
}

}  // namespace

TEST_CASE("one slow rank does not explain four, although most ranks agree", "[faults][diagnose]") {
  const Changes four = computing({3, 7, 11, 15});
  const Likeness one = likeness(four, computing({7}));
  CHECK(one.score > 0.7);
  REQUIRE(one.unexplained.size() == 1);
  CHECK(one.unexplained.front() == Aspect::kCompute);
  CHECK(likeness(four, four).unexplained.empty());
}

TEST_CASE("a link that is far busier must be explained, one that is less busy need not",
          "[faults][diagnose]") {
  Changes seen = computing({0}), made = computing({0});
  seen[Aspect::kLinks]["node0/plx0/pcie-down"] = of(0.6);
  CHECK(likeness(seen, made).unexplained == std::vector<Aspect>{Aspect::kLinks});
  made[Aspect::kLinks]["node0/plx0/pcie-down"] = of(0.4);
  CHECK(likeness(seen, made).unexplained.empty());
  Changes idle = computing({0});
  idle[Aspect::kLinks]["node0/mlx5_0/tx"] = {.value = -0.6, .noise = 0.1};
  CHECK(likeness(idle, computing({0})).unexplained.empty());
}

TEST_CASE("ranks that stand out elsewhere are counted, their places are the likeness's affair",
          "[faults][diagnose]") {
  const Likeness other = likeness(computing({3, 7, 11, 15}), computing({0, 4, 8, 12}));
  CHECK(other.score < likeness(computing({3, 7}), computing({3, 7})).score);
  CHECK(likeness(computing({3, 7}), computing({4, 8})).unexplained.empty());
}

TEST_CASE("noise that is scaled up looks like anything, and is known for it",
          "[faults][diagnose]") {
  const Changes seen = computing({3});
  Changes nothing = computing({});
  for (auto& [rank, change] : nothing[Aspect::kCompute]) change = {.value = 0, .noise = 0.03};
  nothing[Aspect::kStep]["mean"] = {.value = 0.003, .noise = 0.03};
  CHECK(likeness(seen, nothing, 200).score == 1);
  CHECK_FALSE(is_clear(nothing));
  CHECK(is_clear(seen));
  CHECK(is_clear(Changes{}));  // its size is not a time
}

TEST_CASE("a figure that may be chance contradicts nothing", "[faults][diagnose]") {
  Changes seen;
  seen[Aspect::kFindings]["wrong-result D2.4"] = {1, 0};
  const Changes made = seen;
  seen[Aspect::kCompute]["rank 8"] = of(0.1);
  Changes with_rank = made;
  with_rank[Aspect::kCompute]["rank 8"] = of(0);
  CHECK(likeness(seen, with_rank).unexplained.empty());
  seen[Aspect::kCompute]["rank 8"] = of(0.3);
  CHECK(likeness(seen, with_rank).unexplained == std::vector<Aspect>{Aspect::kCompute});
}

}  // namespace rehearse::likeness_test
