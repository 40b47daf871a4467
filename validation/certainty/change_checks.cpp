// SPDX-License-Identifier: Apache-2.0
#include "validation/certainty/change_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/document.hpp"
#include "validation/certainty/change.hpp"

namespace rehearse::validation {
namespace {

constexpr double kChangeTolerance = .25;  // as of fault and fix pairs
constexpr double kChangeTarget = .80;
constexpr size_t kFewestChanges = 5;  // fewer say nothing of a range
constexpr Bytes kChangedCall = Bytes{1} << 20;
constexpr Bytes kBytesDecide = 16 * kChangedCall;  // from here on links take most of a call's time

struct Predicted {
  const Observed* one = nullptr;
  double us = 0;
};

std::string conditions(const NcclTestRow& row) {
  return row.algorithm.empty() && row.protocol.empty() ? "NCCL's choice"
                                                       : row.algorithm + " " + row.protocol;
}

// What else a call was measured with; plain ones come first.
auto special(const Observed& one) {
  const NcclTestRow& row = one.first;
  return std::tie(row.options, row.graph, row.type, row.reduction, one.nccl_version,
                  row.gpus_per_thread);
}

// Of calls that differ in nothing a change is about the plainest stands for all, in whatever order they come.
template <typename Calls, typename Key>
void keep_plainest(Calls& calls, const Key& key, const Predicted& predicted) {
  const auto [at, fresh] = calls.try_emplace(key, predicted);
  if (!fresh && special(*predicted.one) < special(*at->second.one)) at->second = predicted;
}

std::string words_of(const NcclTestRow& a, const NcclTestRow& b, Change change) {
  switch (change) {
    case Change::kScale:
      return fmt::format("{}, {} of {} bytes: {} GPUs on {} nodes -> {} on {}", a.hardware,
                         a.collective, a.bytes, a.gpus, a.nodes, b.gpus, b.nodes);
    case Change::kBandwidth:
      return fmt::format("{} GPUs, {} of {} bytes: {} -> {}", a.gpus, a.collective, a.bytes,
                         a.hardware, b.hardware);
    default:
      return fmt::format("{}, {} GPUs, {} of {} bytes: {} -> {}", a.hardware, a.gpus, a.collective,
                         a.bytes, conditions(a), conditions(b));
  }
}

CheckRow changed_row(const Predicted& from, const Predicted& to, Change change) {
  const NcclTestRow& a = from.one->first;
  const NcclTestRow& b = to.one->first;
  CheckRow row;
  row.what = words_of(a, b, change);
  row.group = to.one->observation.group;
  row.predicted = to.us / from.us;
  row.measured = to.one->observation.measured_us / from.one->observation.measured_us;
  row.source = b.where;
  row.command = "rehearse validate --only collectives --rows --json";
  row.change = name_of(change);
  return row;
}

double share_within(const std::vector<double>& errors) {
  const auto within =
      std::ranges::count_if(errors, [](double error) { return error <= kChangeTolerance; });
  return errors.empty() ? 0 : static_cast<double>(within) / static_cast<double>(errors.size());
}

void judge_changes(Check& check) {
  std::vector<double> all;
  for (const CheckRow& row : check.rows) all.push_back(std::abs(row.error()));
  check.metric = "share of changes within 25 %";
  check.value = share_within(all);
  check.at_least = true;
  check.target = kChangeTarget;
  judge_value(check);
  std::map<std::string, std::vector<double>> by_kind;
  for (const CheckRow& row : check.rows) by_kind[row.change].push_back(std::abs(row.error()));
  for (const auto& [kind, errors] : by_kind) {
    check.assumptions.push_back(fmt::format(
        "{}: {} changes, {:.0f} % of them within 25 %, median error {:.1f} %, 9 of 10 {:.1f} %",
        kind, errors.size(), 100 * share_within(errors), 100 * quantile_of(errors, .5),
        100 * quantile_of(errors, .9)));
  }
}

// The same call on GPUs of one generation that other links join: A100 over PCIe and over NVLink, H800 and H100.
// They are two machines, not one that was changed, and differ in more than their links.
void add_links(const std::vector<ObservedHardware>& hardware, const Point& prior, Check& check) {
  using Same = std::tuple<uint32_t, uint32_t, uint32_t, std::string, Bytes, std::string>;
  std::map<Same, std::map<std::string, Predicted>> machines;  // by hardware
  std::set<std::string> versions;
  std::map<std::string, std::vector<double>> by_size;
  for (const ObservedHardware& h : hardware) {
    for (const Observed& one : h.observed) {
      const NcclTestRow& row = one.first;
      if (row.bytes < kChangedCall || one.observation.measured_us <= 0) continue;
      keep_plainest(machines[{one.generation, row.nodes, row.gpus, row.collective, row.bytes,
                              conditions(row)}],
                    h.hardware, {&one, predicted_us(one.observation, prior)});
    }
  }
  for (const auto& [same, by] : machines) {
    for (auto at = by.begin(); at != by.end() && std::next(at) != by.end(); ++at) {
      const Predicted &from = at->second, &to = std::next(at)->second;
      check.rows.push_back(changed_row(from, to, Change::kBandwidth));
      const char* size = from.one->first.bytes < kBytesDecide ? "1 to 16 MiB" : "16 MiB and more";
      by_size[fmt::format("{} and {}, {}", at->first, std::next(at)->first, size)].push_back(
          std::abs(check.rows.back().error()));
      if (from.one->nccl_version != to.one->nccl_version) {
        versions.insert(fmt::format("{} and {}: NCCL {} and {}, which is part of the change",
                                    at->first, std::next(at)->first, from.one->nccl_version,
                                    to.one->nccl_version));
      }
    }
  }
  check.assumptions.insert(check.assumptions.end(), versions.begin(), versions.end());
  for (const auto& [which, errors] : by_size) {
    check.assumptions.push_back(fmt::format("{}: {} changes, median error {:.1f} %", which,
                                            errors.size(), 100 * quantile_of(errors, .5)));
  }
  if (!by_size.empty()) {
    check.assumptions.emplace_back(
        "machines whose links are compared differ in more: hosts that take longer to start a call "
        "show in short ones, which a change of one machine's links would not");
  }
}

double short_figure(double value) { return std::stod(fmt::format("{:.4f}", value)); }

}  // namespace

Check collective_changes(const std::vector<ObservedHardware>& hardware) {
  Check check;
  check.id = "change-collectives";
  check.what =
      "ratio of two measured collectives that differ in settings, in scale or in what links the "
      "GPUs, data sheet only";
  const Point prior(parameters().size(), 0);
  for (const ObservedHardware& h : hardware) {
    // By what is the same in both, then by what differs.
    std::map<std::tuple<uint32_t, uint32_t, std::string, Bytes>, std::map<std::string, Predicted>>
        settings;
    std::map<std::tuple<std::string, Bytes, std::string>,
             std::map<std::pair<uint32_t, uint32_t>, Predicted>>
        scales;
    for (const Observed& one : h.observed) {
      const NcclTestRow& row = one.first;
      if (row.bytes < kChangedCall || one.observation.measured_us <= 0) continue;
      const Predicted predicted{&one, predicted_us(one.observation, prior)};
      keep_plainest(settings[{row.nodes, row.gpus, row.collective, row.bytes}], conditions(row),
                    predicted);
      keep_plainest(scales[{row.collective, row.bytes, conditions(row)}],
                    std::pair{row.nodes, row.gpus}, predicted);
    }
    for (const auto& [same, by] : settings) {
      const auto own = by.find("NCCL's choice");
      if (own == by.end()) continue;
      for (const auto& [name, one] : by) {
        // What is forced is often what NCCL would choose: nothing changes then.
        if (name == own->first || one.one->algorithm == own->second.one->algorithm) continue;
        check.rows.push_back(changed_row(own->second, one, Change::kAlgorithm));
      }
    }
    for (const auto& [same, by] : scales) {
      for (auto at = by.begin(); at != by.end() && std::next(at) != by.end(); ++at) {
        check.rows.push_back(changed_row(at->second, std::next(at)->second, Change::kScale));
      }
    }
  }
  add_links(hardware, prior, check);
  judge_changes(check);
  return check;
}

Check layout_changes(const std::vector<CheckRow>& steps) {
  Check check;
  check.id = "change-layouts";
  check.what = "ratio of two measured step times of one model on other layouts";
  std::map<std::string, const CheckRow*> before;
  for (const CheckRow& step : steps) {
    const auto [at, first] = before.try_emplace(step.group, &step);
    if (!first && at->second->measured > 0 && at->second->predicted > 0) {
      CheckRow row = step;
      row.what = at->second->what + " -> " + step.what;
      row.predicted = step.predicted / at->second->predicted;
      row.measured = step.measured / at->second->measured;
      row.unit = "";
      row.change = name_of(Change::kLayout);
      check.rows.push_back(std::move(row));
    }
    at->second = &step;
  }
  judge_changes(check);
  return check;
}

std::string change_errors_document(const std::vector<Check>& checks) {
  struct Collected {
    std::vector<double> errors;
    size_t rows = 0;
    std::set<std::string> groups, from;
  };
  std::map<std::string, Collected> kinds;
  for (const Check& check : checks) {
    for (const CheckRow& row : check.rows) {
      if (row.change.empty() || !(row.predicted > 0) || !(row.measured > 0)) continue;
      Collected& kind = kinds[row.change];
      const double error = std::log(row.measured / row.predicted);
      kind.errors.push_back(error);
      // Which of two machines is the new one is not said: the error of the way back is the same, the other way round.
      if (row.change == name_of(Change::kBandwidth)) kind.errors.push_back(-error);
      ++kind.rows;
      kind.groups.insert(row.group.empty() ? row.what : row.group);
      kind.from.insert(check.id);
    }
  }
  pb::ChangeErrors document;
  for (auto& [name, kind] : kinds) {
    if (kind.rows < kFewestChanges) continue;
    std::sort(kind.errors.begin(), kind.errors.end());
    pb::ChangeErrorEntry& entry = *document.add_changes();
    entry.set_change(name);
    entry.set_rows(static_cast<uint32_t>(kind.rows));
    entry.set_configurations(static_cast<uint32_t>(kind.groups.size()));
    for (int k = 1; k < 20; ++k) {
      entry.add_quantiles(short_figure(quantile(kind.errors, .05 * k)));
    }
    for (const std::string& id : kind.from) entry.add_from(id);
  }
  return "# Made by `rehearse validate --data DIR --save-changes FILE`: ln(measured / predicted) "
         "of "
         "the ratio of two\n"
         "# configurations at 5, 10, ... 95 %, by kind of change.\n" +
         write_document(document);
}

}  // namespace rehearse::validation
