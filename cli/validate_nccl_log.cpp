// SPDX-License-Identifier: Apache-2.0
#include "cli/validate_nccl_log.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "cli/platform_option.hpp"
#include "cli/table.hpp"
#include "cli/validate_document.hpp"
#include "sim/nccl/testbed.hpp"
#include "traces/evidence/evidence.hpp"
#include "validation/nccl_log.hpp"

namespace rehearse::cli {
namespace {

using Json = nlohmann::ordered_json;
using validation::LogCheck;
using validation::LogReport;

Result<std::map<std::string, std::string>> environment_of(const Context& context) {
  std::map<std::string, std::string> out;
  if (!context.has("env")) return out;
  for (const std::string& word : context.get<std::vector<std::string>>("env")) {
    RH_TRY(const sim::RankSetting setting, sim::parse_setting(word));
    out[setting.name] = setting.value;
  }
  return out;
}

struct FileReport {
  std::string file;
  LogReport report;
};

validation::Check as_check(const LogCheck& log) {
  validation::Check check;
  check.id = "nccl-log-" + log.id;
  check.what = log.what;
  check.n = log.n;
  check.metric = "share of logged facts that differ";
  check.value = log.n == 0 ? 0 : static_cast<double>(log.mismatches) / static_cast<double>(log.n);
  check.why = log.n == 0 ? log.why : "";
  judge_value(check);
  return check;
}

Json document(const std::vector<FileReport>& files, const std::string& platform) {
  Json checks = Json::array(), differences = Json::array(), assumed = Json::array();
  size_t rows = 0, mismatches = 0;
  for (const auto& [file, report] : files) {
    rows += report.compared();
    mismatches += report.mismatches();
    for (const LogCheck& check : report.checks) {
      Json row = check_json(as_check(check), check.errors);
      row["file"] = file;
      row["mismatches"] = check.mismatches;
      checks.push_back(std::move(row));
    }
    for (const validation::LogDifference& d : report.differences) {
      differences.push_back({{"file", file},
                             {"communicator", d.communicator},
                             {"what", d.what},
                             {"logged", d.logged},
                             {"computed", d.computed},
                             {"why", d.why}});
    }
    for (const std::string& what : report.assumed) {
      assumed.push_back({{"file", file}, {"what", what}});
    }
  }
  return validate_document(
      {{"platform", platform}, {"rows", rows}, {"mismatches", mismatches}}, std::move(checks),
      {{"differences", std::move(differences)}, {"assumed", std::move(assumed)}});
}

std::string text(const FileReport& file, const Terminal& terminal) {
  const LogReport& report = file.report;
  std::string out = fmt::format(
      "{}: {} of {} logged facts differ from our decisions ({} communicators)\n", file.file,
      format_count(report.mismatches()), format_count(report.compared()), report.communicators);
  Table checks({{"compared"},
                {"number", Align::kRight},
                {"differ", Align::kRight},
                {"median error", Align::kRight},
                {"why not"}});
  for (const LogCheck& check : report.checks) {
    checks.add({check.what, format_count(check.n), format_count(check.mismatches),
                check.errors.empty()
                    ? ""
                    : fmt::format("{:.1f} %", 100 * validation::quantile(check.errors, 0.5)),
                check.n == 0 ? check.why : ""});
  }
  out += checks.text(terminal);
  for (const std::string& what : report.assumed) out += "  assumed: " + what + "\n";
  for (const validation::LogDifference& d : report.differences) {
    out += fmt::format("  {} ({}): logged {}, computed {}; {}\n", d.what, d.communicator, d.logged,
                       d.computed, d.why);
  }
  return out;
}

}  // namespace

Result<int> run_validate_nccl_log(Context& context) {
  if (context.inputs().size() < 2 || !context.has("platform")) {
    return fail(Code::kUsage, "it takes logs and the platform they were written on",
                "validate nccl-log", "rehearse validate nccl-log FILE --platform hgx-h100");
  }
  const auto platform_name = context.get<std::string>("platform");
  RH_TRY(const pb::Platform platform, read_platform(platform_name));
  RH_TRY(const auto environment, environment_of(context));
  std::vector<FileReport> files;
  size_t mismatches = 0;
  for (size_t i = 1; i < context.inputs().size(); ++i) {
    const std::string& file = context.inputs()[i];
    Findings findings;
    RH_TRY(const auto evidence, traces::read_evidence(file, findings, context.reporter()));
    bool any = false;
    for (const pb::Evidence& e : evidence) {
      if (!e.has_nccl_log()) continue;
      any = true;
      auto report = validation::check_log(e.nccl_log(), {platform, environment});
      if (!report) {
        report.error().where =
            file + (report.error().where.empty() ? "" : ", " + report.error().where);
        return tl::unexpected(report.error());
      }
      mismatches += report->mismatches();
      files.push_back({file, std::move(*report)});
    }
    if (!any) {
      return fail(Code::kBadInput, "no NCCL log is in it", file, "record with NCCL_DEBUG=INFO");
    }
    context.show(findings);
  }
  if (context.json()) {
    return exit_code(context.print(document(files, platform_name)),
                     mismatches == 0 ? 0 : static_cast<int>(Code::kFinding));
  }
  std::string all;
  for (const FileReport& file : files) all += text(file, context.terminal());
  return exit_code(context.print(std::string_view(all)),
                   mismatches == 0 ? 0 : static_cast<int>(Code::kFinding));
}

}  // namespace rehearse::cli
