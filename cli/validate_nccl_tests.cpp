// SPDX-License-Identifier: Apache-2.0
// `rehearse validate nccl-tests`: predicted against measured times.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/units.hpp"
#include "cli/context.hpp"
#include "cli/platform_option.hpp"
#include "cli/table.hpp"
#include "cli/validate.hpp"
#include "cli/validate_document.hpp"
#include "sim/nccl/testbed.hpp"
#include "validation/accuracy.hpp"
#include "validation/nccl_tests.hpp"

namespace rehearse::cli {
namespace {
using Json = nlohmann::ordered_json;
using validation::ErrorSummary;
using validation::NcclTestReport;

constexpr size_t kWorstParts = 6;
constexpr const char* kNothingJudged = "no call of 1 MiB and more, which alone are judged";

Json errors_json(const ErrorSummary& errors) {
  return {{"n", errors.rows},
          {"median_error", errors.median},
          {"p90_error", errors.p90},
          {"bias", errors.bias}};
}

validation::Check judged_check(const NcclTestReport& report) {
  validation::Check check;
  check.id = "nccl-tests";
  check.what = "time of collectives of 1 MiB and more, all hardware";
  check.n = report.judged.rows;
  check.value = report.judged.median;
  check.target = NcclTestReport::kTarget;
  if (check.n == 0) check.why = kNothingJudged;
  judge_value(check);
  return check;
}

std::string title(const validation::HardwareReport& hardware) {
  std::string out = hardware.hardware.empty() ? "unnamed hardware" : hardware.hardware;
  if (hardware.from_nodes > 0) out += fmt::format(" ({} nodes and more)", hardware.from_nodes);
  return out;
}

Json document(const NcclTestReport& report) {
  Json checks = Json::array(), hardware = Json::array(), rows = Json::array();
  Json check = check_json(judged_check(report), CheckRows::kLeftOut);
  check.update(errors_json(report.judged));
  checks.push_back(std::move(check));
  for (const auto& h : report.hardware) {
    Json parts = Json::array();
    for (const auto& part : h.parts) {
      Json row = {{"what", part.what}};
      row.update(errors_json(part.errors));
      row["algorithm"] = part.algorithm;
      row["bound"] = part.bound;
      parts.push_back(std::move(row));
    }
    Json row = {{"hardware", h.hardware},
                {"from_nodes", h.from_nodes},
                {"platform", h.platform},
                {"rows", h.rows}};
    row.update(errors_json(h.judged));
    row["assumptions"] = h.assumptions;
    row["known"] = h.known;
    row["parts"] = parts;
    hardware.push_back(std::move(row));
  }
  for (const auto& p : report.predictions) {
    rows.push_back({{"where", p.row.where},
                    {"collective", p.row.collective},
                    {"hardware", p.row.hardware},
                    {"platform", p.platform},
                    {"nodes", p.row.nodes},
                    {"gpus", p.row.gpus},
                    {"bytes", p.row.bytes},
                    {"measured_us", p.row.time_us},
                    {"predicted_us", p.predicted_us},
                    {"error", p.error},
                    {"algorithm", p.algorithm},
                    {"channels", p.channels},
                    {"bound", p.bound}});
  }
  return validate_document({{"rows", report.predictions.size() + report.unpredicted},
                            {"predicted", report.predictions.size()}},
                           std::move(checks),
                           {{"hardware", hardware},
                            {"predictions", rows},
                            {"findings", findings_json(report.findings)}});
}

std::string percent(double share) { return fmt::format("{:.1f} %", share * 100); }
std::string signed_percent(double share) { return fmt::format("{:+.1f} %", share * 100); }

std::string text(const NcclTestReport& report, const Terminal& terminal, bool all) {
  std::string out = terminal.styled(
      Style::kBold,
      report.judged.rows == 0
          ? kNothingJudged
          : fmt::format(
                "median error {} (9 of 10 within {}) over {} calls of 1 MiB and more; target {}",
                percent(report.judged.median), percent(report.judged.p90),
                format_count(report.judged.rows), percent(NcclTestReport::kTarget)));
  out += fmt::format(
      "\n{} rows predicted, {} not; no fit was run, but some priors were chosen with published "
      "tables "
      "in view (docs/collectives.md)\n\n",
      format_count(report.predictions.size()), format_count(report.unpredicted));
  Table table({{"hardware"},
               {"platform"},
               {"rows", Align::kRight},
               {"judged", Align::kRight},
               {"median", Align::kRight},
               {"9 of 10", Align::kRight},
               {"bias", Align::kRight}});
  for (const auto& h : report.hardware) {
    table.add({title(h), h.platform, format_count(h.rows), format_count(h.judged.rows),
               percent(h.judged.median), percent(h.judged.p90), signed_percent(h.judged.bias)});
  }
  out += table.text(terminal);
  for (const auto& h : report.hardware) {
    out += "\n" + terminal.styled(Style::kBold, title(h)) + " as " + h.platform + "\n";
    for (const std::string& assumed : h.assumptions) out += "  assumed: " + assumed + "\n";
    if (!h.known.empty()) out += "  known: " + h.known + "\n";
    Table parts({{"where it is off"},
                 {"rows", Align::kRight},
                 {"median", Align::kRight},
                 {"bias", Align::kRight},
                 {"by our model"},
                 {"bound by"}});
    for (size_t i = 0; i < h.parts.size() && (all || i < kWorstParts); ++i) {
      const auto& part = h.parts[i];
      parts.add({part.what, format_count(part.errors.rows), percent(part.errors.median),
                 signed_percent(part.errors.bias), part.algorithm, part.bound});
    }
    out += parts.text(terminal);
    if (!all && h.parts.size() > kWorstParts) {
      out += fmt::format("and {} parts that are less off; -v shows all\n",
                         h.parts.size() - kWorstParts);
    }
  }
  return out;
}

}  // namespace

Result<int> validate_nccl_tests(Context& context, const std::vector<std::string>& files) {
  if (files.empty()) {
    return fail(Code::kUsage, "TABLE is missing: files that nccl-tests printed",
                "validate nccl-tests", "rehearse validate --help");
  }
  validation::NcclTestOptions options;
  if (context.has("platform")) {
    options.platform_id = context.get<std::string>("platform");
    RH_TRY(options.platform, read_platform(options.platform_id));
  }
  if (context.has("nccl-version")) options.nccl_version = context.get<std::string>("nccl-version");
  if (context.has("nodes")) {
    RH_TRY(const int64_t nodes, context.number("nodes", 1, 65536));
    options.nodes = static_cast<uint32_t>(nodes);
  }
  if (context.has("gpus")) {
    RH_TRY(const int64_t gpus, context.number("gpus", 1, 65536));
    options.gpus = static_cast<uint32_t>(gpus);
  }
  if (context.has("env")) {
    for (const std::string& setting : context.get<std::vector<std::string>>("env")) {
      RH_TRY(const sim::RankSetting parsed, sim::parse_setting(setting));
      options.env[parsed.name] = parsed.value;
    }
  }
  const std::string collective =
      context.has("collective") ? context.get<std::string>("collective") : "";
  std::vector<validation::NcclTestRow> rows;
  Findings findings;
  for (const std::string& file : files) {
    RH_TRY(auto table, validation::read_nccl_tests(file, collective));
    rows.insert(rows.end(), std::make_move_iterator(table.rows.begin()),
                std::make_move_iterator(table.rows.end()));
    findings.merge(table.findings);
  }
  RH_TRY(NcclTestReport report, validation::check_nccl_tests(rows, options));
  findings.merge(report.findings);
  report.findings = findings;
  if (context.has("save")) {
    auto saved = write_file(context.get<std::string>("save"), validation::accuracy_document(report),
                            context.overwrite());
    if (!saved) return tl::unexpected(saved.error());
  }
  if (!context.json()) context.show(report.findings);
  auto done =
      context.json()
          ? context.print(document(report))
          : context.print(std::string_view(text(report, context.terminal(), context.verbose())));
  const bool met = report.judged.median <= NcclTestReport::kTarget;
  return exit_code(std::move(done), met ? 0 : static_cast<int>(Code::kFinding));
}

}  // namespace rehearse::cli
