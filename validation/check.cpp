// SPDX-License-Identifier: Apache-2.0
#include "validation/check.hpp"

namespace rehearse::validation {
namespace {

void fill_errors(Check& check) {
  std::vector<double> errors;
  std::vector<GroupedError> grouped;
  for (size_t i = 0; i < check.rows.size(); ++i) {
    const CheckRow& row = check.rows[i];
    errors.push_back(row.error());
    grouped.push_back({row.group.empty() ? std::to_string(i) : row.group, row.error()});
  }
  if (check.n == 0) check.n = check.rows.size();
  if (errors.empty()) return;
  const ErrorSummary summary = summarise(std::move(errors));
  check.median_error = summary.median;
  check.p90_error = summary.p90;
  check.interval = median_interval(grouped);
}

void nothing_to_judge(Check& check) {
  check.skipped = true;
  check.met = false;
  if (check.why.empty()) check.why = "no row could be compared";
}

}  // namespace

void judge_median(Check& check) {
  fill_errors(check);
  if (check.n == 0) return nothing_to_judge(check);
  check.value = check.median_error;
  check.met =
      check.value <= check.target && (check.p90_target == 0 || check.p90_error <= check.p90_target);
}

void judge_value(Check& check) {
  fill_errors(check);
  if (check.n == 0) return nothing_to_judge(check);
  check.met = check.at_least ? check.value >= check.target : check.value <= check.target;
}

Check skipped_check(const std::string& id, const std::string& what, const std::string& why) {
  Check check;
  check.id = id;
  check.what = what;
  check.skipped = true;
  check.why = why;
  return check;
}

}  // namespace rehearse::validation
