// SPDX-License-Identifier: Apache-2.0
#include "validation/collective_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

namespace rehearse::validation {
namespace {

// A prediction that was made without its own configuration.
struct HeldOut {
  const Observed* observed = nullptr;
  double predicted_us = 0;
};

size_t size_class(Bytes bytes) {
  return bytes < kSmallMessage ? 0 : bytes < kLargeMessage ? 1 : bytes < 16 * kLargeMessage ? 2 : 3;
}

std::string command_of(const Observed& one) {
  const NcclTestRow& row = one.first;
  std::string out = fmt::format(
      "rehearse nccl explain --platform {} --nodes {} --ranks {} --collective {} --bytes {}",
      one.platform, row.nodes, row.gpus, row.collective, row.bytes);
  if (!row.algorithm.empty()) out += " --env NCCL_ALGO=" + row.algorithm;
  if (!row.protocol.empty()) out += " --env NCCL_PROTO=" + row.protocol;
  return out;
}

CheckRow row_of(const Observed& one, double predicted, double measured) {
  CheckRow row;
  row.what = fmt::format("{}, {}", one.first.hardware, one.observation.what);
  row.group = one.observation.group;
  row.predicted = predicted;
  row.measured = measured;
  row.unit = "us";
  row.source = one.first.where;
  row.command = command_of(one);
  return row;
}

// Errors of held-out predictions, of which the band of a new one is made: quantiles over other
// configurations of calls of about that size. Every configuration counts the same however many rows
// it has; those of the same hardware count kOwnHardware times.
class HeldOutErrors {
 public:
  void add(const HeldOut& held, const std::string& hardware) {
    const Observation& o = held.observed->observation;
    Group& group = groups_[{o.group, hardware, size_class(o.bytes)}];
    for (const double measured : held.observed->repeats) {
      group.push_back(std::log(measured / held.predicted_us));
    }
  }

  // ln(measured / predicted) at 5 and 95 %.
  [[nodiscard]] std::pair<double, double> band(const Observation& target,
                                               const std::string& hardware) const {
    std::vector<std::pair<double, double>> errors;  // with weight
    double all = 0;
    for (const auto& [key, group] : groups_) {
      const auto& [name, where, size] = key;
      if (name == target.group || size != size_class(target.bytes)) continue;
      const double weight = where == hardware ? kOwnHardware : 1;
      for (const double error : group) {
        errors.emplace_back(error, weight / static_cast<double>(group.size()));
      }
      all += weight;
    }
    std::sort(errors.begin(), errors.end());
    const auto at = [&](double share) {
      double sum = 0;
      for (const auto& [error, weight] : errors) {
        sum += weight;
        if (sum >= share * all) return error;
      }
      return errors.empty() ? 0 : errors.back().first;
    };
    return {at(.05), at(.95)};
  }

 private:
  static constexpr double kOwnHardware = 4;
  using Group = std::vector<double>;
  std::map<std::tuple<std::string, std::string, size_t>, Group> groups_;
};

Check make(const char* id, const char* what, double target) {
  Check check;
  check.id = id;
  check.what = what;
  check.target = target;
  return check;
}

}  // namespace

std::vector<Check> collective_checks(const std::vector<ObservedHardware>& hardware) {
  Check sheet = make("nccl-tests-data-sheet",
                     "time of collectives of 1 MiB and more, data sheet and model only", .15);
  Check fitted = make("nccl-tests-calibrated",
                      "time of collectives of 1 MiB and more, calibrated on other configurations "
                      "of the same hardware",
                      .08);
  fitted.p90_target = .20;
  Check small = make("nccl-tests-small",
                     "time of collectives below 64 KiB, calibrated on other configurations", .15);
  Check bands = make("nccl-tests-bands",
                     "measured times inside the 90 % band of the held-out prediction", .85);
  bands.metric = "share of rows inside";
  std::vector<std::map<std::string, Fit>> fits(hardware.size());
  std::vector<std::pair<const ObservedHardware*, HeldOut>> held;
  HeldOutErrors errors;
  for (size_t i = 0; i < hardware.size(); ++i) {
    const ObservedHardware& h = hardware[i];
    const Point prior(parameters().size(), 0);
    std::set<std::string> groups;
    for (const Observed& one : h.observed) {
      groups.insert(one.observation.group);
      if (one.observation.bytes < kLargeMessage) continue;
      const double predicted = predicted_us(one.observation, prior);
      for (const double measured : one.repeats) {
        sheet.rows.push_back(row_of(one, predicted, measured));
      }
    }
    if (groups.size() < 2) {
      fitted.assumptions.push_back(
          fmt::format("{}: one configuration only, nothing to calibrate on", h.hardware));
      continue;
    }
    for (const std::string& group : groups) fits[i][group] = fit(h.without(group));
    for (const Observed& one : h.observed) {
      const Fit& own = fits[i][one.observation.group];
      held.push_back({&h, {&one, predicted_us(one.observation, own.point)}});
      errors.add(held.back().second, h.hardware);
    }
  }
  std::vector<double> widths;
  size_t inside = 0;
  for (const auto& [h, one] : held) {
    const size_t size = size_class(one.observed->observation.bytes);
    if (size == 1) continue;
    const auto [low, high] = errors.band(one.observed->observation, h->hardware);
    for (const double measured : one.observed->repeats) {
      CheckRow row = row_of(*one.observed, one.predicted_us, measured);
      row.low = one.predicted_us * std::exp(low);
      row.high = one.predicted_us * std::exp(high);
      inside += row.low <= measured && measured <= row.high ? 1 : 0;
      widths.push_back((row.high - row.low) / 2 / one.predicted_us);
      (size == 0 ? small : fitted).rows.push_back(row);
      bands.rows.push_back(std::move(row));
    }
  }
  judge_median(sheet);
  judge_median(fitted);
  judge_median(small);
  if (!bands.rows.empty()) {
    bands.value = static_cast<double>(inside) / static_cast<double>(bands.rows.size());
    bands.at_least = true;
  }
  judge_value(bands);
  const double width = quantile_of(widths, .5);
  bands.met = bands.met && bands.value <= .95 && width <= .15;
  bands.assumptions.push_back(
      fmt::format("target: 85 to 95 % inside and a median half-width of at most 15 %; the median "
                  "half-width is {:.1f} %",
                  100 * width));
  return {sheet, fitted, small, bands};
}

}  // namespace rehearse::validation
