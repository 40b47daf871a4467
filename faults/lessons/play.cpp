// SPDX-License-Identifier: Apache-2.0
#include "faults/lessons/play.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "faults/lessons/assess.hpp"
#include "faults/lessons/remarks.hpp"

namespace rehearse::faults {
namespace {

std::string remarks_of(const pb::LabCheck& check) {
  if (check.passed()) return "passed";
  std::vector<std::string> texts;
  for (const pb::LabRemark& remark : check.remarks()) {
    texts.push_back(fmt::format("{}: {}", remark.id(), remark.text()));
  }
  return fmt::format("{} ({})", check.symptom(), fmt::join(texts, "; "));
}

bool remarked(const pb::LabCheck& check, std::string_view id) {
  return std::any_of(check.remarks().begin(), check.remarks().end(),
                     [&](const pb::LabRemark& remark) { return remark.id() == id; });
}

Result<Played> attempt(const LabJob& job, const pb::Attempt& edits, std::string_view wanted,
                       Reporter& reporter) {
  RH_TRY(const pb::Scenario written, with_attempt(job, edits));
  RH_TRY(const pb::LabCheck check, assess(job, written, reporter));
  const bool good = wanted.empty() ? check.passed() : !check.passed() && remarked(check, wanted);
  return Played{edits.what(), good, remarks_of(check)};
}

// Every timer that a person thinks of first.
pb::Attempt longer_timeout() {
  pb::Attempt edits;
  edits.set_what("a longer timeout");
  (*edits.mutable_set())["launch.collective_timeout"] = "4h";
  (*edits.mutable_set())["launch.start_timeout"] = "4h";
  return edits;
}

}  // namespace

Result<std::vector<Played>> play_lab(const LabJob& job, Reporter& reporter) {
  std::vector<Played> out;
  RH_TRY(const sim::Scenario broken, load_job(job, job.written, reporter));
  RH_TRY(const pb::Outcome outcome, observe_job(broken, &job.healthy_run.step_time_ns(), reporter));
  RH_TRY(const std::string symptom, symptom_of(job, broken, outcome));
  out.push_back({"the broken job", symptom == job.lab->lab.category(), symptom});
  pb::Attempt solution = solution_of(job);
  solution.set_what("the solution");
  RH_TRY(Played solved, attempt(job, solution, "", reporter));
  out.push_back(std::move(solved));
  pb::Attempt nothing;
  nothing.set_what("doing nothing");
  RH_TRY(Played idle, attempt(job, nothing, remark::kNothingChanged, reporter));
  out.push_back(std::move(idle));
  RH_TRY(Played waited, attempt(job, longer_timeout(), remark::kLongerTimeout, reporter));
  out.push_back(std::move(waited));
  for (const pb::Attempt& wrong : job.script.wrong()) {
    RH_TRY(Played played, attempt(job, wrong, wrong.remark(), reporter));
    out.push_back(std::move(played));
  }
  return out;
}

}  // namespace rehearse::faults
