// SPDX-License-Identifier: Apache-2.0
// A study on the page of a report: its best points, what matters how much, the front of step time against GPUs. Read
// back from what `rehearse sweep --json` prints, which may come from anywhere: what is missing or of another kind is left
// out, and text is only ever text.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace rehearse::cli {

struct ReportStudy {
  struct Point {
    std::string label;  // "nics=4, speed=400Gbps"
    double value = 0;   // of the objective
    double gpus = 0, step_time = 0;
    double low = 0, high = 0;  // of the step time in nine of ten draws; both 0: not drawn
    std::string symptom;
  };
  struct Effect {
    std::string axes;
    double share = 0;
    std::vector<std::pair<std::string, double>>
        means;  // by value of the axis; none of a pair of axes
  };
  std::string name, objective;
  bool maximise = false;
  uint64_t points = 0, computed = 0, feasible = 0;
  std::vector<Point> best, front;
  std::vector<Effect> effects;
  bool overlap = false;                                  // of their shares
  std::vector<std::pair<uint64_t, std::string>> failed;  // how often, why
};

// Of a document of schema rehearse.sweep/1.
[[nodiscard]] ReportStudy study_of(const nlohmann::ordered_json& document);
// Text of the study and the places where its pictures are drawn; `index` is its place in the data.
[[nodiscard]] std::string study_html(const ReportStudy& study, size_t index);
// What study.js draws.
[[nodiscard]] nlohmann::ordered_json study_data(const ReportStudy& study);

}  // namespace rehearse::cli
