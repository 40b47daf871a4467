// SPDX-License-Identifier: Apache-2.0
#include "cli/validate_all.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "cli/table.hpp"
#include "cli/validate_document.hpp"
#include "validation/accuracy_page.hpp"
#include "validation/accuracy_plot.hpp"
#include "validation/certainty/change_checks.hpp"
#include "validation/fault_pair_checks.hpp"
#include "validation/suite.hpp"

namespace rehearse::cli {
namespace {

using Json = nlohmann::ordered_json;
using validation::Check;
using validation::CheckRow;

std::string text(const std::vector<Check>& checks, const Terminal& terminal, bool with_rows) {
  const auto judged =
      std::count_if(checks.begin(), checks.end(), [](const Check& c) { return !c.skipped; });
  const auto met =
      std::count_if(checks.begin(), checks.end(), [](const Check& c) { return c.met; });
  std::string out =
      terminal.styled(Style::kBold,
                      fmt::format("{} of {} targets met, {} checks skipped", met, judged,
                                  checks.size() - static_cast<size_t>(judged))) +
      "\n";
  Table table({{"check"},
               {"rows", Align::kRight},
               {"figure", Align::kRight},
               {"9 of 10", Align::kRight},
               {"target", Align::kRight},
               {"met"}});
  for (const Check& check : checks) {
    const auto cells = validation::figures_of(check);
    table.add({check.id, format_count(check.n), cells.figure, cells.p90, cells.target,
               check.skipped ? "skipped"
               : check.met   ? "yes"
                             : "no"});
  }
  out += table.text(terminal);
  for (const Check& check : checks) {
    if (!check.why.empty()) out += fmt::format("{}: {}\n", check.id, check.why);
    for (const std::string& assumed : check.assumptions) {
      out += fmt::format("{}: {}\n", check.id, assumed);
    }
    if (!with_rows || check.rows.empty()) continue;
    Table rows({{"what"},
                {"predicted", Align::kRight},
                {"measured", Align::kRight},
                {"error", Align::kRight},
                {"source"},
                {"command"}});
    for (const CheckRow& row : check.rows) {
      rows.add({row.what, fmt::format("{:.4g} {}", row.predicted, row.unit),
                fmt::format("{:.4g} {}", row.measured, row.unit),
                fmt::format("{:+.1f} %", 100 * row.error()), row.source, row.command});
    }
    out += "\n" + check.id + "\n" + rows.text(terminal);
  }
  return out;
}

Result<int> show_checks(Context& context, const std::vector<Check>& checks,
                        const std::string& data) {
  const bool rows = context.has("rows");
  Result<void> done;
  if (context.json()) {
    Json list = Json::array();
    for (const Check& check : checks)
      list.push_back(check_json(check, rows ? CheckRows::kListed : CheckRows::kLeftOut));
    done = context.print(validate_document({{"data", data}}, std::move(list), Json::object()));
  } else if (context.has("markdown")) {
    done = context.print(std::string_view(validation::accuracy_page(checks)));
  } else if (context.has("html")) {
    done = context.print(std::string_view(validation::accuracy_plots(checks)));
  } else {
    done = context.print(std::string_view(text(checks, context.terminal(), rows)));
  }
  const bool missed = std::any_of(checks.begin(), checks.end(),
                                  [](const Check& c) { return !c.met && !c.skipped; });
  return exit_code(std::move(done),
                   missed && context.has("strict") ? static_cast<int>(Code::kFinding) : 0);
}

}  // namespace

Result<int> validate_pairs(Context& context, const std::vector<std::string>& files) {
  if (files.empty()) {
    return fail(Code::kUsage, "FILE is missing: the list of pairs", "validate pairs",
                "a file like faults/fault_fix_pairs.json of the data folder");
  }
  std::vector<Check> checks;
  for (const std::string& file : files) {
    if (!std::filesystem::is_regular_file(file)) {
      return fail(Code::kMissingInput, "there is no such file", file, "give a list of pairs");
    }
    checks.push_back(validation::pair_check(file));
    if (checks.back().skipped && checks.back().assumptions.empty()) {
      return fail(Code::kBadInput, checks.back().why, file,
                  "a JSON list of objects: id, before, after, metric, hardware, cause, fix");
    }
  }
  return show_checks(context, checks, files.front());
}

Result<int> validate_all(Context& context) {
  validation::SuiteOptions options;
  if (context.has("data")) {
    options.data = context.get<std::string>("data");
    if (!std::filesystem::is_directory(options.data)) {
      return fail(Code::kMissingInput, "there is no such folder", options.data.string(),
                  "give the folder that holds nccl/, kineto/ and so on");
    }
  } else if (const char* from = std::getenv("REHEARSE_DATA"); from != nullptr) {
    if (std::filesystem::is_directory(from)) options.data = from;
  }
  if (context.has("only")) options.only = context.get<std::vector<std::string>>("only");
  RH_TRY(const auto checks, validation::run_suite(options, context.reporter()));
  if (context.has("save-changes")) {
    const auto file = context.get<std::string>("save-changes");
    if (auto saved =
            write_file(file, validation::change_errors_document(checks), context.overwrite());
        !saved) {
      return tl::unexpected(std::move(saved).error());
    }
  }
  return show_checks(context, checks, options.data.string());
}

}  // namespace rehearse::cli
