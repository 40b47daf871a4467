// SPDX-License-Identifier: Apache-2.0
#include "validation/blind/blind_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "faults/diagnose/changes.hpp"
#include "faults/diagnose/diagnose.hpp"
#include "faults/diagnose/from_logs.hpp"
#include "faults/diagnose/likeness.hpp"
#include "faults/diagnose/observable.hpp"
#include "faults/symptoms/classifier.hpp"
#include "validation/blind/draw.hpp"
#include "validation/blind/hidden_world.hpp"

namespace rehearse::validation {
namespace {

using faults::FaultUse;

constexpr double kRestored = 0.02;
constexpr int kCausesKept = 5;
// Of two faults at once one is hidden by the other when the run without it is this much like the run with it.
constexpr double kHidden = 0.9;

// What was injected, and what it did.
struct Injected {
  const PreparedJob* job = nullptr;
  std::vector<FaultUse> uses;
  sim::Scenario machine, broken;  // the hidden one, without and with the faults
  pb::Outcome healthy, outcome;   // there, without noise
  pb::Symptom symptom;
  faults::JobLogs logs;  // those that were kept; only when the run is diagnosed from them
  bool silent = false;   // and they are, byte for byte, those of the healthy run there
};

// What is drawn again before something is found to diagnose.
struct Redrawn {
  uint32_t unnoticed = 0, refused = 0, hidden = 0, silent = 0;
};

pb::Symptom symptom_of(const pb::Outcome& outcome, const pb::Outcome& healthy) {
  pb::Outcome seen = faults::observable(outcome);
  *seen.mutable_baseline_step_time_ns() = healthy.step_time_ns();
  return faults::classify(seen);
}

// Whether anybody would notice: anything but a run that is within noise of the healthy one.
bool noticed(const Injected& injected) {
  const std::string& id = injected.symptom.id();
  if (id != "D2.2") return id != faults::kHealthy;
  const auto now = static_cast<double>(injected.outcome.step_time_ns().mean());
  const auto then = static_cast<double>(injected.healthy.step_time_ns().mean());
  return now >= (1 + kNoticed) * then;
}

// Whether the catalogue knows that what was injected can look like this.
bool listed(const BlindRun& run, const std::string& symptom) {
  return std::any_of(run.faults.begin(), run.faults.end(), [&](const auto& entry) {
    const auto& known = entry->fault.symptoms();
    return std::find(known.begin(), known.end(), symptom) != known.end();
  });
}

Result<void> inject(const std::vector<FaultUse>& uses, const BlindContext& context,
                    sim::Scenario& scenario) {
  for (const FaultUse& use : uses) {
    RH_TRY(const auto patches, faults::patches_of(use, scenario.document));
    for (const pb::Patch& patch : patches) {
      if (auto done = context.world.apply(scenario, patch); !done) return done;
    }
  }
  return {};
}

// With several faults at once: every one of them makes a difference.
Result<bool> all_show(const Injected& injected, const BlindContext& context) {
  const auto changes = [&](const pb::Outcome& outcome) {
    return faults::changes_of(faults::observable(outcome), faults::observable(injected.healthy));
  };
  const faults::Changes all = changes(injected.outcome);
  for (size_t left_out = 0; injected.uses.size() > 1 && left_out < injected.uses.size();
       ++left_out) {
    std::vector<FaultUse> others = injected.uses;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(left_out));
    sim::Scenario without = injected.machine;
    if (auto done = inject(others, context, without); !done) return tl::unexpected(done.error());
    RH_TRY(const pb::Outcome outcome, context.world.simulate(without));
    if (outcome.verdict() == injected.outcome.verdict() &&
        faults::likeness(all, changes(outcome)).score > kHidden) {
      return false;
    }
  }
  return true;
}

// Logs and dumps of a hidden run, without the dumps of ranks that were not recorded; launchers bring what those printed.
Result<faults::LogFiles> kept_logs(const sim::Scenario& scenario, const pb::Outcome& outcome,
                                   const BlindRun& run) {
  RH_TRY(faults::LogFiles files, faults::log_files(scenario, outcome));
  Random random(run.seed, "logs");
  for (uint32_t rank = 1; run.blind && rank < outcome.ranks(); ++rank) {
    if (random.uniform() >= MeasurementNoise{}.missing) continue;
    files.erase(fmt::format("nccl_trace_rank_{}.json", rank));
  }
  return files;
}

// Another draw is another machine.
uint64_t seed_of_machine(const BlindRun& run, uint32_t tries) {
  return tries == 0 ? run.seed : Random(run.seed, "machine", tries).next() >> 1;
}

Result<Injected> attempt(const PreparedJob& job, std::vector<FaultUse> uses, const BlindRun& run,
                         uint32_t tries, const BlindContext& context) {
  Injected out;
  out.job = &job;
  out.uses = std::move(uses);
  sim::Scenario healthy = job.scenario;
  if (run.blind) {
    RH_TRY(healthy, hidden(job.scenario, seed_of_machine(run, tries)));
  }
  out.machine = healthy;
  out.broken = healthy;
  if (auto done = inject(out.uses, context, out.broken); !done) return tl::unexpected(done.error());
  RH_TRY(out.outcome, context.world.simulate(out.broken));
  RH_TRY(out.healthy, context.world.simulate(healthy));
  out.symptom = symptom_of(out.outcome, out.healthy);
  return out;
}

// kBadInput when no draw shows anything, kMissingInput when none leaves anything in logs.
Result<Injected> draw(const BlindRun& run, const BlindContext& context, Redrawn& redrawn) {
  Random random(run.seed, "placement");
  std::vector<const PreparedJob*> jobs;
  for (const PreparedJob& job : context.jobs) {
    if (run.jobs.count(job.job.name())) jobs.push_back(&job);
  }
  if (jobs.empty()) return fail(Code::kBadInput, "no job has a place for the fault");
  std::string last = "it changes nothing that anybody would notice";
  for (uint32_t tries = 0; tries <= kRedraws; ++tries) {
    const PreparedJob* job = jobs[random.below(jobs.size())];
    std::vector<FaultUse> uses;
    const bool defaults = tries == kRedraws;
    if (defaults && !run.faults.empty()) {
      const std::string& home = run.faults.front()->fault.scenario();
      for (const PreparedJob* each : jobs) {
        if (each->job.name() == (home.empty() ? "ddp-16" : home)) job = each;
      }
    }
    const DrawFrom from{.document = job->scenario.document, .duration = job->baseline.end_ns()};
    for (const auto& entry : run.faults) {
      uses.push_back(defaults ? faults::with_defaults(entry) : draw_use(entry, from, random));
    }
    auto injected = attempt(*job, std::move(uses), run, tries, context);
    if (!injected) {
      if (injected.error().code == Code::kInterrupted) return injected;
      last = injected.error().message();
      ++redrawn.refused;
      continue;
    }
    if (run.evidence == EvidenceKind::kLogs) {
      RH_TRY(const auto files, kept_logs(injected->broken, injected->outcome, run));
      RH_TRY(const auto usual, kept_logs(injected->machine, injected->healthy, run));
      injected->logs = faults::read_logs(files);
      injected->silent = files == usual;
    }
    if (run.faults.empty()) return injected;
    last = fmt::format("{} shows {}", injected->uses.front().text(), injected->symptom.id());
    if (!noticed(*injected)) {
      ++redrawn.unnoticed;
      continue;
    }
    RH_TRY(const bool all, all_show(*injected, context));
    if (!all) {
      ++redrawn.hidden;
      continue;
    }
    if (run.evidence == EvidenceKind::kOutcome) return injected;
    if (!injected->silent) return injected;
    if (++redrawn.silent >= kSilentDraws) {
      return fail(Code::kMissingInput, "it leaves nothing in logs");
    }
  }
  return fail(Code::kBadInput, "no draw shows the fault: " + last);
}

// The first fix that promises all.
Result<void> repair(const std::string& text, const BlindContext& context, sim::Scenario& scenario) {
  RH_TRY(const FaultUse use, faults::parse_fault(text, context.catalogue));
  RH_TRY(const auto fixes, faults::fixes_of(use, scenario.document));
  const auto whole = std::find_if(fixes.begin(), fixes.end(), [](const pb::Fix& fix) {
    return fix.restores() == pb::Fix::ALL;
  });
  if (whole == fixes.end()) return {};
  for (const pb::Patch& patch : whole->patch()) {
    if (auto done = context.world.apply(scenario, patch); !done) return done;
  }
  return {};
}

// That of the first cause; of causes that look alike, and of places that do, those of each, because nobody can tell which is
// needed.
Result<void> repair(const pb::Diagnosis& diagnosis, const BlindContext& context,
                    sim::Scenario& scenario) {
  const auto& alike = diagnosis.causes(0).alike();
  const bool open = !alike.empty() || !diagnosis.causes(0).elsewhere().empty();
  for (int i = 0; i < diagnosis.causes_size(); ++i) {
    const pb::Cause& cause = diagnosis.causes(i);
    const bool same = std::find(alike.begin(), alike.end(), cause.fault()) != alike.end();
    if (i > 0 && !same && cause.together().empty()) continue;
    std::vector<std::string> uses(cause.elsewhere().begin(), cause.elsewhere().end());
    uses.push_back(cause.use());
    for (const std::string& use : uses) {
      auto done = repair(use, context, scenario);
      // Of several causes and places most have nothing to be repaired.
      if (!done && (!open || done.error().code == Code::kInterrupted)) return done;
    }
  }
  return {};
}

// Of several faults the last one counts, from where all could stand.
uint32_t place_of(const BlindRun& run, const pb::Diagnosis& diagnosis) {
  uint32_t last = 0;
  for (const auto& entry : run.faults) {
    const auto found =
        std::find_if(diagnosis.causes().begin(), diagnosis.causes().end(),
                     [&](const pb::Cause& cause) { return cause.fault() == entry->fault.id(); });
    if (found == diagnosis.causes().end()) return 0;
    last = std::max(last, static_cast<uint32_t>(found - diagnosis.causes().begin()) + 1);
  }
  const auto others = static_cast<uint32_t>(run.faults.empty() ? 0 : run.faults.size() - 1);
  return last > others ? last - others : 0;
}

// Whether the cause, or one that it says looks the same, is the fault that was injected, and the places at which it says so
// hold that of the injected one, as far as they were tried.
bool leaves_place_open(const pb::Cause& cause, const Injected& injected,
                       const std::set<std::string>& wanted, const BlindContext& context) {
  if (injected.uses.size() != 1) return false;
  const std::string& id = injected.uses[0].fault().id();
  std::vector<std::string> uses(cause.elsewhere().begin(), cause.elsewhere().end());
  const bool all_tried = !context.classes.unseen_place(id) || uses.size() < faults::kElsewhereTried;
  if (id == cause.fault() && !all_tried) return true;
  uses.push_back(cause.use());
  return std::any_of(uses.begin(), uses.end(), [&](const std::string& text) {
    const auto use = faults::parse_fault(text, context.catalogue);
    return use && use->fault().id() == id &&
           faults::places_of(*use, injected.broken.document) == wanted;
  });
}

void judge_culprits(const Injected& injected, const pb::Diagnosis& diagnosis,
                    const BlindContext& context, pb::CampaignRun& out) {
  std::set<std::string> wanted, named;
  for (const FaultUse& use : injected.uses) {
    wanted.merge(faults::places_of(use, injected.broken.document));
  }
  if (wanted.empty()) return;
  if (diagnosis.causes_size() > 0 && !diagnosis.causes(0).elsewhere().empty()) {
    // Neither right nor wrong where nothing shows the place of what was injected; wrong of anything else.
    if (leaves_place_open(diagnosis.causes(0), injected, wanted, context)) {
      out.set_place_not_known(true);
    } else {
      out.set_culprit_right(false);
    }
    return;
  }
  for (int i = 0; i < diagnosis.causes_size(); ++i) {
    if (i > 0 && diagnosis.causes(i).together().empty()) break;
    const auto use = faults::parse_fault(diagnosis.causes(i).use(), context.catalogue);
    if (use) named.merge(faults::places_of(*use, injected.broken.document));
  }
  out.set_culprit_right(named == wanted);
}

void judge_causes(const BlindRun& run, const Injected& injected, const pb::Diagnosis& diagnosis,
                  const BlindContext& context, pb::CampaignRun& out) {
  const double best = diagnosis.causes_size() > 0 ? diagnosis.causes(0).score() : 0;
  out.set_place(place_of(run, diagnosis));
  if (out.place() > 1 && run.faults.size() == 1) {
    const pb::Cause& own = diagnosis.causes(static_cast<int>(out.place()) - 1);
    const auto& alike = diagnosis.causes(0).alike();
    // Looking the same in the logs of one run makes no class.
    if (context.classes.joining(own.fault(), diagnosis.causes(0).fault()) &&
        std::find(alike.begin(), alike.end(), own.fault()) != alike.end()) {
      out.set_alike(true);
      out.set_place(1);
    }
  }
  for (int i = 0; i < std::min(diagnosis.causes_size(), kCausesKept); ++i) {
    const pb::Cause& cause = diagnosis.causes(i);
    out.add_causes(fmt::format("{}{} {:.3f}", cause.together().empty() ? "" : "+", cause.use(),
                               cause.score()));
  }
  out.set_score(best);
  if (diagnosis.causes_size() > 0) {
    *out.mutable_evidence() = diagnosis.causes(0).evidence();
    *out.mutable_against() = diagnosis.causes(0).against();
  }
  if (!injected.uses.empty()) judge_culprits(injected, diagnosis, context, out);
}

// `look`: how often the job was measured before.
Result<pb::Diagnosis> from_outcome(const BlindRun& run, const Injected& injected, uint64_t look,
                                   const BlindContext& context) {
  Random random(run.seed, "measurement", look);
  pb::Outcome evidence = faults::observable(injected.outcome);
  pb::Outcome baseline = faults::observable(injected.healthy);
  if (run.blind) {
    evidence = measured(evidence, {}, random);
    baseline = measured(baseline, {}, random);
  }
  return faults::diagnose({.evidence = evidence,
                           .healthy = injected.job->scenario,
                           .configured = &injected.broken.document.launch(),
                           .baseline = &baseline,
                           .simulated = &injected.job->baseline,
                           .classes = &context.classes,
                           .max_simulations = context.max_simulations,
                           .max_simulations_of_others = context.max_simulations},
                          context.catalogue, context.world);
}

Result<pb::Diagnosis> from_logs(const Injected& injected, const BlindContext& context) {
  return faults::diagnose_from_logs({.logs = injected.logs,
                                     .healthy = injected.job->scenario,
                                     .simulated = injected.job->baseline,
                                     .classes = &context.classes,
                                     .max_simulations = context.max_simulations},
                                    context.catalogue, context.world);
}

Result<pb::Diagnosis> diagnosed(const BlindRun& run, const Injected& injected, uint64_t look,
                                const BlindContext& context) {
  return run.evidence == EvidenceKind::kLogs ? from_logs(injected, context)
                                             : from_outcome(run, injected, look, context);
}

bool is_restored(const Injected& injected) {
  const auto now = static_cast<double>(injected.outcome.step_time_ns().mean());
  const auto then = static_cast<double>(injected.healthy.step_time_ns().mean());
  return injected.symptom.id() == faults::kHealthy && then > 0 &&
         std::abs(now / then - 1) <= kRestored;
}

// The job on its machine after the repair that a diagnosis asks for.
Result<Injected> repaired(const pb::Diagnosis& diagnosis, const Injected& injected,
                          const BlindContext& context) {
  Injected out = injected;
  if (auto done = repair(diagnosis, context, out.broken); !done)
    return tl::unexpected(done.error());
  RH_TRY(out.outcome, context.world.simulate(out.broken));
  out.symptom = symptom_of(out.outcome, out.healthy);
  return out;
}

// Logs and dumps of what is left of several faults.
Result<void> keep_logs(const BlindRun& run, Injected& left) {
  if (run.evidence != EvidenceKind::kLogs) return {};
  RH_TRY(const auto files, kept_logs(left.broken, left.outcome, run));
  left.logs = faults::read_logs(files);
  return {};
}

// The first fix, and whether the job is restored as soon as every fault has had a turn: what a fix leaves is measured and
// diagnosed anew.
Result<void> judge_fixes(const BlindRun& run, const Injected& injected,
                         const pb::Diagnosis& diagnosis, const BlindContext& context,
                         pb::CampaignRun& out) {
  out.set_fix_restores(false);
  if (run.faults.size() > 1) out.set_restores_in_turn(false);
  pb::Diagnosis now = diagnosis;
  Injected left = injected;
  for (size_t turn = 0; turn < run.faults.size(); ++turn) {
    if (now.causes_size() == 0) return {};
    RH_TRY(left, repaired(now, left, context));
    const bool restored = is_restored(left);
    if (turn == 0) out.set_fix_restores(restored);
    if (restored && run.faults.size() > 1) out.set_restores_in_turn(true);
    if (restored || turn + 1 == run.faults.size()) return {};
    if (auto kept = keep_logs(run, left); !kept) return kept;
    RH_TRY(now, diagnosed(run, left, turn + 1, context));
    out.set_simulations(out.simulations() + now.simulations());
  }
  return {};
}

}  // namespace

Result<pb::CampaignRun> run_blind(const BlindRun& run, const BlindContext& context) {
  pb::CampaignRun out;
  out.set_truth(run.truth);
  for (const auto& entry : run.faults) {
    out.set_fault(out.fault() + (out.fault().empty() ? "" : "+") + entry->fault.id());
  }
  out.set_by_rule(!run.faults.empty() &&
                  std::all_of(run.faults.begin(), run.faults.end(), [](const auto& entry) {
                    return entry->fault.grade() == pb::Fault::BY_RULE;
                  }));
  Redrawn redrawn;
  auto drawn = draw(run, context, redrawn);
  out.set_redrawn(redrawn.unnoticed);
  out.set_refused(redrawn.refused);
  out.set_hidden(redrawn.hidden);
  out.set_silent_draws(redrawn.silent);
  if (!drawn) {
    if (drawn.error().code == Code::kInterrupted) return tl::unexpected(drawn.error());
    if (drawn.error().code == Code::kMissingInput) {
      out.set_silent(true);
    } else {
      out.set_failed(drawn.error().message());
    }
    return out;
  }
  const Injected& injected = *drawn;
  out.set_job(injected.job->job.name());
  out.set_symptom(injected.symptom.id());
  out.set_unlisted(!run.faults.empty() && !listed(run, injected.symptom.id()));
  for (const FaultUse& use : injected.uses) {
    out.set_use(out.use() + (out.use().empty() ? "" : " ") + use.text());
  }
  RH_TRY(const pb::Diagnosis diagnosis, diagnosed(run, injected, 0, context));
  out.set_seen_symptom(diagnosis.symptom().id());
  out.set_symptom_right(diagnosis.symptom().id() == injected.symptom.id() && !out.unlisted());
  out.set_called_unknown(diagnosis.unknown());
  out.set_simulations(diagnosis.simulations());
  judge_causes(run, injected, diagnosis, context, out);
  if (run.truth == pb::CampaignRun::CATALOGUED) {
    // A fix that cannot be made restores nothing.
    const auto judged = judge_fixes(run, injected, diagnosis, context, out);
    if (!judged && judged.error().code == Code::kInterrupted) {
      return tl::unexpected(judged.error());
    }
  }
  return out;
}

}  // namespace rehearse::validation
