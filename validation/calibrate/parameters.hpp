// SPDX-License-Identifier: Apache-2.0
// What calibration may change: one row per figure of Platform.efficiency that times a collective,
// with its prior, how sure the prior is, and the bounds that physics sets. A point is a value for
// every row, as the logarithm of its ratio to the prior.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "platforms/proto/platform.pb.h"
#include "sim/nccl/time_terms.hpp"

namespace rehearse::validation {

struct Parameter {
  const char* path;  // below platform.efficiency: "nvlink_hop.simple"
  const char* what;  // in words
  double
      prior;  // µs for times; of what the model leaves out (issue, channel_start), where a fit starts
  double low;
  double high;
  double spread;  // deviation of the prior's logarithm
  bool is_time;   // µs here, nanoseconds in the document
  void (*state)(pb::Efficiency& efficiency, double value);
};

[[nodiscard]] std::span<const Parameter> parameters();

using Point = std::vector<double>;  // by parameter; all 0 is the prior

// Value of one parameter at a point, within its bounds.
[[nodiscard]] double value_at(const Point& point, size_t parameter);

// A point as the model takes it. Parameters at exactly 0 are left to the prior.
[[nodiscard]] pb::Efficiency efficiency_at(const Point& point);

struct ModelPoint {
  sim::TimeParameters time;
  sim::LinkShares shares{};
};
[[nodiscard]] ModelPoint model_at(const Point& point);

// Value of a parameter as a document writes it: "0.83", "12.5us".
[[nodiscard]] std::string written(size_t parameter, double value);

}  // namespace rehearse::validation
