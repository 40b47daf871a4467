// SPDX-License-Identifier: Apache-2.0
#include "faults/lessons/assess.hpp"

#include <fmt/format.h>
#include <google/protobuf/util/message_differencer.h>

#include <cmath>
#include <set>

#include "base/text.hpp"
#include "base/units.hpp"
#include "faults/check/check.hpp"
#include "faults/lessons/changes.hpp"
#include "faults/lessons/remarks.hpp"
#include "faults/symptoms/classifier.hpp"
#include "faults/world.hpp"
#include "sim/simulate.hpp"

namespace rehearse::faults {
namespace {

constexpr size_t kMostPlaces = 3;  // named in a remark

std::string named(std::string_view id) { return fmt::format("{} ({})", id, symptom_label(id)); }

std::string verdict_word(pb::Verdict verdict) {
  std::string word = lower_case(pb::Verdict_Name(verdict));
  std::replace(word.begin(), word.end(), '_', '-');
  return word;
}

std::string some_of(std::vector<std::string> places) {
  const size_t all = places.size();
  if (all > kMostPlaces) {
    places.resize(kMostPlaces);
    places.push_back(fmt::format("{} more", all - kMostPlaces));
  }
  return join_words(places);
}

// Categories of the static check's errors and warnings.
std::set<std::string> warned_of(const pb::Scenario& document, const Rules& rules) {
  std::set<std::string> out;
  const pb::CheckReport report = check(document, rules, "");
  for (const pb::CheckFinding& finding : report.findings()) {
    if (finding.severity() != "info") out.insert(finding.category());
  }
  return out;
}

bool same_files(pb::Scenario a, pb::Scenario b) {
  for (pb::Scenario* each : {&a, &b}) {
    each->clear_name();
    each->clear_description();
    each->clear_sealed();
    each->clear_blind();
  }
  return google::protobuf::util::MessageDifferencer::Equals(a, b);
}

// Whether a job that cannot be loaded would load with the settings it had: then what is sealed does not fit it.
bool sealed_needs(const LabJob& job, const pb::Scenario& written) {
  return !job.sealed.empty() &&
         !google::protobuf::util::MessageDifferencer::Equals(written.trace(), job.written.trace());
}

class Assessment {
 public:
  Assessment(const LabJob& job, const Rules& rules) : job_(job), rules_(rules) {}

  void remark(std::string_view id, std::string text) {
    pb::LabRemark& row = *result.add_remarks();
    row.set_id(std::string(id));
    row.set_text(std::move(text));
  }

  // What files and patches say, without a run.
  void look(const LabJobs& jobs, const pb::Scenario& written) {
    if (same_files(written, job_.written)) {
      remark(remark::kNothingChanged, "the files say what they said at the start");
    }
    for (pb::LabRemark& row : judge_patches(written, job_)) {
      *result.add_remarks() = std::move(row);
    }
    if (const auto places = machine_changes(jobs); !places.empty()) {
      remark(remark::kOtherMachine,
             fmt::format("cluster.yaml: {} {} changed where nothing was broken; put it back",
                         some_of(places), places.size() == 1 ? "was" : "were"));
    }
    if (const std::string lost = work_lost(jobs); !lost.empty()) {
      remark(remark::kLessWork,
             fmt::format("this is not the job that was broken: {}; doing less is no repair", lost));
    }
    if (const auto names = emptied_environment(jobs); !names.empty()) {
      remark(remark::kTooBroad,
             fmt::format("the environment was emptied: {} were in order and are gone as well; take "
                         "out what is wrong and leave the rest",
                         some_of(names)));
    }
    if (const auto fields = silenced(jobs); !fields.empty()) {
      remark(remark::kSilenced,
             fmt::format("launch.training: {} {} removed; what is not said is not repaired",
                         some_of(fields), fields.size() == 1 ? "was" : "were"));
    }
  }

  // What the run says.
  void weigh(const LabJobs& jobs, const pb::Outcome& healthy, const pb::Outcome& outcome,
             const std::string& symptom) {
    const std::string& category = job_.lab->lab.category();
    result.set_verdict(verdict_word(outcome.verdict()));
    result.set_symptom(symptom);
    result.set_step_time_ns(outcome.step_time_ns().mean());
    result.set_healthy_step_time_ns(healthy.step_time_ns().mean());
    const bool slow_only = outcome.verdict() == pb::COMPLETED && symptom == "D2.2";
    result.set_symptom_gone(symptom == kHealthy || (slow_only && category != "D2.2"));
    result.set_performance_back(performance_back(jobs, healthy, outcome));
    if (!result.symptom_gone()) {
      if (symptom == category) {
        remark(remark::kStillThere, fmt::format("the job still shows {}", named(category)));
      } else if (outcome.verdict() == pb::WRONG_SEMANTICS) {
        remark(remark::kWrongResult,
               fmt::format("the job runs but does not train what it should: {}", named(symptom)));
      } else {
        remark(remark::kOtherSymptom, fmt::format("{} is gone, but now the job shows {}",
                                                  named(category), named(symptom)));
      }
    }
    if (outcome.verdict() == pb::COMPLETED && !result.performance_back()) {
      remark(remark::kSlow, slower_text(jobs, healthy, outcome));
    }
    const bool good = result.symptom_gone() && result.performance_back();
    const auto timers = longer_timers(jobs, rules_.tables());
    if (!good && !timers.empty()) {
      remark(remark::kLongerTimeout,
             fmt::format("{} {} changed: a longer timeout, or none, only waits longer, it does not "
                         "repair what is waited for",
                         some_of(timers), timers.size() == 1 ? "was" : "were"));
    }
    result.set_passed(good && result.remarks().empty());
  }

  pb::LabCheck result;

 private:
  [[nodiscard]] bool performance_back(const LabJobs& jobs, const pb::Outcome& healthy,
                                      const pb::Outcome& outcome) const {
    const pb::StepTimes &now = outcome.step_time_ns(), &then = healthy.step_time_ns();
    if (now.mean() <= 0 || now.each_size() < then.each_size()) return false;
    const double per_sample = static_cast<double>(now.mean()) / samples_per_step(jobs.learners);
    const double wanted = static_cast<double>(then.mean()) / samples_per_step(jobs.healthy);
    const double slower = job_.lab->lab.has_slower() ? job_.lab->lab.slower() : kAsGoodAs;
    return per_sample <= wanted * (1 + slower);
  }

  // Times of steps compare where steps do the same; otherwise times per sample do.
  static std::string slower_text(const LabJobs& jobs, const pb::Outcome& healthy,
                                 const pb::Outcome& outcome) {
    const auto now = static_cast<double>(outcome.step_time_ns().mean());
    const auto then = static_cast<double>(healthy.step_time_ns().mean());
    const double samples = samples_per_step(jobs.learners);
    const double samples_then = samples_per_step(jobs.healthy);
    if (samples == samples_then) {
      return fmt::format("a step takes {}, in the healthy job {}: performance is not back",
                         format_duration(outcome.step_time_ns().mean()),
                         format_duration(healthy.step_time_ns().mean()));
    }
    return fmt::format("a sample takes {}, in the healthy job {}: performance is not back",
                       format_duration(std::llround(now / samples)),
                       format_duration(std::llround(then / samples_then)));
  }

  const LabJob& job_;
  const Rules& rules_;
};

}  // namespace

Result<pb::Outcome> observe_job(const sim::Scenario& job, const pb::StepTimes* healthy,
                                Reporter& reporter) {
  RH_TRY(const Rules rules, Rules::load_shipped());
  RH_TRY(pb::Outcome outcome, sim::simulate(job, sim::Detail::kRecords, reporter));
  observe(job, rules, healthy, outcome);
  return outcome;
}

Result<std::string> symptom_of(const LabJob& lab, const sim::Scenario& job,
                               const pb::Outcome& outcome) {
  const std::string& category = lab.lab->lab.category();
  if (!lab.lab->lab.by_check() || outcome.symptom().id() != kHealthy) return outcome.symptom().id();
  RH_TRY(const Rules rules, Rules::load_shipped());
  const bool warned = warned_of(job.document, rules).count(category) > 0 &&
                      warned_of(lab.healthy.document, rules).count(category) == 0;
  return warned ? category : std::string(kHealthy);
}

Result<pb::LabCheck> assess(const LabJob& job, const pb::Scenario& written, Reporter& reporter) {
  RH_TRY(const Rules rules, Rules::load_shipped());
  Assessment assessment(job, rules);
  assessment.result.set_schema("rehearse.lab-check/1");
  assessment.result.set_lab(job.lab->lab.id());
  assessment.result.set_seed(job.seed);
  RH_TRY(const sim::Scenario broken, load_job(job, job.written, reporter));
  const auto loaded = load_job(job, written, reporter);
  const auto run = loaded.and_then([&](const sim::Scenario& learners) {
    return observe_job(learners, &job.healthy_run.step_time_ns(), reporter);
  });
  if (!run && sealed_needs(job, written) && run.error().code == Code::kBadInput) {
    assessment.remark(remark::kLessWork,
                      "under `trace` the job was changed into one that cannot show the fault any "
                      "more; it is to train what it trained");
    return std::move(assessment.result);
  }
  if (!run) return tl::unexpected(run.error());
  const sim::Scenario& learners = *loaded;
  const pb::Outcome& outcome = *run;
  const pb::Outcome& healthy = job.healthy_run;
  RH_TRY(const std::string symptom, symptom_of(job, learners, outcome));
  const LabJobs jobs{.healthy = job.healthy, .broken = broken, .learners = learners};
  assessment.look(jobs, written);
  assessment.weigh(jobs, healthy, outcome, symptom);
  return std::move(assessment.result);
}

}  // namespace rehearse::faults
