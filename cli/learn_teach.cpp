// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/document.hpp"
#include "cli/csv.hpp"
#include "cli/learn.hpp"
#include "cli/table.hpp"
#include "faults/lessons/assess.hpp"
#include "faults/lessons/folder.hpp"
#include "faults/lessons/play.hpp"
#include "faults/lessons/progress.hpp"

namespace rehearse::cli {
namespace {
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// A working folder, checked anew; what it says of itself is believed for hints and checks only.
Result<pb::LabCheck> grade_of(const fs::path& folder, const faults::LabCatalogue& labs,
                              Reporter& reporter) {
  RH_TRY(pb::LabState state, faults::read_state(folder));
  RH_TRY(auto entry, labs.find(state.lab()));
  RH_TRY(const faults::LabJob job, faults::prepare_job(std::move(entry), state.seed(), reporter));
  RH_TRY(const pb::Scenario written, faults::read_job(folder));
  RH_TRY(pb::LabCheck check, faults::assess(job, written, reporter));
  state.set_passed(check.passed());
  check.set_hints(state.hints());
  check.set_checks(state.checks());
  check.set_gave_up(state.gave_up());
  check.set_score(faults::score_of(job.script, state));
  return check;
}

Result<std::vector<std::shared_ptr<const faults::LabEntry>>> chosen(
    const faults::LabCatalogue& labs, const LearnWords& ids) {
  if (ids.empty()) return labs.entries();
  std::vector<std::shared_ptr<const faults::LabEntry>> out;
  for (const std::string& id : ids) {
    RH_TRY(auto entry, labs.find(id));
    out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace

Result<int> learn_grade(Context& context, const LearnWords& words) {
  if (words.empty()) {
    return fail(Code::kUsage, "grade takes working folders", "learn grade",
                "for example: rehearse learn grade handed-in/*");
  }
  RH_TRY(const faults::LabCatalogue labs, lab_catalogue(context));
  Json rows = Json::array();
  std::string csv = "folder,lab,seed,passed,score,hints,checks,gave_up,symptom,remarks\n";
  for (size_t i = 0; i < words.size(); ++i) {
    context.reporter().progress("folders", i, words.size());
    const auto check = grade_of(words[i], labs, context.reporter());
    if (!check && check.error().code == Code::kInterrupted) return tl::unexpected(check.error());
    const pb::LabCheck graded = check ? *check : pb::LabCheck();
    std::vector<std::string> remarks;
    for (const pb::LabRemark& remark : graded.remarks()) remarks.push_back(remark.id());
    // What cannot be read is a row too: somebody has to look at it.
    if (!check) remarks.push_back("unreadable: " + check.error().message());
    csv +=
        fmt::format("{},{},{},{},{},{},{},{},{},{}\n", csv_cell(words[i]), csv_cell(graded.lab()),
                    graded.seed(), graded.passed(), graded.score(), graded.hints(), graded.checks(),
                    graded.gave_up(), csv_cell(graded.symptom()),
                    csv_cell(fmt::format("{}", fmt::join(remarks, " "))));
    Json row = {{"folder", words[i]}};
    row.update(to_json(graded));
    row.erase("schema");
    if (!check) row["unreadable"] = check.error().message();
    rows.push_back(std::move(row));
  }
  return exit_code(context.json()
                       ? context.print(Json{{"schema", "rehearse.lab-grades/1"}, {"grades", rows}})
                       : context.print(std::string_view(csv)));
}

Result<int> learn_new(Context& context, const LearnWords& words) {
  const bool named = !words.empty() && words.size() <= 2 &&
                     words[0].find_first_not_of(
                         "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                         "0123456789-") == std::string::npos;
  if (!named) {
    return fail(Code::kUsage, "new takes an id of letters, digits and '-', and a folder",
                "learn new", "for example: rehearse learn new L90 mylabs");
  }
  const fs::path folder = words.size() == 2 ? fs::path(words[1]) : fs::path(".");
  const fs::path file = folder / (words[0] + ".yaml");
  const std::string text = faults::lab_skeleton(words[0]);
  RH_TRY(const auto catalogue, faults::FaultCatalogue::load_shipped());
  RH_TRY(const faults::LabEntry entry, faults::read_lab(text, file.string(), catalogue));
  std::error_code ec;
  fs::create_directories(folder, ec);
  if (ec) {
    return fail(Code::kIo, "cannot create the folder: " + ec.message(), folder.string(),
                "name a folder that can be written");
  }
  if (auto written = write_file(file, text, context.overwrite()); !written) {
    return tl::unexpected(written.error());
  }
  if (context.json()) {
    return exit_code(context.print(
        Json{{"schema", "rehearse.lab-new/1"}, {"lab", entry.lab.id()}, {"file", file.string()}}));
  }
  return exit_code(context.print(std::string_view(
      fmt::format("{}: edit it, then play it through with\n  rehearse learn verify {} --labs {}\n",
                  file.string(), words[0], folder.string()))));
}

Result<int> learn_verify(Context& context, const LearnWords& words) {
  RH_TRY(const int64_t seed, context.number("seed", 0, 1'000'000'000));
  RH_TRY(const faults::LabCatalogue labs, lab_catalogue(context));
  RH_TRY(const auto entries, chosen(labs, words));
  Json rows = Json::array();
  Table table({{"lab"}, {"attempt"}, {"as promised"}, {"what came out"}});
  bool good = true;
  for (size_t i = 0; i < entries.size(); ++i) {
    context.reporter().progress("labs", i, entries.size());
    RH_TRY(const faults::LabJob job,
           faults::prepare_job(entries[i], static_cast<uint64_t>(seed), context.reporter()));
    RH_TRY(const std::vector<faults::Played> played, faults::play_lab(job, context.reporter()));
    for (const faults::Played& each : played) {
      good = good && each.as_promised;
      table.add({entries[i]->lab.id(), each.what, each.as_promised ? "yes" : "no", each.said});
      rows.push_back({{"lab", entries[i]->lab.id()},
                      {"attempt", each.what},
                      {"as_promised", each.as_promised},
                      {"said", each.said}});
    }
  }
  const int code = good ? 0 : static_cast<int>(Code::kFinding);
  if (context.json()) {
    return exit_code(context.print(Json{{"schema", "rehearse.lab-play/1"}, {"attempts", rows}}),
                     code);
  }
  return exit_code(context.print(std::string_view(table.text(context.terminal()))), code);
}

}  // namespace rehearse::cli
