// SPDX-License-Identifier: Apache-2.0
// The catalogue says of each fault what it can look like. Random draws of every fault in the shipped jobs that it is met in
// must not look otherwise. Labelled slow.
#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>

#include "base/document.hpp"
#include "base/install.hpp"
#include "faults/diagnose/observable.hpp"
#include "faults/symptoms/classifier.hpp"
#include "faults/world.hpp"
#include "validation/blind/draw.hpp"
#include "validation/proto/campaign.pb.h"

namespace rehearse::listed_symptoms_test {
using namespace rehearse;
using namespace rehearse::validation;

namespace {

constexpr uint32_t kDraws = 2;

struct Job {
  pb::BlindJob job;
  sim::Scenario healthy;
  pb::Outcome baseline;
};

// Those of the campaigns that are shipped scenarios as they are.
std::vector<Job> shipped_jobs(const faults::World& world, Reporter& reporter) {
  pb::BlindJobs all;
  const auto path = shipped("validation/blind/jobs.yaml");
  REQUIRE(path);
  REQUIRE(read_document_file(path->string(), all));
  std::vector<Job> out;
  for (const pb::BlindJob& job : all.jobs()) {
    if (!job.set().empty()) continue;
    auto healthy = sim::load_scenario(job.scenario(), reporter);
    REQUIRE(healthy);
    auto baseline = world.simulate(*healthy);
    REQUIRE(baseline);
    out.push_back({job, std::move(*healthy), std::move(*baseline)});
  }
  return out;
}

bool met_in(const pb::Fault& fault, const Job& job) {
  const auto& kinds = fault.jobs();
  return kinds.empty() || std::find(kinds.begin(), kinds.end(), job.job.kind()) != kinds.end();
}

// Nothing: the job has no place for it.
std::optional<std::string> symptom_of(const faults::FaultUse& use, const Job& job,
                                      const faults::World& world) {
  const auto patches = faults::patches_of(use, job.healthy.document);
  if (!patches) return std::nullopt;
  sim::Scenario broken = job.healthy;
  for (const pb::Patch& patch : *patches) {
    if (!world.apply(broken, patch)) return std::nullopt;
  }
  const auto outcome = world.simulate(broken);
  if (!outcome) return std::nullopt;
  pb::Outcome seen = faults::observable(*outcome);
  *seen.mutable_baseline_step_time_ns() = job.baseline.step_time_ns();
  return faults::classify(seen).id();
}

}  // namespace

TEST_CASE("the catalogue lists every symptom that draws of its faults show",
          "[validation][campaign]") {
  SilentReporter reporter;
  const auto catalogue = faults::FaultCatalogue::load_shipped();
  REQUIRE(catalogue);
  const faults::World world = faults::simulated_world(reporter);
  const std::vector<Job> jobs = shipped_jobs(world, reporter);
  REQUIRE(jobs.size() >= 6);
  size_t noticed = 0;
  for (const auto& entry : catalogue->entries()) {
    const auto& listed = entry->fault.symptoms();
    Random random(29, entry->fault.id());
    for (const Job& job : jobs) {
      if (!met_in(entry->fault, job)) continue;
      const DrawFrom from{.document = job.healthy.document, .duration = job.baseline.end_ns()};
      for (uint32_t draw = 0; draw < kDraws; ++draw) {
        const faults::FaultUse use = draw_use(entry, from, random);
        const auto symptom = symptom_of(use, job, world);
        if (!symptom || *symptom == faults::kHealthy) continue;
        ++noticed;
        INFO(use.text() << " in " << job.job.name() << " shows " << *symptom);
        CHECK(std::find(listed.begin(), listed.end(), *symptom) != listed.end());
      }
    }
  }
  CHECK(noticed > catalogue->entries().size());
}

}  // namespace rehearse::listed_symptoms_test
