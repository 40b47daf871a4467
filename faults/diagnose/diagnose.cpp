// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/diagnose.hpp"

#include <fmt/format.h>
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <span>

#include "base/document.hpp"
#include "faults/diagnose/alike.hpp"
#include "faults/diagnose/candidates.hpp"
#include "faults/diagnose/elsewhere.hpp"
#include "faults/diagnose/job_logs.hpp"
#include "faults/diagnose/observable.hpp"
#include "faults/diagnose/suspects.hpp"
#include "faults/diagnose/trial.hpp"
#include "faults/diagnose/two_causes.hpp"
#include "faults/symptoms/classifier.hpp"
#include "sim/scenario/scenario.hpp"

namespace rehearse::faults {
namespace {

// One cause alone that reaches this needs no second one, and two, which fit more freely, must reach it.
constexpr double kEnough = 0.8;

bool explains(const Likeness& likeness) {
  return likeness.score >= kExplains && likeness.unexplained.empty();
}

// Nothing more has to be looked for: the best explains the evidence well.
bool settled(const std::vector<Suspected>& all) {
  return !all.empty() && all[0].trial && explains(all[0].trial->likeness) &&
         all[0].trial->likeness.score >= kEnough;
}

pb::Cause cause_of(const Suspected& suspected, const pb::Scenario& document) {
  const Candidate& candidate = suspected.places[suspected.best];
  const FaultUse& use = suspected.trial ? suspected.trial->use : candidate.use;
  pb::Cause cause;
  cause.set_fault(use.fault().id());
  cause.set_name(use.fault().name());
  cause.set_use(use.text());
  for (const std::string& text : candidate.evidence) cause.add_evidence(text);
  add_culprits(use, document, cause);
  if (!suspected.trial) {
    cause.add_against("not simulated: " + suspected.refused);
    return cause;
  }
  cause.set_simulated(true);
  cause.set_score(std::round(1000 * suspected.trial->likeness.score) / 1000);
  for (const std::string& text : suspected.trial->likeness.same) cause.add_evidence(text);
  for (const std::string& text : suspected.trial->likeness.different) cause.add_against(text);
  return cause;
}

void say_what_to_collect(const std::vector<Suspected>& all, const FaultClasses* classes,
                         pb::Diagnosis& diagnosis) {
  if (all.size() < 2 || !all[0].trial || !all[1].trial) return;
  if (all[0].rank() - all[1].rank() > kClose) return;
  const pb::Fault& first = all[0].trial->use.fault();
  const pb::Fault& second = all[1].trial->use.fault();
  if (const auto* joined = classes ? classes->joining(first.id(), second.id()) : nullptr) {
    diagnosis.add_collect_next(joined->collect());
    return;
  }
  for (const pb::Fault* fault : {&first, &second}) {
    diagnosis.add_collect_next(
        fmt::format("{} ({}) would show: {}", fault->id(), fault->name(),
                    fault->in_logs().empty() ? fault->in_traces() : fault->in_logs()));
  }
}

// Whether the training script has settings, where results are wrong, that are neither those of the job as it should be nor
// of the causes: something else was changed that decides what is computed.
Result<bool> leaves_settings(std::span<const FaultUse> uses, const pb::Outcome& evidence,
                             const pb::Launch* configured, const pb::Scenario& healthy) {
  if (evidence.verdict() != pb::WRONG_SEMANTICS || configured == nullptr) return false;
  pb::Scenario with_cause = healthy;
  for (const FaultUse& use : uses) {
    RH_TRY(const std::vector<pb::Patch> patches, patches_of(use, healthy));
    for (const pb::Patch& patch : patches) {
      for (const auto& [path, value] : sim::sorted_assignments(patch.set())) {
        if (!path.starts_with("launch.training")) continue;
        if (auto set = set_path(with_cause, path, value); !set) return tl::unexpected(set.error());
      }
    }
  }
  return !google::protobuf::util::MessageDifferencer::Equals(with_cause.launch().training(),
                                                             configured->training());
}

// The best causes alone, for a second one to be looked for beside them: what the configuration shows first, also where it alone
// would have ended otherwise.
std::vector<Alone> best_alone(const std::vector<Suspected>& all) {
  std::vector<Alone> out;
  for (const bool configured : {true, false}) {
    for (const Suspected& suspected : all) {
      if (!suspected.trial) continue;
      const Candidate& place = suspected.places[suspected.best];
      if (place.configured != configured) continue;
      if (!configured && suspected.trial->likeness.score <= 0) continue;
      out.push_back({place, *suspected.trial});
    }
  }
  return out;
}

pb::Cause cause_of(const TwoCauses::Part& part, const TwoCauses::Part& other, const Likeness& both,
                   const pb::Scenario& document) {
  const FaultUse& use = part.candidate.use;
  pb::Cause cause;
  cause.set_fault(use.fault().id());
  cause.set_name(use.fault().name());
  cause.set_use(use.text());
  cause.set_simulated(true);
  cause.set_score(std::round(1000 * both.score) / 1000);
  cause.add_together(other.candidate.use.text());
  for (const std::string& text : part.candidate.evidence) cause.add_evidence(text);
  for (const std::string& text : part.shows) cause.add_evidence(text);
  for (const std::string& text : both.different) cause.add_against(text);
  add_culprits(use, document, cause);
  return cause;
}

// Both first, then the others as they were.
void put_first(const TwoCauses& two, const pb::Scenario& document, pb::Diagnosis& diagnosis) {
  google::protobuf::RepeatedPtrField<pb::Cause> causes;
  *causes.Add() = cause_of(two.first, two.second, two.likeness, document);
  *causes.Add() = cause_of(two.second, two.first, two.likeness, document);
  for (pb::Cause& cause : *diagnosis.mutable_causes()) {
    if (cause.fault() != causes.Get(0).fault() && cause.fault() != causes.Get(1).fault()) {
      *causes.Add() = std::move(cause);
    }
  }
  *diagnosis.mutable_causes() = std::move(causes);
}

// What slows a job down leaves nothing in a log but the settings that were read, or the ways that NCCL then takes.
void add_other_start(const DiagnoseRequest& request, const Changes& changes, pb::Symptom& symptom) {
  if (symptom.id() != kHealthy) return;
  const bool read = request.configured &&
                    reads_other_settings(*request.configured, request.healthy.document.launch());
  const bool other = std::any_of(changes.begin(), changes.end(), [](const auto& aspect) {
    return std::any_of(aspect.second.begin(), aspect.second.end(), [](const auto& change) {
      return std::abs(change.second.value) > change.second.noise;
    });
  });
  if (!read && !other) return;
  symptom.set_id("D2.2");
  symptom.set_label(std::string(symptom_label("D2.2")));
  symptom.add_reasons(read ? "settings that can slow a job down were read"
                           : "the job starts otherwise than it should");
}

// Logs tell less surely what a run was than what caused it: where a cause leaves the same logs, its whole run is known.
void take_symptom_of(const Suspected& first, pb::Symptom& symptom) {
  if (!first.trial || !explains(first.trial->likeness)) return;
  const pb::Symptom& whole = first.trial->symptom;
  if (whole.id().empty() || whole.id() == kHealthy || whole.id() == symptom.id()) return;
  const std::string seen =
      fmt::format("logs alone look like {} ({})", symptom.id(), symptom.label());
  symptom = whole;
  symptom.add_reasons(
      fmt::format("{}; {}, simulated, leaves the same", seen, first.trial->use.fault().id()));
}

double pace_of(const pb::Outcome& simulated, const pb::Outcome& healthy) {
  const auto step = static_cast<double>(healthy.step_time_ns().mean());
  return step > 0 && simulated.step_time_ns().mean() > 0
             ? static_cast<double>(simulated.step_time_ns().mean()) / step
             : 1;
}

}  // namespace

std::set<std::string> places_of(const FaultUse& use, const pb::Scenario& document) {
  pb::Cause cause;
  add_culprits(use, document, cause);
  std::set<std::string> out;
  for (const pb::Culprit& culprit : cause.culprits()) {
    if (culprit.has_rank()) out.insert(fmt::format("rank {}", culprit.rank()));
    if (!culprit.link().empty()) out.insert(culprit.link());
    if (!culprit.has_node()) continue;
    for (const pb::RankLaunch& rank : document.launch().ranks()) {
      if (rank.node() == culprit.node()) out.insert(fmt::format("rank {}", rank.rank()));
    }
  }
  return out;
}

void add_culprits(const FaultUse& use, const pb::Scenario& document, pb::Cause& cause) {
  using Parameter = pb::Parameter;
  const auto number = [&](const pb::Parameter& p) {
    return static_cast<uint32_t>(std::stoul(use.values.at(p.name())));
  };
  const auto add = [&](const char* kind) -> pb::Culprit& {
    pb::Culprit& culprit = *cause.add_culprits();
    culprit.set_kind(kind);
    culprit.set_why(use.fault().name());
    return culprit;
  };
  std::optional<uint32_t> node;
  for (const pb::Parameter& p : use.fault().parameters()) {
    switch (p.kind()) {
      case Parameter::RANK:
        add("rank").set_rank(number(p));
        break;
      case Parameter::NODE:
        if (!node) node = number(p);
        add("node").set_node(number(p));
        break;
      case Parameter::LINK:
        add("link").set_link(use.values.at(p.name()));
        break;
      case Parameter::NIC:
        if (node && static_cast<int>(*node) < document.platform().nodes_size()) {
          const pb::Node& where = document.platform().nodes(static_cast<int>(*node));
          if (number(p) < static_cast<uint32_t>(where.nics_size())) {
            add("link").set_link(where.name() + "/" +
                                 where.nics(static_cast<int>(number(p))).name());
          }
        }
        break;
      case Parameter::GPU:
        for (const pb::RankLaunch& rank : document.launch().ranks()) {
          if (node && rank.node() == *node && rank.gpu() == number(p)) {
            add("rank").set_rank(rank.rank());
          }
        }
        break;
      case Parameter::RANKS:
        if (const auto ranks = parse_ranks(use.values.at(p.name()))) {
          for (const uint32_t rank : *ranks) add("rank").set_rank(rank);
        }
        break;
      default:
        break;
    }
  }
}

Result<pb::Diagnosis> diagnose(const DiagnoseRequest& request, const FaultCatalogue& catalogue,
                               const World& world) {
  pb::Diagnosis diagnosis;
  diagnosis.set_schema("rehearse.diagnosis/1");
  diagnosis.set_scenario(request.evidence.scenario());
  pb::Outcome evidence = observable(request.evidence);
  if (request.baseline) {
    *evidence.mutable_baseline_step_time_ns() = request.baseline->step_time_ns();
  }
  *diagnosis.mutable_symptom() = classify(evidence);
  if (request.from_logs) {
    add_other_start(request, changes_of(evidence, observable(*request.baseline)),
                    *diagnosis.mutable_symptom());
  }
  if (diagnosis.symptom().id() == kHealthy) return diagnosis;

  pb::Outcome simulated;
  uint32_t runs = 0;
  if (request.simulated) {
    simulated = observable(*request.simulated);
  } else if (request.baseline) {
    simulated = observable(*request.baseline);
  } else if (auto outcome = world.simulate(request.healthy)) {
    simulated = observable(*outcome);
    runs = 1;
  } else if (outcome.error().code == Code::kInterrupted) {
    return tl::unexpected(outcome.error());
  } else {
    simulated = evidence;  // nothing to compare with: rules alone decide
    diagnosis.mutable_symptom()->add_reasons(
        "nothing to compare with, the healthy job could not be simulated: " +
        outcome.error().message());
  }
  const pb::Outcome healthy = request.baseline ? observable(*request.baseline) : simulated;
  const Changes changes = changes_of(evidence, healthy);
  std::optional<pb::Launch> configured;
  if (request.configured) configured = readable_launch(*request.configured);
  const Clues clues{.outcome = evidence,
                    .changes = changes,
                    .symptom = diagnosis.symptom(),
                    .healthy = request.healthy.document,
                    .configured = configured ? &*configured : nullptr,
                    .pace = pace_of(simulated, healthy),
                    .logs_only = request.from_logs};
  RH_TRY(std::vector<Candidate> candidates, find_candidates(clues, catalogue));
  std::vector<Suspected> all = by_fault(std::move(candidates));
  Laboratory laboratory(request.healthy, simulated,
                        {.outcome = evidence,
                         .changes = changes,
                         .failed_ns = evidence.first_failure().time_ns(),
                         .pace = clues.pace},
                        world, request.max_simulations);
  // Logs tell less surely which symptom it is: there nothing is kept back.
  std::vector<Suspected> others =
      request.from_logs ? std::vector<Suspected>{} : take_unexpected(all);
  if (auto tried = try_all(all, request.from_logs, laboratory); !tried)
    return tl::unexpected(tried.error());
  if (!others.empty() && request.max_simulations_of_others > 0 && !settled(all)) {
    laboratory.allow(request.max_simulations_of_others);
    std::move(others.begin(), others.end(), std::back_inserter(all));
    if (auto tried = try_all(all, request.from_logs, laboratory); !tried)
      return tl::unexpected(tried.error());
  }
  for (const Suspected& suspected : all) {
    *diagnosis.add_causes() = cause_of(suspected, request.healthy.document);
  }
  diagnosis.set_unknown(all.empty() || (all[0].trial && !explains(all[0].trial->likeness)));
  if (!all.empty() && all[0].trial) {
    RH_TRY(const bool left, leaves_settings({&all[0].trial->use, 1}, evidence, clues.configured,
                                            request.healthy.document));
    if (left) {
      diagnosis.set_unknown(true);
      diagnosis.mutable_causes(0)->add_against(
          "the training script has settings that the cause does not explain");
    }
  }
  if (request.from_logs && !all.empty()) take_symptom_of(all[0], *diagnosis.mutable_symptom());
  diagnosis.set_straggler(straggler_kind(changes, request.healthy.document));
  std::optional<TwoCauses> two;
  if (!all.empty() && all[0].trial && request.max_simulations_of_two > 0 && !settled(all)) {
    laboratory.allow(request.max_simulations_of_two);
    RH_TRY(two, find_two_causes(clues, catalogue, best_alone(all), laboratory));
  }
  if (two) {
    const FaultUse uses[] = {two->first.candidate.use, two->second.candidate.use};
    RH_TRY(const bool left,
           leaves_settings(uses, evidence, clues.configured, request.healthy.document));
    if (left) two.reset();
  }
  if (two && two->likeness.score >= kEnough && explains(two->likeness)) {
    diagnosis.set_unknown(false);
    put_first(*two, request.healthy.document, diagnosis);
  } else {
    say_what_to_collect(all, request.classes, diagnosis);
    say_who_is_alike(all, request.classes, clues, diagnosis);
    say_where_else(all, request, clues, laboratory, diagnosis);
  }
  if (laboratory.interrupted()) return tl::unexpected(*laboratory.interrupted());
  diagnosis.set_simulations(laboratory.simulations() + runs);
  return diagnosis;
}

}  // namespace rehearse::faults
