// SPDX-License-Identifier: Apache-2.0
// Faults are joined into one class, and places of a fault are taken for unseen, only when nothing observable tells them apart.
#include "faults/fault_classes.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "base/random.hpp"
#include "base/text.hpp"
#include "faults/diagnose/diagnose.hpp"
#include "faults/diagnose/likeness.hpp"
#include "faults/diagnose/observable.hpp"
#include "faults/fault_use.hpp"
#include "faults/world.hpp"

namespace rehearse::fault_classes_test {
using namespace rehearse;
using namespace rehearse::faults;

namespace {

constexpr int kPlaces = 4;

// "8-15": the ranks of a node.
std::string ranks_on(uint64_t node, const pb::Scenario& document) {
  std::vector<uint32_t> ranks;
  for (const pb::RankLaunch& rank : document.launch().ranks()) {
    if (rank.node() == node) ranks.push_back(rank.rank());
  }
  return format_ranks(ranks);
}

// The same place and moment in all faults of a class, another one for each number.
FaultUse moved(const FaultUse& use, const pb::Scenario& document, int64_t duration, int number) {
  using Kind = pb::Parameter;
  FaultUse out = use;
  // Draws in a fixed order, so that faults with fewer parameters get the same ones.
  Random random(17, "places", static_cast<uint64_t>(number));
  const uint64_t node = random.below(static_cast<uint64_t>(document.platform().nodes_size()));
  const uint64_t rank = random.below(static_cast<uint64_t>(document.launch().ranks_size()));
  const pb::Node& where = document.platform().nodes(static_cast<int>(node));
  const uint64_t gpu = random.below(static_cast<uint64_t>(std::max(1, where.gpus_size())));
  const uint64_t nic = random.below(static_cast<uint64_t>(std::max(1, where.nics_size())));
  const auto moment =
      static_cast<int64_t>(static_cast<double>(duration) * (0.1 + 0.8 * random.uniform()));
  for (const pb::Parameter& p : use.fault().parameters()) {
    const std::string value = p.kind() == Kind::NODE     ? std::to_string(node)
                              : p.kind() == Kind::RANK   ? std::to_string(rank)
                              : p.kind() == Kind::RANKS  ? ranks_on(node, document)
                              : p.kind() == Kind::GPU    ? std::to_string(gpu)
                              : p.kind() == Kind::NIC    ? std::to_string(nic)
                              : p.kind() == Kind::MOMENT ? std::to_string(moment) + "ns"
                                                         : "";
    if (value.empty()) continue;
    auto changed = with_value(out, p.name(), value);
    REQUIRE(changed);
    out = std::move(*changed);
  }
  return out;
}

// A job, and what is seen of it with a fault.
struct Seen {
  pb::Verdict verdict = pb::VERDICT_UNSPECIFIED;
  Changes changes;
};

class Job {
 public:
  Job(const std::string& scenario, const sim::Assignments& written, const World& world,
      Reporter& reporter)
      : world_(world) {
    auto healthy = sim::load_scenario(scenario, written, reporter);
    REQUIRE(healthy);
    healthy_ = std::move(*healthy);
    auto baseline = world.simulate(healthy_);
    REQUIRE(baseline);
    baseline_ = std::move(*baseline);
  }

  [[nodiscard]] const pb::Scenario& document() const { return healthy_.document; }
  [[nodiscard]] int64_t duration() const { return baseline_.end_ns(); }

  // `unrecorded`: nothing was recorded of the ranks at the fault's place.
  [[nodiscard]] Seen with(const FaultUse& use, bool unrecorded = false) const {
    const auto patches = patches_of(use, healthy_.document);
    REQUIRE(patches);
    sim::Scenario broken = healthy_;
    for (const pb::Patch& patch : *patches) REQUIRE(world_.apply(broken, patch));
    auto outcome = world_.simulate(broken);
    REQUIRE(outcome);
    pb::Cause there;
    if (unrecorded) add_culprits(use, healthy_.document, there);
    for (const pb::Culprit& culprit : there.culprits()) {
      if (culprit.has_rank()) outcome->add_not_recorded(culprit.rank());
    }
    return {outcome->verdict(), changes_of(observable(*outcome), observable(baseline_))};
  }

 private:
  const World& world_;
  sim::Scenario healthy_;
  pb::Outcome baseline_;
};

}  // namespace

TEST_CASE("faults of one class have observable runs that are equal within noise",
          "[faults][classes]") {
  SilentReporter reporter;
  const auto catalogue = FaultCatalogue::load_shipped();
  const auto classes = FaultClasses::load_shipped();
  REQUIRE(catalogue);
  REQUIRE(classes);
  const World world = simulated_world(reporter);
  for (const pb::FaultClass& row : classes->table().classes()) {
    INFO(row.why());
    REQUIRE(row.alike_size() > 1);
    CHECK_FALSE(row.collect().empty());
    sim::Assignments settings(row.set().begin(), row.set().end());
    std::sort(settings.begin(), settings.end());
    const Job job(row.scenario(), settings, world, reporter);
    // As written, and at places and moments that nobody chose.
    for (int place = 0; place <= kPlaces; ++place) {
      std::vector<Seen> seen, recorded;
      std::vector<std::string> uses;
      for (const pb::AlikeFault& fault : row.alike()) {
        INFO(fault.use());
        CHECK(fault.use().starts_with(fault.id()));
        const auto written = parse_fault(fault.use(), *catalogue);
        REQUIRE(written);
        const FaultUse use =
            place == 0 ? *written : moved(*written, job.document(), job.duration(), place);
        seen.push_back(job.with(use, row.unrecorded()));
        // Where everything is recorded they are told apart, or it would be a class of all jobs.
        if (row.unrecorded()) recorded.push_back(job.with(use));
        uses.push_back(use.text());
      }
      for (size_t i = 1; i < recorded.size(); ++i) {
        CHECK(likeness(recorded[0].changes, recorded[i].changes).score < kExplains);
      }
      for (size_t i = 1; i < seen.size(); ++i) {
        INFO(uses[0] << " and " << uses[i]);
        CHECK(seen[i].verdict == seen[0].verdict);
        CHECK(likeness(seen[0].changes, seen[i].changes).score > kSameWithinNoise);
      }
    }
  }
}

TEST_CASE("places that are taken for unseen have observable runs that are equal within noise",
          "[faults][classes]") {
  SilentReporter reporter;
  const auto catalogue = FaultCatalogue::load_shipped();
  const auto classes = FaultClasses::load_shipped();
  REQUIRE(catalogue);
  REQUIRE(classes);
  const World world = simulated_world(reporter);
  for (const pb::UnseenPlace& row : classes->table().places()) {
    INFO(row.id() << ": " << row.why());
    REQUIRE(row.uses_size() > 1);
    CHECK_FALSE(row.collect().empty());
    const Job job(row.scenario(), {}, world, reporter);
    std::vector<Seen> seen;
    for (const std::string& text : row.uses()) {
      CHECK(text.starts_with(row.id() + ":"));
      const auto use = parse_fault(text, *catalogue);
      REQUIRE(use);
      seen.push_back(job.with(*use));
    }
    for (size_t i = 1; i < seen.size(); ++i) {
      INFO(row.uses(0) << " and " << row.uses(static_cast<int>(i)));
      CHECK(seen[i].verdict == seen[0].verdict);
      CHECK(likeness(seen[0].changes, seen[i].changes).score > kSameWithinNoise);
    }
  }
}

}  // namespace rehearse::fault_classes_test
