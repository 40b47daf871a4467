// SPDX-License-Identifier: Apache-2.0
#include "sim/fabric/fabric.hpp"

#include <catch2/catch.hpp>

#include "base/random.hpp"
#include "sim/fabric/folding.hpp"
#include "sim/worker.hpp"

namespace rehearse::fabric_test {
using namespace rehearse;
using namespace rehearse::sim;

namespace {

struct Change {
  Nanos when;
  LinkId link;
  BytesPerSec capacity;
};

struct Planned {
  Nanos start;
  RouteId route;
  double bytes;
};

// Starts flows at given times and writes down when each ended.
class Script final : public FabricListener {
 public:
  Script(Fabric& fabric, std::vector<Planned> flows, std::vector<Change> changes = {})
      : fabric_(fabric), flows_(std::move(flows)), changes_(std::move(changes)) {
    ends.assign(flows_.size(), -1);
    for (size_t i = 0; i < flows_.size(); ++i) fabric_.timer(flows_[i].start, i);
    for (size_t i = 0; i < changes_.size(); ++i) fabric_.timer(changes_[i].when, flows_.size() + i);
  }
  void on_timer(uint64_t tag) override {
    if (tag < flows_.size()) return fabric_.start(flows_[tag].route, flows_[tag].bytes, tag);
    const Change& change = changes_[tag - flows_.size()];
    changed &= fabric_.set_capacity(change.link, change.capacity);
  }
  void on_flow_end(uint64_t tag) override { ends[tag] = fabric_.now(); }
  std::vector<Nanos> ends;
  bool changed = true;

 private:
  Fabric& fabric_;
  std::vector<Planned> flows_;
  std::vector<Change> changes_;
};

struct World {
  std::vector<BytesPerSec> capacities;
  std::vector<std::vector<LinkWeight>> routes;
  std::vector<Planned> flows;
  std::vector<LinkId> kept;
  std::vector<Change> changes{};
};

Result<std::vector<Nanos>> play(Fabric& fabric, const World& world) {
  std::vector<RouteId> ids;  // equal routes share an id
  for (const auto& route : world.routes) ids.push_back(fabric.add_route(route));
  for (LinkId link : world.kept) fabric.keep(link);
  std::vector<Planned> flows = world.flows;
  for (Planned& flow : flows) flow.route = ids[flow.route];
  Script script(fabric, flows, world.changes);
  if (auto run = fabric.run(script); !run) return tl::unexpected(run.error());
  return script.ends;
}

std::vector<Nanos> play_reference(const World& world) {
  const auto fabric = make_reference_fabric(world.capacities);
  const auto ends = play(*fabric, world);
  REQUIRE(ends);
  return *ends;
}

// SimGrid in a child of its own, as in production.
std::vector<Nanos> play_simgrid(const World& world) {
  SilentReporter silent;
  const auto bytes = in_child(
      [&](Reporter&) -> Result<std::string> {
        const auto fabric = make_simgrid_fabric(world.capacities);
        RH_TRY(std::vector<Nanos> ends, play(*fabric, world));
        return std::string(reinterpret_cast<const char*>(ends.data()), ends.size() * sizeof(Nanos));
      },
      silent);
  REQUIRE(bytes);
  std::vector<Nanos> ends(bytes->size() / sizeof(Nanos));
  std::copy(bytes->begin(), bytes->end(), reinterpret_cast<char*>(ends.data()));
  return ends;
}

World random_world(uint64_t seed) {
  Random random(seed, "fabric_test");
  World world;
  const size_t links = 2 + random.below(12);
  for (size_t l = 0; l < links; ++l) {
    world.capacities.push_back(1e9 * static_cast<double>(1 + random.below(100)));
  }
  const size_t routes = 1 + random.below(6);
  for (size_t r = 0; r < routes; ++r) {
    std::vector<LinkWeight> route;
    for (LinkId l = 0; l < links; ++l) {
      if (random.below(3) == 0) route.push_back({l, static_cast<uint32_t>(1 + random.below(4))});
    }
    if (route.empty()) route.push_back({0, 1});
    world.routes.push_back(route);
  }
  const size_t flows = 1 + random.below(12);
  for (size_t f = 0; f < flows; ++f) {
    world.flows.push_back({static_cast<Nanos>(random.below(2'000'000)),
                           static_cast<RouteId>(random.below(routes)),
                           static_cast<double>(1 + random.below(50'000'000))});
  }
  return world;
}

}  // namespace

TEST_CASE("a flow alone takes bytes over capacity", "[sim][fabric]") {
  const World world{{1e9}, {{{0, 1}}}, {{1000, 0, 1e6}}, {}};
  CHECK(play_reference(world) == std::vector<Nanos>{1'001'000});
  CHECK(play_simgrid(world) == std::vector<Nanos>{1'001'000});
}

TEST_CASE("a link of weight two halves the rate of a flow", "[sim][fabric]") {
  const World world{{1e9}, {{{0, 2}}}, {{0, 0, 1e6}}, {}};
  CHECK(play_reference(world) == std::vector<Nanos>{2'000'000});
  CHECK(play_simgrid(world) == std::vector<Nanos>{2'000'000});
}

TEST_CASE("two flows share a link until the first has ended", "[sim][fabric]") {
  const World world{{1e9}, {{{0, 1}}}, {{0, 0, 1e6}, {0, 0, 3e6}}, {}};
  CHECK(play_reference(world) == std::vector<Nanos>{2'000'000, 4'000'000});
  CHECK(play_simgrid(world) == std::vector<Nanos>{2'000'000, 4'000'000});
}

TEST_CASE("eight rings get eight shares against one send", "[sim][fabric]") {
  // A ring of 8 channels (weight 8) and one send on a card: nine connections share it evenly.
  const World world{{9e9}, {{{0, 8}}, {{0, 1}}}, {{0, 0, 1e6}, {0, 1, 1e6}}, {}};
  CHECK(play_reference(world) == std::vector<Nanos>{1'000'000, 1'000'000});
  CHECK(play_simgrid(world) == std::vector<Nanos>{1'000'000, 1'000'000});
}

TEST_CASE("a flow without bytes ends at once", "[sim][fabric]") {
  const World world{{1e9}, {{{0, 1}}}, {{500, 0, 0}}, {}};
  CHECK(play_reference(world) == std::vector<Nanos>{500});
  CHECK(play_simgrid(world) == std::vector<Nanos>{500});
}

TEST_CASE("a flow over a link that is down never ends and is counted", "[sim][fabric]") {
  const auto fabric = make_reference_fabric({0.0, 1e9});
  const LinkWeight dead[] = {{0, 1}, {1, 1}};
  (void)fabric->add_route(dead);
  Script script(*fabric, {{0, 0, 1e6}});
  REQUIRE(fabric->run(script));
  CHECK(script.ends[0] == -1);
  CHECK(fabric->in_flight() == 1);
}

TEST_CASE("bytes on a link are what its routes put there", "[sim][fabric]") {
  const auto fabric = make_reference_fabric({1e9, 1e9});
  const LinkWeight both[] = {{0, 2}, {1, 1}};
  const LinkWeight one[] = {{1, 1}};
  (void)fabric->add_route(both);
  (void)fabric->add_route(one);
  Script script(*fabric, {{0, 0, 100}, {0, 1, 50}});
  REQUIRE(fabric->run(script));
  CHECK(fabric->bytes_by_link() == std::vector<double>{200, 150});
}

TEST_CASE("SimGrid and the reference solver agree on random traffic", "[sim][fabric]") {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const World world = random_world(seed);
    const std::vector<Nanos> expected = play_reference(world);
    const std::vector<Nanos> got = play_simgrid(world);
    REQUIRE(got.size() == expected.size());
    for (size_t f = 0; f < got.size(); ++f) {
      INFO("seed " << seed << " flow " << f);
      // SimGrid merges events within a nanosecond.
      CHECK(std::abs(got[f] - expected[f]) <= 8);
    }
  }
}

TEST_CASE("folded links give the same times as unfolded ones", "[sim][fabric]") {
  for (uint64_t seed = 100; seed < 300; ++seed) {
    World world = random_world(seed);
    const std::vector<Nanos> folded = play_reference(world);
    for (LinkId l = 0; l < world.capacities.size(); ++l) world.kept.push_back(l);
    const std::vector<Nanos> unfolded = play_reference(world);
    for (size_t f = 0; f < folded.size(); ++f) {
      INFO("seed " << seed << " flow " << f);
      CHECK(std::abs(folded[f] - unfolded[f]) <= 1);
    }
  }
}

TEST_CASE("a ring over a thousand equal links folds to one constraint", "[sim][fabric]") {
  std::vector<BytesPerSec> capacities(1000, 25e9);
  capacities[17] = 20e9;
  std::vector<LinkWeight> ring;
  for (LinkId l = 0; l < 1000; ++l) ring.push_back({l, 1 + l % 2});
  const Folding folding = fold(capacities, {ring}, std::vector<bool>(1000, false));
  REQUIRE(folding.capacity.size() == 1);
  // Links of weight 2 offer half their capacity to a ring.
  CHECK(folding.capacity[0] == Approx(10e9));
}

TEST_CASE("a link that changes in the middle of a flow changes its end exactly", "[sim][fabric]") {
  // 1 MB at 1 GB/s; at 0.5 ms the link drops to a quarter: 0.5 ms + 0.5 MB / 0.25 GB/s.
  const World world{{1e9}, {{{0, 1}}}, {{0, 0, 1e6}}, {0}, {{500'000, 0, 0.25e9}}};
  CHECK(play_reference(world) == std::vector<Nanos>{2'500'000});
  CHECK(play_simgrid(world) == std::vector<Nanos>{2'500'000});
}

TEST_CASE("a flow stands still while its link is down and goes on after", "[sim][fabric]") {
  const World world{{1e9, 2e9},
                    {{{0, 1}}, {{1, 1}}},
                    {{0, 0, 1e6}, {200'000, 0, 1e5}, {0, 1, 1e6}},
                    {0},
                    {{100'000, 0, 0}, {700'000, 0, 1e9}}};
  // Both share the link after it is back: the second has 0.1 MB, the first 0.9 MB left.
  const std::vector<Nanos> expected = {1'700'000, 900'000, 500'000};
  CHECK(play_reference(world) == expected);
  CHECK(play_simgrid(world) == expected);
}

TEST_CASE("a flow over links that come back one after the other goes on after the last",
          "[sim][fabric]") {
  // Both links go down in the middle of the first flow; the second begins while they are down.
  const World world{{1e9, 1e9, 1e9},
                    {{{0, 1}, {1, 1}}, {{1, 1}, {2, 1}}},
                    {{0, 0, 2'000'000}, {1'500'000, 0, 1'000'000}, {0, 1, 5'000'000}},
                    {0, 1},
                    {{1'000'000, 0, 0},
                     {1'000'000, 1, 0},
                     {2'000'000, 0, 1e9},
                     {4'000'000, 1, 1e9},
                     {4'100'000, 0, 0},
                     {5'100'000, 0, 1e9}}};
  const std::vector<Nanos> reference = play_reference(world);
  for (const Nanos end : reference) CHECK(end > 5'100'000);
  CHECK(play_simgrid(world) == reference);
}

TEST_CASE("SimGrid and the reference solver agree on random outages", "[sim][fabric]") {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    World world = random_world(seed);
    Random random(seed, "outages");
    for (LinkId l = 0; l < world.capacities.size(); ++l) {
      if (random.below(2) == 0) continue;
      world.kept.push_back(l);
      auto when = static_cast<Nanos>(random.below(2'000'000));
      for (int i = 0; i < 3; ++i) {
        world.changes.push_back({when, l, 0});
        when += static_cast<Nanos>(1 + random.below(1'000'000));
        world.changes.push_back({when, l, world.capacities[l]});
        when += static_cast<Nanos>(1 + random.below(1'000'000));
      }
    }
    const std::vector<Nanos> reference = play_reference(world), simgrid = play_simgrid(world);
    for (size_t f = 0; f < reference.size(); ++f) {
      CHECK(reference[f] > 0);
      CHECK(std::abs(simgrid[f] - reference[f]) <= 20);
    }
  }
}

TEST_CASE("a link that is not kept cannot change", "[sim][fabric]") {
  const auto fabric = make_reference_fabric({1e9});
  CHECK_FALSE(fabric->set_capacity(0, 1e8));
  fabric->keep(0);
  CHECK(fabric->set_capacity(0, 1e8));
}

TEST_CASE("flows that are halted never end and leave their share to others", "[sim][fabric]") {
  class Halt final : public FabricListener {
   public:
    explicit Halt(Fabric& f) : fabric(f) {}
    void on_timer(uint64_t tag) override {
      if (tag == 9) return fabric.halt(~uint64_t{0}, 0);
      fabric.start(0, 1e6, tag);
    }
    void on_flow_end(uint64_t tag) override { ends[tag] = fabric.now(); }
    Fabric& fabric;
    Nanos ends[2] = {-1, -1};
  };
  const auto fabric = make_reference_fabric({1e9});
  const LinkWeight link[] = {{0, 1}};
  (void)fabric->add_route(link);
  Halt script(*fabric);
  fabric->timer(0, 0);
  fabric->timer(0, 1);
  fabric->timer(1'000'000, 9);  // both have moved half
  REQUIRE(fabric->run(script));
  CHECK(script.ends[0] == -1);
  CHECK(script.ends[1] == 1'500'000);
  CHECK(fabric->in_flight() == 1);
}

TEST_CASE("folding holds while capacities change at random times", "[sim][fabric]") {
  for (uint64_t seed = 400; seed < 600; ++seed) {
    World world = random_world(seed);
    Random random(seed, "fabric_test changes");
    const size_t changes = 1 + random.below(6);
    for (size_t i = 0; i < changes; ++i) {
      const auto link = static_cast<LinkId>(random.below(world.capacities.size()));
      world.kept.push_back(link);
      world.changes.push_back({static_cast<Nanos>(random.below(20'000'000)), link,
                               1e9 * static_cast<double>(random.below(60))});
    }
    const std::vector<Nanos> folded = play_reference(world);
    const std::vector<Nanos> simgrid = seed < 440 ? play_simgrid(world) : folded;
    for (LinkId l = 0; l < world.capacities.size(); ++l) world.kept.push_back(l);
    const std::vector<Nanos> unfolded = play_reference(world);
    for (size_t f = 0; f < folded.size(); ++f) {
      INFO("seed " << seed << " flow " << f);
      CHECK(std::abs(folded[f] - unfolded[f]) <= 1);
      CHECK(std::abs(folded[f] - simgrid[f]) <= 16);
    }
  }
}

TEST_CASE("flows of routes that meet nobody go as a solver would let them", "[sim][fabric]") {
  for (uint64_t seed = 700; seed < 800; ++seed) {
    Random random(seed, "fabric_test lone");
    // Routes that meet nobody: one to three links each.
    World world;
    const size_t routes = 1 + random.below(3);
    for (size_t r = 0; r < routes; ++r) {
      std::vector<LinkWeight> route;
      const size_t links = 1 + random.below(3);
      for (size_t l = 0; l < links; ++l) {
        route.push_back({static_cast<LinkId>(world.capacities.size()),
                         static_cast<uint32_t>(1 + random.below(4))});
        world.capacities.push_back(1e9 * static_cast<double>(1 + random.below(100)));
      }
      world.routes.push_back(route);
    }
    const size_t flows = 1 + random.below(12);
    for (size_t f = 0; f < flows; ++f) {
      world.flows.push_back({static_cast<Nanos>(random.below(500'000)),
                             static_cast<RouteId>(random.below(routes)),
                             static_cast<double>(1 + random.below(20'000'000))});
    }
    const std::vector<Nanos> alone = play_reference(world);
    // Kept links go to the solver.
    for (LinkId l = 0; l < world.capacities.size(); ++l) world.kept.push_back(l);
    const std::vector<Nanos> solved = play_reference(world);
    for (size_t f = 0; f < alone.size(); ++f) {
      INFO("seed " << seed << " flow " << f);
      CHECK(std::abs(alone[f] - solved[f]) <= 8);
    }
  }
}

TEST_CASE("only flows over a crowded link reach the solver", "[sim][fabric]") {
  // Two cards of 10 GB/s below a switch of 20: both fit. A third flow on card 0 fits neither there nor,
  // by its bound, in the switch.
  const World fits{
      {10e9, 10e9, 20e9}, {{{0, 1}, {2, 1}}, {{1, 1}, {2, 1}}}, {{0, 0, 1e6}, {0, 1, 2e6}}, {}};
  World crowded = fits;
  crowded.flows.push_back({50'000, 0, 1e6});
  for (const bool third : {false, true}) {
    const World& world = third ? crowded : fits;
    const auto fabric = make_reference_fabric(world.capacities);
    const auto ends = play(*fabric, world);
    REQUIRE(ends);
    CHECK((*ends)[1] == 200'000);
    CHECK((*ends)[0] == (third ? 150'000 : 100'000));
    if (third) CHECK((*ends)[2] == 200'000);
    CHECK(fabric->counters().shared == (third ? 3u : 0u));
  }
}

TEST_CASE("a flow alone on its links that would take longer than time lasts is refused",
          "[sim][fabric]") {
  const World world{{1e-6}, {{{0, 1}}}, {{0, 0, 1e9}}, {}};
  const auto fabric = make_reference_fabric(world.capacities);
  const auto ends = play(*fabric, world);
  REQUIRE_FALSE(ends);
  CHECK(ends.error().code == Code::kLimit);
}

TEST_CASE("halted flows alone on their links never end and leave their share", "[sim][fabric]") {
  class Halt final : public FabricListener {
   public:
    explicit Halt(Fabric& f) : fabric(f) {}
    void on_timer(uint64_t tag) override {
      if (tag == 9) return fabric.halt(~uint64_t{0}, 1);
      fabric.start(0, 1e6, tag);
    }
    void on_flow_end(uint64_t tag) override { ends[tag] = fabric.now(); }
    Fabric& fabric;
    Nanos ends[3] = {-1, -1, -1};
  };
  SilentReporter silent;
  // By SimGrid too: it has nothing to share here, only the clock.
  const auto played = in_child(
      [&](Reporter&) -> Result<std::string> {
        const auto fabric = make_simgrid_fabric({3e9});
        const LinkWeight link[] = {{0, 1}};
        (void)fabric->add_route(link);
        Halt script(*fabric);
        for (uint64_t tag = 0; tag < 3; ++tag) fabric->timer(0, tag);
        fabric->timer(500'000, 9);  // all have moved half
        if (auto run = fabric->run(script); !run) return tl::unexpected(run.error());
        return std::to_string(script.ends[0]) + " " + std::to_string(script.ends[1]) + " " +
               std::to_string(script.ends[2]) + " " + std::to_string(fabric->in_flight());
      },
      silent);
  REQUIRE(played);
  // The other two have 0.5 MB left at 1.5 GB/s each.
  CHECK(*played == "833333 -1 833333 1");
}

}  // namespace rehearse::fabric_test
