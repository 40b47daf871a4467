// SPDX-License-Identifier: Apache-2.0
// One claim of accuracy: rows of predicted and measured figures, how they are judged, and what came
// out. Every row says where its measurement was read and which command prints its prediction.
#pragma once

#include <string>
#include <vector>

#include "validation/statistics.hpp"

namespace rehearse::validation {

struct CheckRow {
  std::string what;   // "all_reduce of 16 MiB on 8 GPUs of one node"
  std::string group;  // rows that are not independent of each other share it; empty: alone
  double predicted = 0;
  double measured = 0;
  std::string unit;     // "us", "s", "" for a ratio
  std::string source;   // file or address
  std::string command;  // what prints the prediction; "" when only the check itself does
  // 90 % band of the prediction, where there is one.
  double low = 0;
  double high = 0;
  // A ratio of two configurations: the kind of change between them (certainty/change.hpp); empty: no ratio.
  std::string change = {};

  // (predicted - measured) / measured; 0 when nothing was measured.
  [[nodiscard]] double error() const { return measured != 0 ? predicted / measured - 1 : 0; }
};

struct Check {
  std::string id;    // "nccl-tests-calibrated"
  std::string what;  // in words
  std::vector<CheckRow> rows;
  size_t n = 0;  // rows that count; may be more than are listed
  double median_error = 0;
  double p90_error = 0;
  std::optional<Interval> interval;  // 95 %, of the median error; none of few configurations

  // What is judged: the median error unless `metric` says otherwise ("share of rows", "Kendall's tau").
  std::string metric = "median error";
  double value = 0;
  double target = 0;
  bool at_least = false;  // value >= target is good, else value <= target
  double p90_target = 0;  // 0: none

  bool judged = true;  // false: a figure beside others, without a target
  bool met = false;
  bool skipped = false;
  std::string why;  // what is missing, or why the target is not reached
  std::vector<std::string> assumptions;
};

// Errors of the rows and their verdict against `target` (and `p90_target`) as the median error.
void judge_median(Check& check);
// The same figures, judged by `value` (already set) as `metric` says.
void judge_value(Check& check);

// A check that could not be made.
[[nodiscard]] Check skipped_check(const std::string& id, const std::string& what,
                                  const std::string& why);

}  // namespace rehearse::validation
