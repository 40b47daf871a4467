// SPDX-License-Identifier: Apache-2.0
#include "validation/blind/campaign.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "base/document.hpp"
#include "base/install.hpp"
#include "base/random.hpp"
#include "sim/pool.hpp"
#include "sim/prepared.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/worker.hpp"
#include "validation/blind/blind_run.hpp"

namespace rehearse::validation {
namespace {

// For every ten faults of the catalogue one is outside of it and one job is healthy; with few faults at
// least one of each.
constexpr size_t kOneIn = 9;
// Jobs that one run may be drawn from.
constexpr size_t kJobsPerRun = 3;

uint64_t seed_of(uint64_t seed, const std::string& what, uint32_t number) {
  return Random(seed, what, number).next() >> 1;  // fits the scenario's seed in every notation
}

Result<pb::BlindJobs> read_jobs() {
  pb::BlindJobs jobs;
  RH_TRY(const auto path, shipped("validation/blind/jobs.yaml"));
  if (auto read = read_document_file(path.string(), jobs); !read)
    return tl::unexpected(read.error());
  return jobs;
}

bool fits(const pb::BlindJob& job, const BlindRun& run) {
  return std::all_of(run.faults.begin(), run.faults.end(), [&](const auto& entry) {
    const auto& kinds = entry->fault.jobs();
    return kinds.empty() || std::find(kinds.begin(), kinds.end(), job.kind()) != kinds.end();
  });
}

// Some of the jobs in which the faults are met, and the one in which the first shows best.
void choose_jobs(const pb::BlindJobs& all, BlindRun& run) {
  Random random(run.seed, "jobs");
  std::vector<std::string> names;
  const std::string home = run.faults.empty() || run.faults.front()->fault.scenario().empty()
                               ? "ddp-16"
                               : run.faults.front()->fault.scenario();
  for (const pb::BlindJob& job : all.jobs()) {
    if (!fits(job, run)) continue;
    names.push_back(job.name());
    if (job.name() == home) run.jobs.insert(home);
  }
  for (size_t k = 0; k < kJobsPerRun && !names.empty(); ++k) {
    const auto at = names.begin() + static_cast<std::ptrdiff_t>(random.below(names.size()));
    run.jobs.insert(*at);
    names.erase(at);
  }
}

Result<std::vector<PreparedJob>> prepare_jobs(const std::vector<BlindRun>& runs,
                                              const pb::BlindJobs& all, const faults::World& world,
                                              Reporter& reporter) {
  std::set<std::string> wanted;
  for (const BlindRun& run : runs) wanted.insert(run.jobs.begin(), run.jobs.end());
  std::vector<PreparedJob> out;
  for (int i = 0; i < all.jobs_size(); ++i) {
    const pb::BlindJob& job = all.jobs(i);
    if (!wanted.count(job.name())) continue;
    if (reporter.interrupted()) return fail(Code::kInterrupted, "stopped");
    reporter.progress("jobs prepared", static_cast<uint64_t>(i),
                      static_cast<uint64_t>(all.jobs_size()));
    const sim::Assignments written = sim::sorted_assignments(job.set());
    RH_TRY(sim::Scenario scenario, sim::load_scenario(job.scenario(), written, reporter));
    sim::prepare(scenario);
    RH_TRY(pb::Outcome baseline, world.simulate(scenario));
    out.push_back({job, std::move(scenario), std::move(baseline)});
  }
  return out;
}

Result<std::vector<BlindRun>> plan(const CampaignRequest& request,
                                   const faults::FaultCatalogue& catalogue,
                                   const faults::FaultCatalogue& outside) {
  std::vector<std::shared_ptr<const faults::FaultEntry>> wanted;
  std::set<std::string> of_outside;
  for (const std::string& id : request.faults) {
    if (outside.find(id)) {
      of_outside.insert(id);
      continue;
    }
    RH_TRY(auto entry, catalogue.find(id));
    wanted.push_back(std::move(entry));
  }
  if (request.faults.empty()) wanted = catalogue.entries();
  std::vector<BlindRun> runs;
  for (const auto& entry : wanted) {
    for (uint32_t k = 0; k < request.seeds; ++k) {
      BlindRun run;
      run.faults = {entry};
      run.seed = seed_of(request.seed, entry->fault.id(), k);
      run.blind = request.blind;
      Random random(run.seed, "compound");
      while (run.faults.size() < std::min<size_t>(request.compound, wanted.size())) {
        const auto& other = wanted[random.below(wanted.size())];
        if (std::find(run.faults.begin(), run.faults.end(), other) == run.faults.end()) {
          run.faults.push_back(other);
        }
      }
      runs.push_back(std::move(run));
    }
  }
  const auto& others = outside.entries();
  const auto add_outside = [&](uint32_t k) {
    BlindRun& run = runs.emplace_back();
    run.truth = pb::CampaignRun::UNKNOWN;
    run.seed = seed_of(request.seed, "outside", k);
    run.blind = request.blind;
    run.faults.push_back(others[k % others.size()]);
  };
  if (!of_outside.empty()) {
    // Named ones are the runs that they are in a whole campaign, as many as of the others.
    for (uint32_t k = 0; k < request.seeds * others.size(); ++k) {
      if (of_outside.count(others[k % others.size()]->fault.id())) add_outside(k);
    }
    return runs;
  }
  if (!request.blind) return runs;
  const size_t extra = std::max<size_t>(1, (runs.size() + kOneIn - 1) / kOneIn);
  for (uint32_t k = 0; k < extra; ++k) add_outside(k);
  for (uint32_t k = 0; k < extra; ++k) {
    BlindRun& run = runs.emplace_back();
    run.truth = pb::CampaignRun::HEALTHY;
    run.seed = seed_of(request.seed, "healthy", k);
  }
  return runs;
}

Result<std::string> work(const BlindRun& run, const BlindContext& context) {
  RH_TRY(const pb::CampaignRun done, run_blind(run, context));
  return sim::encoded(done);
}

// What a run is, for those that are kept.
std::string name_of(const BlindRun& run) {
  std::string out = fmt::format("{} {} {} {}", run.seed, pb::CampaignRun::Truth_Name(run.truth),
                                run.blind ? "blind" : "open",
                                run.evidence == EvidenceKind::kLogs ? "logs" : "outcome");
  for (const auto& entry : run.faults) out += " " + entry->fault.id();
  return out;
}

pb::CampaignRun failed_run(const BlindRun& run, const std::string& why) {
  pb::CampaignRun row;
  row.set_truth(run.truth);
  if (!run.faults.empty()) {
    row.set_fault(run.faults.front()->fault.id());
    row.set_by_rule(run.faults.front()->fault.grade() == pb::Fault::BY_RULE);
  }
  row.set_failed(why);
  return row;
}

// The runs of one part, in their order.
std::vector<BlindRun> part_of(std::vector<BlindRun> all, const CampaignRequest& request) {
  if (request.parts <= 1) return all;
  std::vector<BlindRun> out;
  for (size_t k = request.part; k < all.size(); k += request.parts) {
    out.push_back(std::move(all[k]));
  }
  return out;
}

// Of all runs those that are kept, and the numbers of the others.
struct KeptBefore {
  std::vector<pb::CampaignRun> rows;
  std::vector<size_t> left;
};

KeptBefore kept_before(const std::vector<BlindRun>& runs, const KeptRuns* kept) {
  KeptBefore out;
  out.rows.resize(runs.size());
  for (size_t k = 0; k < runs.size(); ++k) {
    auto row = kept != nullptr ? kept->find(name_of(runs[k])) : std::nullopt;
    if (row) {
      out.rows[k] = std::move(*row);
    } else {
      out.left.push_back(k);
    }
  }
  return out;
}

}  // namespace

Result<std::vector<pb::CampaignRun>> run_campaign(const CampaignRequest& request,
                                                  const faults::FaultCatalogue& catalogue,
                                                  Reporter& reporter) {
  RH_TRY(const auto folder, shipped("validation/blind/unknown"));
  const std::filesystem::path folders[] = {folder};
  RH_TRY(const auto outside, faults::FaultCatalogue::load(folders));
  RH_TRY(const auto classes, faults::FaultClasses::load_shipped());
  RH_TRY(const pb::BlindJobs all, read_jobs());
  RH_TRY(std::vector<BlindRun> planned, plan(request, catalogue, outside));
  std::vector<BlindRun> runs = part_of(std::move(planned), request);
  for (BlindRun& run : runs) {
    run.evidence = request.from_logs ? EvidenceKind::kLogs : EvidenceKind::kOutcome;
    choose_jobs(all, run);
  }
  KeptBefore before = kept_before(runs, request.kept);
  std::vector<pb::CampaignRun>& rows = before.rows;
  const std::vector<size_t>& left = before.left;
  if (request.only_kept && !left.empty()) {
    return fail(Code::kMissingInput,
                fmt::format("{} of {} runs have no result yet", left.size(), runs.size()),
                request.kept != nullptr ? request.kept->folder().string() : std::string(),
                "run the other shards, or `campaign` without --merge");
  }
  if (left.empty()) return std::move(rows);
  std::vector<BlindRun> wanted;
  wanted.reserve(left.size());
  for (const size_t k : left) wanted.push_back(runs[k]);
  const faults::World world = faults::simulated_world(reporter);
  RH_TRY(const std::vector<PreparedJob> jobs, prepare_jobs(wanted, all, world, reporter));
  // Children have nobody to report to.
  SilentReporter silent;
  const faults::World quiet = faults::simulated_world(silent);
  const BlindContext context{jobs, catalogue, classes, quiet};
  size_t done = 0;
  const auto ended = [&](size_t which, const Result<std::string>& answer) -> Result<void> {
    const BlindRun& run = wanted[which];
    pb::CampaignRun& row = rows[left[which]];
    reporter.progress("runs", ++done, wanted.size());
    if (!answer || !row.ParseFromString(*answer)) {
      row = failed_run(run, answer ? "no answer" : answer.error().message());
      return {};
    }
    return request.kept != nullptr ? request.kept->put(name_of(run), row) : Result<void>{};
  };
  if (auto ran = sim::run_pieces(
          wanted.size(), {.jobs = request.jobs},
          [&](size_t which) { return work(wanted[which], context); }, ended, reporter);
      !ran) {
    return tl::unexpected(std::move(ran).error());
  }
  return std::move(rows);
}

CampaignFigures figures_of(const std::vector<pb::CampaignRun>& runs) {
  CampaignFigures out;
  size_t symptom = 0, top1 = 0, top3 = 0, culprit = 0, fixes = 0, fix = 0, alarms = 0, unknown = 0;
  size_t turns = 0, in_turn = 0;
  for (const pb::CampaignRun& run : runs) {
    ++out.runs;
    out.simulations += run.simulations();
    out.redrawn += run.redrawn();
    out.refused += run.refused();
    out.hidden += run.hidden();
    out.silent_draws += run.silent_draws();
    if (!run.failed().empty()) {
      ++out.failed;
      continue;
    }
    if (run.silent()) {
      ++out.silent;
      continue;
    }
    if (run.truth() == pb::CampaignRun::HEALTHY) {
      ++out.healthy;
      alarms += run.seen_symptom() != "healthy" ? 1 : 0;
      continue;
    }
    if (run.truth() == pb::CampaignRun::UNKNOWN) {
      ++out.outside;
      unknown += run.called_unknown() ? 1 : 0;
      continue;
    }
    ++out.counted;
    out.unlisted += run.unlisted() ? 1 : 0;
    symptom += run.symptom_right() ? 1 : 0;
    const bool named = !run.called_unknown();
    top1 += named && run.place() == 1 ? 1 : 0;
    out.alike += named && run.place() == 1 && run.alike() ? 1 : 0;
    top3 += run.place() >= 1 && run.place() <= 3 ? 1 : 0;
    out.culprits += run.has_culprit_right() ? 1 : 0;
    out.not_known += run.place_not_known() ? 1 : 0;
    culprit += run.culprit_right() ? 1 : 0;
    fixes += run.has_fix_restores() ? 1 : 0;
    fix += run.fix_restores() ? 1 : 0;
    turns += run.has_restores_in_turn() ? 1 : 0;
    in_turn += run.restores_in_turn() ? 1 : 0;
  }
  const auto share = [](size_t part, size_t whole, double none) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : none;
  };
  out.symptom = share(symptom, out.counted, 1);
  out.top1 = share(top1, out.counted, 1);
  out.top3 = share(top3, out.counted, 1);
  out.culprit = share(culprit, out.culprits, 1);
  out.fix = share(fix, fixes, 1);
  out.in_turn = share(in_turn, turns, 1);
  out.false_alarms = share(alarms, out.healthy, 0);
  out.unknown = share(unknown, out.outside, 1);
  return out;
}

RunsByGrade by_grade(const std::vector<pb::CampaignRun>& runs) {
  RunsByGrade out;
  for (const pb::CampaignRun& run : runs) {
    if (run.truth() != pb::CampaignRun::CATALOGUED) continue;
    (run.by_rule() ? out.by_rule : out.simulated).push_back(run);
  }
  return out;
}

}  // namespace rehearse::validation
