// SPDX-License-Identifier: Apache-2.0
// What is kept of a point: its verdict and a few figures, the columns of the results. A row has no trace of
// when or where it was computed: the same point gives the same bytes on any machine.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "sim/proto/outcome.pb.h"
#include "sim/proto/study.pb.h"

namespace rehearse::cli {

struct Row {
  bool failed = false;  // no outcome; `reason` says why
  std::string reason;
  std::string verdict, symptom;
  std::vector<double> figures;  // as many as metric_names()
  // Range of step_time_ns over draws of uncertain parameters, when they were asked for.
  struct Range {
    int64_t low = 0, high = 0;
  };
  std::optional<Range> range = std::nullopt;
  std::string no_range = {};  // why there is none, though it was asked for
};

// step_time_ns, ..., gpu_time_ns: names of the figures, with their units.
[[nodiscard]] const std::vector<std::string>& metric_names();

[[nodiscard]] Row row_of(const pb::Outcome& outcome);
[[nodiscard]] Row failed_row(const Error& error);

[[nodiscard]] nlohmann::ordered_json row_json(const Row& row);
// kBadInput when it is not what row_json makes.
[[nodiscard]] Result<Row> parse_row(std::string_view text, const std::string& where);

// A figure of a row by name; nullopt for a failed row.
[[nodiscard]] std::optional<double> figure(const Row& row, const std::string& metric);

// Bounds and objective of a study, read once.
class Goal {
 public:
  // kBadInput for a metric that does not exist or a bound of the wrong kind.
  [[nodiscard]] static Result<Goal> of(const pb::Study& study, const std::string& where);

  [[nodiscard]] const std::string& metric() const { return metric_; }
  [[nodiscard]] bool maximise() const { return maximise_; }
  // Completed and within all bounds.
  [[nodiscard]] bool feasible(const Row& row) const;
  // The objective as a cost, less is better; only of feasible rows.
  [[nodiscard]] std::optional<double> cost(const Row& row) const;

 private:
  struct Bound {
    std::string metric, text;
    std::optional<double> at_most, at_least;
  };
  std::vector<Bound> bounds_;
  std::string metric_ = "step_time_ns";
  bool maximise_ = false;
};

}  // namespace rehearse::cli
