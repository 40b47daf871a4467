// SPDX-License-Identifier: Apache-2.0
#include "validation/calibrate/fit.hpp"

#include <algorithm>
#include <cmath>

#include "base/random.hpp"
#include "validation/statistics.hpp"

namespace rehearse::validation {
namespace {

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;

constexpr double kHuber = 1.345;
constexpr double kLeastScatter = 0.02;  // nccl-tests repeats itself to about this
constexpr double kMostScatter =
    0.25;                         // what is off by more is bias that parameters have to explain
constexpr double kStated = 1e-9;  // as good as the prior, but not left to it
constexpr double kStep = 0.02;    // of a numeric derivative, in ln
constexpr double kLongestStep = 0.5;
constexpr int kIterations = 40;
constexpr double kEnough = 1e-4;  // relative fall of the objective at which it stops

// Lower triangle L with L Lt = m; m is symmetric and positive definite by its prior.
Matrix cholesky(const Matrix& m) {
  const size_t n = m.size();
  Matrix l(n, Vector(n, 0));
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      double sum = m[i][j];
      for (size_t k = 0; k < j; ++k) sum -= l[i][k] * l[j][k];
      l[i][j] = i == j ? std::sqrt(std::max(sum, 1e-300)) : sum / l[j][j];
    }
  }
  return l;
}

Vector solve(const Matrix& l, Vector b) {
  const size_t n = b.size();
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < i; ++k) b[i] -= l[i][k] * b[k];
    b[i] /= l[i][i];
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; ++k) b[i] -= l[k][i] * b[k];
    b[i] /= l[i][i];
  }
  return b;
}

Matrix inverse(const Matrix& m) {
  const Matrix l = cholesky(m);
  Matrix out;
  for (size_t i = 0; i < m.size(); ++i) {
    Vector unit(m.size(), 0);
    unit[i] = 1;
    out.push_back(solve(l, unit));
  }
  return out;
}

double huber(double z) {
  const double a = std::abs(z);
  return a <= kHuber ? z * z : 2 * kHuber * a - kHuber * kHuber;
}

class Fitting {
 public:
  Fitting(const std::vector<Observation>& observations, std::vector<size_t> free)
      : observations_(observations), free_(std::move(free)) {}

  // From `start` down; `start` is left at the best point found.
  double descend(Point& start) {
    Point at = start;
    residuals_ = residuals(at);
    double scatter = scatter_of(residuals_);
    double best = objective(at, residuals_, scatter);
    double damping = 1e-3;
    for (int i = 0; i < kIterations; ++i) {
      const Matrix a = normal_matrix(at, scatter);
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
        scatter = scatter_of(r);
        best = objective(at, r, scatter);
        damping = std::max(1e-6, damping / 4);
        if (fall < kEnough * value) break;
      } else {
        damping *= 8;
        if (damping > 1e6) break;
      }
    }
    start = at;
    scatter_ = scatter;
    // Comparable between starts whatever their scatter: absolute residuals in place of scaled ones.
    double sum = 0;
    for (const double r : residuals_) sum += std::abs(r);
    return sum;
  }

  // Of the free parameters at a point.
  Matrix covariance(const Point& at) {
    residuals_ = residuals(at);
    return inverse(normal_matrix(at, scatter_of(residuals_)));
  }

  [[nodiscard]] double scatter() const { return scatter_; }

 private:
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
    for (const double one : r) sum += huber(one / scatter);
    for (const size_t j : free_) {
      const double z = at[j] / parameters()[j].spread;
      sum += z * z;
    }
    return sum;
  }

  // Half the second derivative of the objective, and downhill_ against half the first.
  Matrix normal_matrix(const Point& at, double scatter) {
    const size_t n = free_.size();
    Matrix slopes(n);
    for (size_t j = 0; j < n; ++j) {
      Point aside = at;
      move(aside, free_[j], kStep);
      if (aside[free_[j]] == at[free_[j]]) move(aside, free_[j], -kStep);
      const double by = aside[free_[j]] - at[free_[j]];
      slopes[j] = residuals(aside);
      for (size_t i = 0; i < slopes[j].size(); ++i) {
        slopes[j][i] = (slopes[j][i] - residuals_[i]) / by;
      }
    }
    Matrix a(n, Vector(n, 0));
    downhill_.assign(n, 0);
    for (size_t i = 0; i < observations_.size(); ++i) {
      const double z = std::abs(residuals_[i]) / scatter;
      const double weight = (z <= kHuber ? 1 : kHuber / z) / (scatter * scatter);
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
  Vector residuals_, downhill_;
  double scatter_ = 0;
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
  std::vector<Vector> covariance;
  // What the data cannot tell from the rest is put back to its prior, the least determined first:
  // the others may then be told apart.
  bool first = true;
  while (!free.empty()) {
    Fitting fitting(observations, free);
    Point best = out.point;
    const double from_here = fitting.descend(best);
    if (first) {
      Point other = floor;
      for (const size_t j : free) other[j] = other[j] == 0 ? kStated : other[j];
      if (fitting.descend(other) < from_here) best = other;
      first = false;
    }
    out.point = best;
    covariance = fitting.covariance(best);
    size_t worst = 0;
    double ratio = 0;
    for (size_t j = 0; j < free.size(); ++j) {
      const double own = std::sqrt(covariance[j][j]) / parameters()[free[j]].spread;
      if (own > ratio) {
        ratio = own;
        worst = j;
      }
    }
    if (ratio <= kDetermined) break;
    out.point[free[worst]] = 0;
    free.erase(free.begin() + static_cast<std::ptrdiff_t>(worst));
    covariance.clear();
  }
  Matrix full(all, Vector(all, 0));
  for (size_t j = 0; j < all; ++j) full[j][j] = std::pow(parameters()[j].spread, 2);
  for (size_t j = 0; j < free.size(); ++j) {
    for (size_t k = 0; k < free.size(); ++k) full[free[j]][free[k]] = covariance[j][k];
  }
  out.root = cholesky(full);
  std::vector<double> residuals;
  const ModelPoint model = model_at(out.point);
  for (const Observation& o : observations) {
    residuals.push_back(
        std::abs(std::log(time_us(o.terms, model.time, model.shares) / o.measured_us)));
  }
  out.scatter = std::max(kLeastScatter, 1.4826 * quantile_of(residuals, .5));
  for (size_t j = 0; j < all; ++j) {
    const Parameter& p = parameters()[j];
    const double value = value_at(out.point, j);
    const double deviation = 1.645 * std::sqrt(full[j][j]);
    FittedParameter one{j, Standing::kUnused, value, std::max(p.low, value * std::exp(-deviation)),
                        std::min(p.high, value * std::exp(deviation))};
    const bool fitted = std::find(free.begin(), free.end(), j) != free.end();
    if (std::find(felt.begin(), felt.end(), j) != felt.end()) {
      one.standing = !fitted                             ? Standing::kUndetermined
                     : value <= p.low || value >= p.high ? Standing::kAtBound
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
