// SPDX-License-Identifier: Apache-2.0
// A study file as points: what each of them changes, in an order that depends on the file alone. Pure but
// for reading the file.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "sim/proto/study.pb.h"
#include "sim/scenario/scenario.hpp"

namespace rehearse::cli {

inline constexpr size_t kMostPoints = 1'000'000;

// A change as the command line writes it: {"set", "path=value"}, {"fault", "F16:node=1"}, {"patch", YAML}.
using Edit = std::pair<std::string, std::string>;

struct AxisValue {
  std::vector<std::string> labels;  // one per column of the axis
  sim::Assignments written;         // before the scenario is expanded
  std::vector<Edit> edits;          // after
};

struct StudyAxis {
  std::vector<std::string> columns;  // its name; several for axes that move together
  std::vector<AxisValue> values;
  bool ordered = false;  // the values are numbers that rise or fall
  std::string only_if;
};

struct Plan {
  pb::Study study;
  std::vector<StudyAxis> axes;
  // For every point the index of its value on each axis.
  std::vector<std::vector<uint32_t>> points;

  [[nodiscard]] std::vector<std::string> columns() const;
  [[nodiscard]] std::vector<std::string> labels(size_t point) const;
  [[nodiscard]] sim::Assignments written(size_t point) const;
  [[nodiscard]] std::vector<Edit> edits(size_t point) const;
};

// `what` is a study file or the name of a shipped study. kBadInput with the place of what is wrong.
[[nodiscard]] Result<Plan> read_plan(const std::string& what);
// The same of a study already read; `where` names it in errors.
[[nodiscard]] Result<Plan> plan_of(const pb::Study& study, const std::string& where);

// "nodes > 1 and algorithm == Ring" over named texts. kBadInput for an unknown name (with the nearest
// one), a missing operator, or < and > between texts that are no numbers.
[[nodiscard]] Result<bool> holds(const std::string& condition,
                                 const std::vector<std::string>& names,
                                 const std::vector<std::string>& values, const std::string& where);

struct ShippedStudy {
  std::string name;
  std::string description;
};
// Those of sim/studies, by name.
[[nodiscard]] Result<std::vector<ShippedStudy>> shipped_studies();

}  // namespace rehearse::cli
