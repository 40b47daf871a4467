// SPDX-License-Identifier: Apache-2.0
// Fits the parameters of calibrate/parameters.hpp to measured times of collectives.
//
//   minimise  sum of loss(ln(predicted / measured) / scatter) + sum of (ln(value / prior) / spread)^2
//
// by Gauss-Newton with reweighting, twice: with Huber's loss from the prior, whose scatter is the median absolute residual,
// scaled; then, from there and with that scatter, with Tukey's biweight, which lets go of rows more than kBiweight scatters
// (of the model's own error at least) off (an MM-estimate, Yohai 1987: up to half of the rows may be wild). The prior keeps what the data does not speak of
// where it was. A parameter whose deviation the data does not bring below kDetermined of the prior's is put back to
// the prior and named undetermined, unless the others cannot explain the data without it: one message size cannot separate
// latency from bandwidth. Deterministic.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "validation/calibrate/parameters.hpp"

namespace rehearse::validation {

// One measured time. Repeats are one observation: their median.
struct Observation {
  std::string what;
  std::string group;  // (hardware, nodes, GPUs, collective); rows of one are not independent
  double measured_us = 0;
  Bytes bytes = 0;
  sim::TimeTerms terms;
};

enum class Standing : uint8_t {
  kFitted,
  kConditional,  // explains the data as long as those undetermined are at their priors; not told apart from them
  kAtBound,
  kUndetermined,
  kUnused
};

struct FittedParameter {
  size_t parameter = 0;
  Standing standing = Standing::kUnused;
  double value = 0;
  double low = 0, high = 0;  // 90 % of the draws
};

struct Fit {
  Point point;
  std::vector<FittedParameter> parameters;  // all, in the table's order
  // Lower triangle of the covariance's root, row by row, over all parameters: a draw is the point
  // plus this times independent normal numbers. Undetermined ones vary as far as prior and data allow, and what was
  // fitted with them.
  std::vector<std::vector<double>> root;
  double scatter = 0;  // of ln(predicted / measured)
  size_t observations = 0;
  size_t let_go = 0;  // of those, as far from the others as counts for nothing
};

constexpr double kDetermined = 0.7;
constexpr double kBiweight = 4.685;     // scatters; Gaussian rows lose 5 % of what they tell
constexpr double kLeastScatter = 0.02;  // nccl-tests repeats itself to about this

[[nodiscard]] Fit fit(const std::vector<Observation>& observations);

// Predicted time of a call at a point, µs.
[[nodiscard]] double predicted_us(const Observation& observation, const Point& point);

// A joint draw from what the data supports, `key` by `key`.
[[nodiscard]] Point draw(const Fit& fit, uint64_t seed, uint64_t key);

}  // namespace rehearse::validation
