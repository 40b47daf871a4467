// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/diagnose.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "faults/diagnose/candidates.hpp"
#include "faults/diagnose/trial.hpp"
#include "faults/symptoms/classifier.hpp"

namespace rehearse::faults {
namespace {

struct Ranked {
  pb::Cause cause;
  double prior = 0;
};

bool better(const Ranked& a, const Ranked& b) {
  const double x = a.cause.score(), y = b.cause.score();
  if (a.cause.simulated() != b.cause.simulated()) return a.cause.simulated();
  if (x != y) return x > y;
  if (a.prior != b.prior) return a.prior > b.prior;
  return a.cause.use() < b.cause.use();
}

// The place of the fault, as culprits.
void add_culprits(const FaultUse& use, pb::Cause& cause) {
  using Parameter = pb::Parameter;
  const auto number = [&](const pb::Parameter& p) {
    return static_cast<uint32_t>(std::stoul(use.values.at(p.name())));
  };
  for (const pb::Parameter& p : use.fault().parameters()) {
    if (p.kind() != Parameter::RANK && p.kind() != Parameter::NODE && p.kind() != Parameter::LINK)
      continue;
    pb::Culprit& culprit = *cause.add_culprits();
    culprit.set_why(use.fault().name());
    if (p.kind() == Parameter::RANK) {
      culprit.set_kind("rank");
      culprit.set_rank(number(p));
    } else if (p.kind() == Parameter::NODE) {
      culprit.set_kind("node");
      culprit.set_node(number(p));
    } else {
      culprit.set_kind("link");
      culprit.set_link(use.values.at(p.name()));
    }
  }
}

Ranked unsimulated(const Candidate& candidate, const std::string& why) {
  Ranked out{.cause = {}, .prior = candidate.prior};
  out.cause.set_fault(candidate.use.fault().id());
  out.cause.set_name(candidate.use.fault().name());
  out.cause.set_use(candidate.use.text());
  for (const std::string& text : candidate.evidence) out.cause.add_evidence(text);
  if (!why.empty()) out.cause.add_against("not simulated: " + why);
  add_culprits(candidate.use, out.cause);
  return out;
}

Ranked simulated(const Candidate& candidate, const Trial& trial, double baseline) {
  Candidate fitted = candidate;
  fitted.use = trial.use;
  Ranked out = unsimulated(fitted, {});
  const double explained =
      baseline < 1 ? (trial.likeness.score - baseline) / (1 - baseline) : trial.likeness.score;
  // Scores closer than a thousandth are equal; the prior decides between them.
  out.cause.set_score(std::round(1000 * std::clamp(explained, 0.0, 1.0)) / 1000);
  out.cause.set_simulated(true);
  for (const std::string& text : trial.likeness.same) out.cause.add_evidence(text);
  for (const std::string& text : trial.likeness.different) out.cause.add_against(text);
  return out;
}

}  // namespace

Result<pb::Diagnosis> diagnose(const DiagnoseRequest& request, const FaultCatalogue& catalogue,
                               const World& world) {
  pb::Diagnosis diagnosis;
  diagnosis.set_schema("rehearse.diagnosis/1");
  diagnosis.set_scenario(request.evidence.scenario());
  pb::Outcome evidence = request.evidence;
  if (request.baseline && !evidence.has_baseline_step_time_ns()) {
    *evidence.mutable_baseline_step_time_ns() = request.baseline->step_time_ns();
  }
  *diagnosis.mutable_symptom() = classify(evidence);
  if (diagnosis.symptom().id() == kHealthy) return diagnosis;

  const Clues clues{.outcome = evidence,
                    .symptom = diagnosis.symptom(),
                    .healthy = request.healthy.document,
                    .configured = request.configured};
  RH_TRY(const std::vector<Candidate> candidates, find_candidates(clues, catalogue));
  const double baseline = request.baseline ? likeness(evidence, *request.baseline).score : 0;
  Laboratory laboratory(request.healthy, evidence, world, request.max_simulations);
  std::map<std::string, Ranked> best;  // of each fault
  for (const Candidate& candidate : candidates) {
    const auto trial = laboratory.best_fit(candidate.use);
    if (!trial && trial.error().code == Code::kInterrupted) return tl::unexpected(trial.error());
    Ranked ranked = trial ? simulated(candidate, *trial, baseline)
                          : unsimulated(candidate, trial.error().message());
    const auto [entry, fresh] = best.try_emplace(candidate.use.fault().id(), ranked);
    if (!fresh && better(ranked, entry->second)) entry->second = std::move(ranked);
  }
  std::vector<Ranked> ranked;
  ranked.reserve(best.size());
  for (auto& [id, cause] : best) ranked.push_back(std::move(cause));
  std::sort(ranked.begin(), ranked.end(), better);
  for (Ranked& cause : ranked) *diagnosis.add_causes() = std::move(cause.cause);
  diagnosis.set_simulations(laboratory.simulations());
  return diagnosis;
}

}  // namespace rehearse::faults
