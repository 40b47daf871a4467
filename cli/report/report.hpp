// SPDX-License-Identifier: Apache-2.0
// A report: what happened, why, what to do, and pictures, as one HTML file that needs nothing else. Text is written
// here, escaped; pictures are drawn by the page (page.js and others) from packed data. Whatever comes from traces is
// hostile: it never becomes markup or script. Pure functions; the same input gives the same bytes.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/report/study.hpp"
#include "faults/proto/diagnosis.pb.h"
#include "sim/proto/outcome.pb.h"
#include "sim/proto/pictures.pb.h"

namespace rehearse::cli {

// One run and what is known about it.
struct ReportRun {
  std::string name;  // unique within the report
  std::string file;  // the outcome was read from; may be empty
  pb::Outcome outcome;
  pb::Pictures pictures;  // empty: the outcome has none
  std::optional<pb::Diagnosis> diagnosis;
  std::optional<pb::FixReport> fixes;
  std::optional<pb::Band> baseline_band;  // of the step time as it should be
  std::string unexplained;                // why causes were not looked for; may be empty
};

// A check of accuracy (`rehearse.validate/1`) as the report shows it.
struct ReportCheck {
  std::string what, target, verdict;
  std::string figure;     // what is judged, with its unit: "4.9 %", "Kendall's tau 0.92"
  std::string p90_error;  // of median errors
  uint64_t n = 0;
};

struct Report {
  // At least one run or study.
  std::vector<ReportRun> runs;
  std::vector<ReportStudy> studies;
  std::vector<ReportCheck> checks;
};

// The timelines of several runs share the room of one.
[[nodiscard]] std::string report_html(Report report);

// Parts of the page.
// What happened, why, what to do: text of one run.
[[nodiscard]] std::string answers_html(const ReportRun& run);
// Tables below the pictures: findings, communicators, how to make this again.
[[nodiscard]] std::string details_html(const Report& report, const ReportRun& run);
// All runs in one table.
[[nodiscard]] std::string comparison_html(const Report& report);
// What the page draws of a run.
[[nodiscard]] nlohmann::ordered_json page_data(const ReportRun& run);

}  // namespace rehearse::cli
