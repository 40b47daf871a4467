// SPDX-License-Identifier: Apache-2.0
#include "faults/lessons/readme.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/document.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "sim/scenario/scenario.hpp"

namespace rehearse::faults {
namespace {

constexpr int kMostPatterns = 4;

std::string trimmed(std::string text) {
  while (text.ends_with('\n') || text.ends_with(' ')) text.pop_back();
  return text;
}

// "44 of 637 faults of the study (6.9 %) show it; 14 were repaired by 'fix communication configuration', ..."
std::string study_text(const pb::Lab& lab, const Categories& categories) {
  const pb::SymptomCategory* category = categories.find(lab.category());
  if (category == nullptr) return "";
  std::vector<std::string> patterns;
  for (const pb::FixPattern& fix : category->fixes()) {
    if (static_cast<int>(patterns.size()) == kMostPatterns) break;
    patterns.push_back(fmt::format("{} ({})", fix.pattern(), fix.count()));
  }
  const uint32_t total = categories.table().total();
  return fmt::format(
      "{} of the {} faults of the study ({:.1f} %) show {}, {}; {} of them are specific to "
      "distributed training. Most frequent repairs: {}.",
      category->count(), total, 100.0 * category->count() / std::max(1u, total), lab.category(),
      category->label(), category->distributed(), join_words(patterns));
}

std::string run_line(const LabJob& job, const pb::Outcome& broken) {
  const std::string healthy = format_duration(job.healthy_run.step_time_ns().mean());
  const int done = broken.step_time_ns().each_size(),
            all = job.healthy_run.step_time_ns().each_size();
  switch (broken.verdict()) {
    case pb::HANG:
      return fmt::format(
          "It stands still after {} of {} steps. When it was healthy, a step took {}.", done, all,
          healthy);
    case pb::CRASH:
      return fmt::format(
          "It ends with an error after {} of {} steps. When it was healthy, a step "
          "took {}.",
          done, all, healthy);
    case pb::REJECTED:
      return fmt::format("It does not get through its start. When it was healthy, a step took {}.",
                         healthy);
    default:
      return fmt::format("It runs to its end, at {} a step. When it was healthy, a step took {}.",
                         format_duration(broken.step_time_ns().mean()), healthy);
  }
}

std::string indented(const std::string& text) {
  std::string out;
  for (const std::string& line : split(trimmed(text), '\n')) out += "    " + line + "\n";
  return out;
}

}  // namespace

std::string lab_text(const pb::Lab& lab, const Categories& categories) {
  std::string out = fmt::format("# {}: {}\n\n", lab.id(), lab.title());
  out += fmt::format("symptom {}, about {} minutes", lab.category(), lab.minutes());
  if (lab.after_size() > 0) out += fmt::format(", after {}", fmt::join(lab.after(), ", "));
  out += fmt::format("\nafterwards you can {}\n\n## Goal\n\n{}\n\n## Background\n\n{}\n",
                     lab.learn(), trimmed(lab.goal()), trimmed(lab.background()));
  if (const std::string study = study_text(lab, categories); !study.empty()) {
    out += "\n## In the study\n\n" + study + "\n";
  }
  return out;
}

std::string readme_text(const LabJob& job, const pb::Outcome& broken, const pb::Repairs& repairs) {
  const pb::Lab& lab = job.lab->lab;
  std::string out = fmt::format("# {}: {}\n\n## What you are told\n\n{}\n\n{}\n\n", lab.id(),
                                lab.title(), trimmed(job.script.report()), run_line(job, broken));
  out += fmt::format("## Goal\n\n{}\n\n## Background\n\n{}\n\n", trimmed(lab.goal()),
                     trimmed(lab.background()));
  out += R"(## What is here

- `job.yaml`: what the job trains and how it is launched
- `cluster.yaml`: the machines, their ports, addresses, rules and versions
- `env/nodeN.env`: the environment of the processes on a node
- `evidence/`: what the broken run left behind: `screen.txt` (what ranks printed), `gpus.txt`, `ports.txt`,
  `steps.txt` (where each rank's step went), NCCL's logs, and dumps of the flight recorder where there are any

## How to work

Read the evidence, make a guess, edit a file, and run the job again:

    rehearse run job.yaml
    rehearse run job.yaml --timeline timeline.json
    rehearse learn check

`run` shows what a practitioner would see. It has no healthy run to compare with and may find nothing wrong with a job
that is only slow: compare with the step time above. `learn hint` costs points, `learn solution` all of them.

Some repairs are in no file: a part that is replaced, a line of the training program. Write those under `patches:` of
`job.yaml`, with numbers for RANK, NODE and NIC. The list is the same for every lab:

)";
  for (const pb::Repair& repair : repairs.repairs()) {
    out += fmt::format("    - {}\n      # {}\n", repair.write(), repair.does());
  }
  out +=
      "\nThe line `sealed:` is what no file says about this job. Leave it as it is; the check puts "
      "it back.\n";
  return out;
}

std::string explanation_text(const LabJob& job, const Categories& categories) {
  const pb::Lab& lab = job.lab->lab;
  std::string out = fmt::format("## What it was\n\n{}\n", trimmed(job.script.explanation()));
  out += "\n## In the study\n\n" + study_text(lab, categories) + "\n";
  if (!job.fixes.empty() && !job.fixes.front().pattern().empty()) {
    const pb::Fix& fix = job.fixes.front();
    const uint32_t solved = categories.solved(lab.category(), fix.pattern());
    out += fmt::format(
        "The repair here is of the pattern '{}', which solved {} of {} with this symptom.\n",
        fix.pattern(), solved, [&] {
          const pb::SymptomCategory* category = categories.find(lab.category());
          return category == nullptr ? 0u : category->count();
        }());
  }
  const auto& sources = lab.sources_size() > 0 ? lab.sources() : job.use.fault().sources();
  if (!sources.empty()) out += "\n## Threads and papers\n\n";
  for (const std::string& source : sources) out += "- " + source + "\n";
  return out;
}

std::string solution_text(const LabJob& job) {
  const pb::Attempt solution = solution_of(job);
  std::string out = fmt::format("## A solution\n\n{}\n", trimmed(solution.what()));
  const sim::Assignments assignments = sim::sorted_assignments(solution.set());
  if (!assignments.empty()) out += "\nEdit:\n\n";
  for (const auto& [path, value] : assignments) {
    out += fmt::format("    {} = {}\n", path, value.empty() ? "(unset)" : value);
  }
  if (solution.patch_size() == 0) return out;
  pb::Scenario holder;
  *holder.mutable_patches() = solution.patch();
  out += "\nOr, as lines of `job.yaml`:\n\n" + indented(write_document(holder));
  return out;
}

}  // namespace rehearse::faults
