// SPDX-License-Identifier: Apache-2.0
#include "cli/validate_document.hpp"

#include <fmt/format.h>

namespace rehearse::cli {
namespace {

using Json = nlohmann::ordered_json;
using validation::Check;
using validation::CheckRow;

// Six digits: more would be noise of the processor.
double rounded(double value) { return value == 0 ? 0 : std::stod(fmt::format("{:.6g}", value)); }

Json row_json(const CheckRow& row) {
  Json out = {{"what", row.what},
              {"predicted", rounded(row.predicted)},
              {"measured", rounded(row.measured)},
              {"unit", row.unit},
              {"error", rounded(row.error())},
              {"source", row.source},
              {"command", row.command}};
  if (row.high > 0) {
    out["low"] = rounded(row.low);
    out["high"] = rounded(row.high);
  }
  return out;
}

}  // namespace

Json check_json(const Check& check, CheckRows listed) {
  Json out = {{"id", check.id}, {"what", check.what}, {"n", check.n}};
  const bool compared = !check.rows.empty(), judged = check.judged && !check.skipped;
  out["median_error"] = compared ? Json(rounded(check.median_error)) : Json(nullptr);
  out["p90_error"] = compared ? Json(rounded(check.p90_error)) : Json(nullptr);
  out["median_interval"] =
      compared && check.interval
          ? Json::array({rounded(check.interval->low), rounded(check.interval->high)})
          : Json(nullptr);
  out["metric"] = check.metric;
  out["value"] = check.skipped ? Json(nullptr) : Json(rounded(check.value));
  out["target"] = judged ? Json(check.target) : Json(nullptr);
  out["at_least"] = check.at_least;
  if (check.p90_target > 0) out["p90_target"] = check.p90_target;
  out["met"] = judged ? Json(check.met) : Json(nullptr);
  out["skipped"] = check.skipped;
  out["why"] = check.why;
  out["assumptions"] = check.assumptions;
  if (listed == CheckRows::kListed) {
    Json rows = Json::array();
    for (const CheckRow& row : check.rows) rows.push_back(row_json(row));
    out["rows"] = std::move(rows);
  }
  return out;
}

Json check_json(const Check& check, const std::vector<double>& errors) {
  Json out = check_json(check, CheckRows::kLeftOut);
  if (errors.empty()) return out;
  out["median_error"] = rounded(validation::quantile(errors, .5));
  out["p90_error"] = rounded(validation::quantile(errors, .9));
  out["max_error"] = rounded(errors.back());
  return out;
}

Json validate_document(const Json& about, Json checks, const Json& details) {
  Json out = {{"schema", "rehearse.validate/1"}};
  out.update(about);
  out["checks"] = std::move(checks);
  out.update(details);
  return out;
}

}  // namespace rehearse::cli
