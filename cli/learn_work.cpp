// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/document.hpp"
#include "base/units.hpp"
#include "cli/learn.hpp"
#include "faults/lessons/assess.hpp"
#include "faults/lessons/folder.hpp"
#include "faults/lessons/progress.hpp"
#include "faults/lessons/readme.hpp"

namespace rehearse::cli {
namespace {
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int64_t kMostSeed = 1'000'000'000;

// A folder that is being worked in.
struct Work {
  fs::path folder;
  pb::LabState state;
  faults::LabJob job;
};

Result<Work> open_work(Context& context, const LearnWords& words, const char* what) {
  if (words.size() > 1) {
    return fail(Code::kUsage, fmt::format("{} takes one folder", what), words[1],
                "leave it out inside the folder");
  }
  const fs::path folder = words.empty() ? fs::path(".") : fs::path(words.front());
  RH_TRY(pb::LabState state, faults::read_state(folder));
  RH_TRY(const faults::LabCatalogue labs, lab_catalogue(context));
  RH_TRY(auto entry, labs.find(state.lab()));
  RH_TRY(faults::LabJob job,
         faults::prepare_job(std::move(entry), state.seed(), context.reporter()));
  return Work{folder, std::move(state), std::move(job)};
}

Result<void> keep(const Work& work) {
  if (auto done = faults::write_state(work.folder, work.state); !done) return done;
  return faults::note_progress(work.state);
}

std::string check_text(const pb::LabCheck& check, const Terminal& terminal) {
  std::string out = check.passed() ? terminal.styled(Style::kGreen, "repaired") +
                                         fmt::format(", {} points\n", check.score())
                                   : terminal.styled(Style::kRed, "not repaired") + "\n";
  const auto line = [&](const char* what, bool good) {
    out += fmt::format("  {:<22}{}\n", what, good ? "yes" : "no");
  };
  line("symptom gone", check.symptom_gone());
  line("performance back", check.performance_back());
  if (check.step_time_ns() > 0) {
    out +=
        fmt::format("  {:<22}{} (healthy {})\n", "step time", format_duration(check.step_time_ns()),
                    format_duration(check.healthy_step_time_ns()));
  }
  for (const pb::LabRemark& remark : check.remarks()) {
    out += fmt::format("  {}\n", remark.text());
  }
  return out;
}

}  // namespace

Result<int> learn_start(Context& context, const LearnWords& words) {
  if (words.empty() || words.size() > 2) {
    return fail(Code::kUsage, "start takes a lab and a folder", "learn start",
                "for example: rehearse learn start L01");
  }
  RH_TRY(const int64_t seed, context.number("seed", 0, kMostSeed));
  RH_TRY(const faults::LabCatalogue labs, lab_catalogue(context));
  RH_TRY(auto entry, labs.find(words.front()));
  const fs::path folder = words.size() == 2 ? fs::path(words[1]) : fs::path(entry->lab.id());
  RH_TRY(const faults::LabJob job,
         faults::prepare_job(std::move(entry), static_cast<uint64_t>(seed), context.reporter()));
  if (auto done = faults::start_lab(job, folder, context.overwrite(), context.reporter()); !done) {
    return tl::unexpected(done.error());
  }
  RH_TRY(const pb::LabState state, faults::read_state(folder));
  if (auto noted = faults::note_progress(state); !noted) return tl::unexpected(noted.error());
  if (context.json()) {
    return exit_code(context.print(Json{{"schema", "rehearse.lab-start/1"},
                                        {"lab", state.lab()},
                                        {"seed", state.seed()},
                                        {"folder", folder.string()}}));
  }
  return exit_code(context.print(std::string_view(
      fmt::format("{}: {}\nthe job and its evidence are in {}; begin with {}\n", state.lab(),
                  job.lab->lab.title(), folder.string(), (folder / "README.md").string()))));
}

Result<int> learn_hint(Context& context, const LearnWords& words) {
  RH_TRY(Work work, open_work(context, words, "hint"));
  const auto& hints = work.job.script.hints();
  const bool left = static_cast<int>(work.state.hints()) < hints.size();
  // The last one is given again.
  const pb::Hint& hint = hints[left ? static_cast<int>(work.state.hints()) : hints.size() - 1];
  const uint32_t cost = left ? hint.cost() : 0;
  if (left) {
    work.state.set_hints(work.state.hints() + 1);
    if (auto kept = keep(work); !kept) return tl::unexpected(kept.error());
  }
  const int more = hints.size() - static_cast<int>(work.state.hints());
  if (context.json()) {
    return exit_code(context.print(Json{
        {"schema", "rehearse.lab-hint/1"}, {"text", hint.text()}, {"cost", cost}, {"left", more}}));
  }
  return exit_code(context.print(std::string_view(
      fmt::format("{}\n({} points, {} more hint{})\n", hint.text(), cost,
                  more == 0 ? "no" : std::to_string(more), more == 1 ? "" : "s"))));
}

Result<int> learn_check(Context& context, const LearnWords& words) {
  RH_TRY(Work work, open_work(context, words, "check"));
  RH_TRY(const pb::Scenario written, faults::read_job(work.folder));
  RH_TRY(pb::LabCheck check, faults::assess(work.job, written, context.reporter()));
  work.state.set_checks(work.state.checks() + 1);
  work.state.set_passed(work.state.passed() || check.passed());
  pb::LabState now = work.state;
  now.set_passed(check.passed());
  check.set_score(faults::score_of(work.job.script, now));
  work.state.set_score(std::max(work.state.score(), check.score()));
  check.set_hints(work.state.hints());
  check.set_checks(work.state.checks());
  check.set_gave_up(work.state.gave_up());
  if (auto kept = keep(work); !kept) return tl::unexpected(kept.error());
  const int code = check.passed() ? 0 : static_cast<int>(Code::kFinding);
  std::string explanation;  // of what is repaired; before that it would give it away
  if (check.passed()) {
    RH_TRY(const faults::Categories categories, faults::Categories::load_shipped());
    explanation = faults::explanation_text(work.job, categories);
  }
  if (context.json()) {
    Json json = to_json(check);
    if (check.passed()) json["explanation"] = explanation;
    return exit_code(context.print(json), code);
  }
  std::string text = check_text(check, context.terminal());
  if (check.passed()) text += "\n" + explanation;
  return exit_code(context.print(std::string_view(text)), code);
}

Result<int> learn_solution(Context& context, const LearnWords& words) {
  RH_TRY(Work work, open_work(context, words, "solution"));
  RH_TRY(const faults::Categories categories, faults::Categories::load_shipped());
  work.state.set_gave_up(true);
  if (auto kept = keep(work); !kept) return tl::unexpected(kept.error());
  const std::string solution = faults::solution_text(work.job);
  const std::string explanation = faults::explanation_text(work.job, categories);
  if (context.json()) {
    return exit_code(context.print(Json{{"schema", "rehearse.lab-solution/1"},
                                        {"fault", work.job.use.text()},
                                        {"solution", solution},
                                        {"explanation", explanation}}));
  }
  return exit_code(context.print(std::string_view(solution + "\n" + explanation)));
}

}  // namespace rehearse::cli
