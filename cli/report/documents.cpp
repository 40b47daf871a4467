// SPDX-License-Identifier: Apache-2.0
#include "cli/report/documents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/document.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "sim/outcome/pictures.hpp"

namespace rehearse::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kMakeOne = "make one with `rehearse run SCENARIO --json`";

Result<Json> read_json(const std::string& path) {
  RH_TRY(const std::string text, read_file(path, kMaxDocumentBytes));
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return bad_input("not a JSON document", path, kMakeOne);
  return json;
}

std::string schema_of(const Json& json) {
  if (!json.is_object() || !json.contains("schema") || !json["schema"].is_string()) return "";
  return json["schema"].get<std::string>();
}

template <typename Message>
Result<Message> message_of(const Json& json, const std::string& path) {
  Message message;
  if (auto read = from_json(json, message, path); !read) return tl::unexpected(read.error());
  return message;
}

double number(const Json& row, const char* key) {
  const auto at = row.find(key);
  return at != row.end() && at->is_number() ? at->get<double>() : 0;
}

std::string words(const Json& row, const char* key) {
  const auto at = row.find(key);
  return at != row.end() && at->is_string() ? at->get<std::string>() : "";
}

bool is_true(const Json& row, const char* key) {
  const auto at = row.find(key);
  return at != row.end() && at->is_boolean() && at->get<bool>();
}

constexpr const char* kMedian = "median error";
enum class Metric { kShare, kSeconds, kPlain };

std::string shown_as(Metric metric, double value) {
  value = std::clamp(value, -1e9, 1e9);
  switch (metric) {
    case Metric::kShare:
      return fmt::format("{:.1f} %", 100 * value);
    case Metric::kSeconds:
      return format_duration(static_cast<Nanos>(value * 1e9));
    case Metric::kPlain:
      return fmt::format("{:.3g}", value);
  }
  return {};
}

void add_checks(const Json& json, Report& report) {
  const auto rows = json.find("checks");
  if (rows == json.end() || !rows->is_array()) return;
  for (const Json& row : *rows) {
    if (!row.is_object()) continue;
    ReportCheck check;
    check.what = words(row, "what").empty() ? words(row, "id") : words(row, "what");
    check.n = static_cast<uint64_t>(std::clamp(number(row, "n"), 0.0, 1e15));
    const std::string metric = words(row, "metric").empty() ? kMedian : words(row, "metric");
    const Metric shown = check.what.ends_with(", in seconds") ? Metric::kSeconds
                         : metric.ends_with("error") || metric.starts_with("share")
                             ? Metric::kShare
                             : Metric::kPlain;
    // What is judged is the median error unless the check says otherwise.
    check.figure = metric == kMedian ? shown_as(shown, number(row, "median_error"))
                                     : metric + " " + shown_as(shown, number(row, "value"));
    if (metric == kMedian) check.p90_error = shown_as(shown, number(row, "p90_error"));
    const double target = number(row, "target");
    check.target =
        target > 0 ? (is_true(row, "at_least") ? "at least " : "at most ") + shown_as(shown, target)
                   : "–";
    const bool judged = !row.contains("met") || !row["met"].is_null();
    check.verdict = is_true(row, "skipped") ? "skipped"
                    : !judged               ? ""
                    : is_true(row, "met")   ? "met"
                                            : "not met";
    report.checks.push_back(std::move(check));
  }
}

std::string unique_name(const Report& report, const std::string& wanted) {
  std::string name = wanted;
  for (int n = 2; std::ranges::find(report.runs, name, &ReportRun::name) != report.runs.end();
       ++n) {
    name = fmt::format("{} ({})", wanted, n);
  }
  return name;
}

}  // namespace

Result<pb::Outcome> read_outcome(const std::string& path) {
  RH_TRY(const Json json, read_json(path));
  RH_TRY(pb::Outcome outcome, message_of<pb::Outcome>(json, path));
  if (outcome.schema() != "rehearse.outcome/1") {
    return bad_input("not an outcome of rehearse", path, kMakeOne);
  }
  return outcome;
}

Result<Report> read_report(const std::vector<std::string>& paths) {
  Report report;
  for (const std::string& path : paths) {
    RH_TRY(const Json json, read_json(path));
    const std::string schema = schema_of(json);
    if (schema == "rehearse.outcome/1") {
      ReportRun run;
      RH_TRY(run.outcome, message_of<pb::Outcome>(json, path));
      if (!run.outcome.pictures().empty()) {
        RH_TRY(run.pictures, sim::unpacked_pictures(run.outcome.pictures(), path));
      }
      run.file = path;
      run.name = unique_name(report, std::filesystem::path(path).stem().string());
      report.runs.push_back(std::move(run));
    } else if (schema == "rehearse.sweep/1") {
      report.studies.push_back(study_of(json));
    } else if (schema == "rehearse.validate/1") {
      add_checks(json, report);
    } else if (schema == "rehearse.diagnosis/1" || schema == "rehearse.fixes/1") {
      if (report.runs.empty()) {
        return fail(Code::kUsage, "what it belongs to comes first", path,
                    "give the outcome before its diagnosis and fixes");
      }
      ReportRun& run = report.runs.back();
      if (schema == "rehearse.fixes/1") {
        RH_TRY(run.fixes, message_of<pb::FixReport>(json, path));
      } else {
        RH_TRY(run.diagnosis, message_of<pb::Diagnosis>(json, path));
      }
    } else {
      return bad_input(schema.empty()
                           ? "not a document of rehearse"
                           : fmt::format("a report has no place for {}", in_quotes(schema)),
                       path, kMakeOne);
    }
  }
  if (report.runs.empty() && report.studies.empty()) {
    return fail(Code::kUsage, "no outcome was given", "report", kMakeOne);
  }
  return report;
}

}  // namespace rehearse::cli
