// SPDX-License-Identifier: Apache-2.0
#include "validation/collective_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>

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

constexpr const char* kTheseRows = "rehearse validate --only collectives --rows --json";

std::string command_of(const Observed& one) {
  const NcclTestRow& row = one.first;
  // Of one call alone explain tells; in a stream of rooted calls the pipeline fills once (nccl_tests.cpp).
  if (row.collective == "broadcast" || row.collective == "reduce") return kTheseRows;
  std::string out = fmt::format(
      "rehearse nccl explain --platform {} --nodes {} --ranks {} --collective {} --bytes {}",
      one.platform, row.nodes, row.gpus, row.collective, row.bytes);
  if (one.observation.terms.launches > 1) {
    out += fmt::format(" --gpus-per-thread {}", one.observation.terms.launches);
  }
  if (!one.nccl_version.empty()) out += " --nccl-version " + one.nccl_version;
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

// How much further than among many configurations 90 % of a new one's errors reach where only few are known: Student's
// distribution, and the error of what they are around (Geisser, Predictive Inference, 1993).
double widening(size_t groups) {
  constexpr std::array<double, 10> kReach = {6.314, 2.920, 2.353, 2.132, 2.015,
                                             1.943, 1.895, 1.860, 1.833, 1.812};
  constexpr double kNormal = 1.645;
  const double n = static_cast<double>(groups);
  const double reach = groups - 2 < kReach.size() ? kReach[groups - 2] : kNormal + 1.6 / (n - 1);
  return reach / kNormal * std::sqrt(1 + 1 / n);
}

// Errors of held-out predictions, of which the band of a new one is made: quantiles over the rows of
// all other configurations, calls of about that size.
class HeldOutErrors {
 public:
  void add(const HeldOut& held) {
    const Observation& o = held.observed->observation;
    for (const double measured : held.observed->repeats) {
      errors_[size_class(o.bytes)].emplace_back(std::log(measured / held.predicted_us), o.group);
    }
  }
  void sort() {
    for (auto& [size, errors] : errors_) std::sort(errors.begin(), errors.end());
  }

  // ln(measured / predicted) at 5 and 95 %; none of fewer than two other configurations. After sort().
  [[nodiscard]] std::optional<std::pair<double, double>> band(const Observation& target) const {
    std::vector<double> beside;
    std::set<std::string> groups;
    for (const auto& [error, group] : errors_.at(size_class(target.bytes))) {
      if (group == target.group) continue;
      beside.push_back(error);
      groups.insert(group);
    }
    if (groups.size() < 2) return std::nullopt;
    const double middle = quantile(beside, .5), wider = widening(groups.size());
    return std::pair{middle + wider * (quantile(beside, .05) - middle),
                     middle + wider * (quantile(beside, .95) - middle)};
  }

 private:
  std::map<size_t, std::vector<std::pair<double, std::string>>> errors_;
};

size_t groups_of(const Check& check) {
  std::set<std::string> groups;
  for (const CheckRow& row : check.rows) groups.insert(row.group);
  return groups.size();
}

// Where rows are far off, most rows first.
std::string worst_groups(const Check& check) {
  const double limit = check.p90_target > 0 ? check.p90_target : check.target;
  std::map<std::string, size_t> far, all;
  for (const CheckRow& row : check.rows) {
    ++all[row.group];
    if (std::abs(row.error()) > limit) ++far[row.group];
  }
  std::vector<std::pair<size_t, std::string>> most;
  most.reserve(far.size());
  for (const auto& [group, n] : far) most.emplace_back(n, group);
  std::sort(most.rbegin(), most.rend());
  std::string out = fmt::format("rows off by more than {:.0f} %:", 100 * limit);
  for (size_t i = 0; i < most.size() && i < 6; ++i) {
    out += fmt::format("{} {} of {} of {}", i == 0 ? "" : ";", most[i].first, all[most[i].second],
                       most[i].second);
  }
  return out;
}

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
  std::vector<HeldOut> held;
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
      held.push_back({&one, predicted_us(one.observation, own.point)});
      errors.add(held.back());
    }
  }
  std::vector<double> widths;
  size_t inside = 0;
  errors.sort();
  for (const HeldOut& one : held) {
    const size_t size = size_class(one.observed->observation.bytes);
    if (size == 1) continue;
    const auto band = errors.band(one.observed->observation);
    for (const double measured : one.observed->repeats) {
      CheckRow row = row_of(*one.observed, one.predicted_us, measured);
      row.command = kTheseRows;
      if (band) {
        row.low = one.predicted_us * std::exp(band->first);
        row.high = one.predicted_us * std::exp(band->second);
        inside += row.low <= measured && measured <= row.high ? 1 : 0;
        widths.push_back((row.high - row.low) / 2 / one.predicted_us);
        bands.rows.push_back(row);
      }
      (size == 0 ? small : fitted).rows.push_back(std::move(row));
    }
  }
  judge_median(sheet);
  judge_median(fitted);
  judge_median(small);
  for (Check* check : {&sheet, &fitted, &small}) {
    if (!check->met) check->why = worst_groups(*check);
  }
  if (!bands.rows.empty()) {
    bands.value = static_cast<double>(inside) / static_cast<double>(bands.rows.size());
    bands.at_least = true;
  }
  judge_value(bands);
  if (const size_t known = groups_of(bands); known < kFewestGroups) {
    bands.skipped = true;
    bands.why = fmt::format("{} configurations are too few to judge a range by", known);
  }
  const double width = quantile_of(widths, .5);
  bands.met = bands.met && !bands.skipped && bands.value <= .95 && width <= .15;
  bands.assumptions.push_back(
      fmt::format("target: 85 to 95 % inside and a median half-width of at most 15 %; the median "
                  "half-width is {:.1f} %",
                  100 * width));
  return {sheet, fitted, small, bands};
}

}  // namespace rehearse::validation
