// SPDX-License-Identifier: Apache-2.0
#include "validation/calibrate/fit.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.hpp"
#include "validation/calibrate/cholesky.hpp"
#include "validation/statistics.hpp"

namespace rehearse::validation {
namespace {

constexpr double kLinearFrom = 1.345;
constexpr double kMostScatter =
    0.25;                         // what is off by more is bias that parameters have to explain
constexpr double kStated = 1e-9;  // as good as the prior, but not left to it
constexpr double kStep = 0.02;    // of a numeric derivative, in ln
constexpr double kLongestStep = 0.5;
constexpr int kIterations = 40;
constexpr double kModelScatter = 0.05;  // the model's own: who is off by little more is not wild
constexpr double kNeeded = 6.6;         // chi-square of one parameter, 99 %
constexpr double kAlike =
    1.05;  // of two equally unsure ones the first is put back, whatever the noise
constexpr double kOneSided = .25;  // of the slope upwards
constexpr double kEnough = 1e-4;   // relative fall of the objective at which it stops

// How much a residual counts: Huber's loss finds the way from anywhere, Tukey's then lets go of what lies far beyond the
// others, which Huber's would follow by a little each.
enum class Loss : uint8_t { kHuber, kTukey };

// Residuals beyond which a row counts for nothing.
double reach(double scatter) { return kBiweight * std::max(scatter, kModelScatter); }

double loss_of(Loss loss, double residual, double scatter) {
  const double z = std::abs(residual) / scatter;
  if (loss == Loss::kHuber)
    return z <= kLinearFrom ? z * z : 2 * kLinearFrom * z - kLinearFrom * kLinearFrom;
  const double most = reach(scatter) / scatter;
  const double rest = std::max(0.0, 1 - z * z / (most * most));
  return most * most / 3 * (1 - rest * rest * rest);
}

// Of the least squares that have the same slope there.
double weight_of(Loss loss, double residual, double scatter) {
  const double z = std::abs(residual) / scatter;
  if (loss == Loss::kHuber) return z <= kLinearFrom ? 1 : kLinearFrom / z;
  const double most = reach(scatter) / scatter;
  const double rest = std::max(0.0, 1 - z * z / (most * most));
  return rest * rest;
}

class Fitting {
 public:
  Fitting(const std::vector<Observation>& observations, std::vector<size_t> free)
      : observations_(observations), free_(std::move(free)) {}

  // From `start` down to the best point found.
  Point descend(const Point& start) {
    loss_ = Loss::kHuber;
    const Point rough = descend_by(start);
    loss_ = Loss::kTukey;
    return descend_by(rough);
  }

  // Of a point, comparable between points.
  [[nodiscard]] double cost(const Point& at, double scatter) {
    loss_ = Loss::kTukey;
    return objective(at, residuals(at), scatter);
  }

  // Of the free parameters at a point.
  Matrix covariance(const Point& at) {
    loss_ = Loss::kTukey;
    residuals_ = residuals(at);
    return inverse(normal_matrix(at, scatter_of(residuals_), two_sided_slopes(at)));
  }

  [[nodiscard]] double scatter(const Point& at) const { return scatter_of(residuals(at)); }

 private:
  Point descend_by(const Point& start) {
    Point at = start;
    residuals_ = residuals(at);
    double scatter = scatter_of(residuals_);
    double best = objective(at, residuals_, scatter);
    double damping = 1e-3;
    for (int i = 0; i < kIterations; ++i) {
      const Matrix a = normal_matrix(at, scatter, slopes(at));
      Matrix damped = a;
      for (size_t j = 0; j < free_.size(); ++j) damped[j][j] *= 1 + damping;
      const Vector step = solve(cholesky(damped), downhill_);
      Point next = at;
      for (size_t j = 0; j < free_.size(); ++j) {
        move(next, free_[j], std::clamp(step[j], -kLongestStep, kLongestStep));
      }
      const Vector r = residuals(next);
      const double value = objective(next, r, scatter);
      if (value < best) {
        const double fall = best - value;
        at = next;
        residuals_ = r;
        // With the scatter of a few rows the others would be let go of, one after the other.
        if (loss_ == Loss::kHuber) scatter = scatter_of(r);
        best = objective(at, r, scatter);
        damping = std::max(1e-6, damping / 4);
        if (fall < kEnough * value) break;
      } else {
        damping *= 8;
        if (damping > 1e6) break;
      }
    }
    return at;
  }

  // A step that ends at a bound ends there.
  static void move(Point& point, size_t parameter, double by) {
    const Parameter& p = parameters()[parameter];
    point[parameter] =
        std::clamp(point[parameter] + by, std::log(p.low / p.prior), std::log(p.high / p.prior));
  }

  [[nodiscard]] Vector residuals(const Point& at) const {
    const ModelPoint model = model_at(at);
    Vector out;
    out.reserve(observations_.size());
    for (const Observation& o : observations_) {
      out.push_back(std::log(time_us(o.terms, model.time, model.shares) / o.measured_us));
    }
    return out;
  }

  static double scatter_of(Vector r) {
    for (double& one : r) one = std::abs(one);
    return std::clamp(1.4826 * quantile_of(std::move(r), .5), kLeastScatter, kMostScatter);
  }

  [[nodiscard]] double objective(const Point& at, const Vector& r, double scatter) const {
    double sum = 0;
    for (const double one : r) sum += loss_of(loss_, one, scatter);
    for (const size_t j : free_) {
      const double z = at[j] / parameters()[j].spread;
      sum += z * z;
    }
    return sum;
  }

  static double length_of(const Vector& v) {
    return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
  }

  // Of the residuals by one parameter; empty at a bound.
  [[nodiscard]] Vector slope(const Point& at, size_t parameter, double step) const {
    Point aside = at;
    move(aside, parameter, step);
    const double by = aside[parameter] - at[parameter];
    if (by == 0) return {};
    Vector out = residuals(aside);
    for (size_t i = 0; i < out.size(); ++i) out[i] = (out[i] - residuals_[i]) / by;
    return out;
  }

  [[nodiscard]] Matrix slopes(const Point& at) const {
    Matrix out;
    for (const size_t j : free_) {
      out.push_back(slope(at, j, kStep));
      if (out.back().empty()) out.back() = slope(at, j, -kStep);
    }
    return out;
  }

  // A floor that just reaches a few times is felt upwards only: they do not tell where it is.
  [[nodiscard]] Matrix two_sided_slopes(const Point& at) const {
    Matrix out = slopes(at);
    for (size_t j = 0; j < free_.size(); ++j) {
      const Vector down = slope(at, free_[j], -kStep);
      if (down.empty()) continue;
      if (length_of(down) < kOneSided * length_of(out[j])) {
        out[j].assign(out[j].size(), 0);
        continue;
      }
      for (size_t i = 0; i < down.size(); ++i) {
        if (std::abs(down[i]) < std::abs(out[j][i])) out[j][i] = down[i];
      }
    }
    return out;
  }

  // Half the second derivative of the objective, and downhill_ against half the first.
  Matrix normal_matrix(const Point& at, double scatter, const Matrix& slopes) {
    const size_t n = free_.size();
    Matrix a(n, Vector(n, 0));
    downhill_.assign(n, 0);
    for (size_t i = 0; i < observations_.size(); ++i) {
      const double weight = weight_of(loss_, residuals_[i], scatter) / (scatter * scatter);
      for (size_t j = 0; j < n; ++j) {
        downhill_[j] -= weight * residuals_[i] * slopes[j][i];
        for (size_t k = 0; k <= j; ++k) a[j][k] += weight * slopes[j][i] * slopes[k][i];
      }
    }
    for (size_t j = 0; j < n; ++j) {
      const double spread = parameters()[free_[j]].spread;
      a[j][j] += 1 / (spread * spread);
      downhill_[j] -= at[free_[j]] / (spread * spread);
      for (size_t k = 0; k < j; ++k) a[k][j] = a[j][k];
    }
    return a;
  }

  const std::vector<Observation>& observations_;
  const std::vector<size_t> free_;
  Loss loss_ = Loss::kHuber;
  Vector residuals_, downhill_;
};

size_t index_of_path(std::string_view path) {
  for (size_t i = 0; i < parameters().size(); ++i) {
    if (path == parameters()[i].path) return i;
  }
  return 0;
}

bool is_one_size(const std::vector<Observation>& observations) {
  return std::all_of(observations.begin(), observations.end(),
                     [&](const Observation& o) { return o.bytes == observations.front().bytes; });
}

// Does any observation feel the parameter, from its prior or from where a floor would bind?
bool is_felt(const std::vector<Observation>& observations, size_t parameter, const Point& around) {
  Point aside = around;
  aside[parameter] += parameters()[parameter].spread;
  const ModelPoint a = model_at(around), b = model_at(aside);
  return std::any_of(observations.begin(), observations.end(), [&](const Observation& o) {
    return time_us(o.terms, a.time, a.shares) != time_us(o.terms, b.time, b.shares);
  });
}

// Calls this small take no time to transfer; only among them does a floor show.
constexpr Bytes kFloorShows = Bytes{64} << 10;

// Per launch.
std::vector<double> small_times(const std::vector<Observation>& observations) {
  std::vector<double> out;
  for (const Observation& o : observations) {
    if (o.bytes >= kFloorShows || o.terms.from_graph) continue;
    out.push_back(o.measured_us / static_cast<double>(o.terms.launches));
  }
  return out;
}

// Host issue is a floor: without a start at one, nothing pulls it there.
Point with_floor(const std::vector<Observation>& observations) {
  Point start(parameters().size(), 0);
  const std::vector<double> times = small_times(observations);
  if (times.empty()) return start;
  const size_t issue = index_of_path("issue");
  const Parameter& p = parameters()[issue];
  start[issue] = std::log(std::clamp(quantile_of(times, .05), p.low, p.high) / p.prior);
  return start;
}

// What the data cannot tell from the rest is put back to its prior, the least determined first: the others may then be
// told apart. A parameter without which the others cannot explain the data stays however unsure its value is.
std::vector<size_t> keep_determined(const std::vector<Observation>& observations,
                                    const Point& floor, std::vector<size_t> free, Point& at) {
  if (free.empty()) return free;
  {
    Fitting fitting(observations, free);
    const Point from_prior = fitting.descend(at);
    Point from_floor = floor;
    for (const size_t j : free) from_floor[j] = from_floor[j] == 0 ? kStated : from_floor[j];
    from_floor = fitting.descend(from_floor);
    const double scatter = std::min(fitting.scatter(from_prior), fitting.scatter(from_floor));
    at = fitting.cost(from_floor, scatter) < fitting.cost(from_prior, scatter) ? from_floor
                                                                               : from_prior;
  }
  std::vector<bool> needed(parameters().size(), false);
  for (;;) {
    Fitting fitting(observations, free);
    const Matrix covariance = fitting.covariance(at);
    size_t worst = free.size();
    double ratio = kDetermined;
    for (size_t j = 0; j < free.size(); ++j) {
      const double own = std::sqrt(covariance[j][j]) / parameters()[free[j]].spread;
      if (needed[free[j]] || own <= ratio * (worst == free.size() ? 1 : kAlike)) continue;
      ratio = own;
      worst = j;
    }
    if (worst == free.size()) return free;
    std::vector<size_t> others = free;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(worst));
    Point without = at;
    without[free[worst]] = 0;
    Fitting rest(observations, others);
    without = rest.descend(without);
    const double scatter = fitting.scatter(at);
    if (rest.cost(without, scatter) > fitting.cost(at, scatter) + kNeeded) {
      needed[free[worst]] = true;
      continue;
    }
    at = without;
    free = others;
  }
}

}  // namespace

double predicted_us(const Observation& observation, const Point& point) {
  const ModelPoint model = model_at(point);
  return time_us(observation.terms, model.time, model.shares);
}

Fit fit(const std::vector<Observation>& observations) {
  const size_t all = parameters().size();
  Fit out;
  out.observations = observations.size();
  out.point.assign(all, 0);
  const Point floor = with_floor(observations);
  std::vector<size_t> free;
  const bool floor_shows = !small_times(observations).empty();
  for (size_t j = 0; j < all; ++j) {
    const bool of_floor = j == index_of_path("issue") || j == index_of_path("issue_pair");
    if (of_floor && !floor_shows) continue;
    if (is_felt(observations, j, out.point) || is_felt(observations, j, floor)) free.push_back(j);
  }
  const std::vector<size_t> felt = free;
  // At one size every figure moves the time alike: whichever was kept last would take the blame of all.
  if (is_one_size(observations)) free.clear();
  // Stated from the start: what the model leaves out would else begin with a jump.
  for (const size_t j : free) out.point[j] = kStated;
  const std::vector<size_t> kept = keep_determined(observations, floor, free, out.point);
  Matrix full(all, Vector(all, 0));
  for (size_t j = 0; j < all; ++j) full[j][j] = std::pow(parameters()[j].spread, 2);
  // What was put back to its prior is as unsure as that allows, and what was kept depends on it.
  const Matrix covariance = Fitting(observations, free).covariance(out.point);
  for (size_t j = 0; j < free.size(); ++j) {
    for (size_t k = 0; k < free.size(); ++k) full[free[j]][free[k]] = covariance[j][k];
  }
  out.root = cholesky(full);
  std::vector<double> residuals;
  residuals.reserve(observations.size());
  const ModelPoint model = model_at(out.point);
  for (const Observation& o : observations) {
    residuals.push_back(
        std::abs(std::log(time_us(o.terms, model.time, model.shares) / o.measured_us)));
  }
  out.scatter = std::max(kLeastScatter, 1.4826 * quantile_of(residuals, .5));
  out.let_go = static_cast<size_t>(std::count_if(
      residuals.begin(), residuals.end(),
      [far = reach(std::min(out.scatter, kMostScatter))](double r) { return r >= far; }));
  for (size_t j = 0; j < all; ++j) {
    const Parameter& p = parameters()[j];
    const double value = value_at(out.point, j);
    const double deviation = 1.645 * std::sqrt(full[j][j]);
    FittedParameter one{j, Standing::kUnused, value, std::max(p.low, value * std::exp(-deviation)),
                        std::min(p.high, value * std::exp(deviation))};
    const bool fitted = std::find(kept.begin(), kept.end(), j) != kept.end();
    if (std::find(felt.begin(), felt.end(), j) != felt.end()) {
      one.standing = !fitted                                          ? Standing::kUndetermined
                     : value <= p.low || value >= p.high              ? Standing::kAtBound
                     : std::sqrt(full[j][j]) > kDetermined * p.spread ? Standing::kConditional
                                                                      : Standing::kFitted;
    }
    out.parameters.push_back(one);
  }
  return out;
}

Point draw(const Fit& fit, uint64_t seed, uint64_t key) {
  Random random(seed, "calibration draw", key);
  Point out = fit.point;
  std::vector<double> z(out.size());
  for (double& one : z) one = random.normal();
  for (size_t j = 0; j < out.size(); ++j) {
    if (fit.parameters[j].standing == Standing::kUnused) continue;
    for (size_t k = 0; k <= j; ++k) out[j] += fit.root[j][k] * z[k];
  }
  return out;
}

}  // namespace rehearse::validation
