// SPDX-License-Identifier: Apache-2.0
#include "validation/calibrate/interference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <vector>

#include "base/random.hpp"
#include "validation/statistics.hpp"

namespace rehearse::validation {
namespace {

using traces::OpKind;

constexpr size_t kFewestKernels = 20;
constexpr double kMostApart = .1, kLeastBeside = .9;  // shares of a kernel's time
constexpr double kWidestRange = 1.25;  // high over low; the model's prior is no wider
constexpr uint64_t kRedrawn = 400;
constexpr double kNormal90 = 1.645;  // deviations on either side of 90 %

struct Span {
  Nanos start = 0, end = 0;
};

// Collectives of a rank, in order, joined where they overlap.
std::vector<Span> resident_calls(const traces::Operations& ops) {
  std::vector<Span> out;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops.call(i) == nullptr) continue;
    const Span span{ops.start[i], ops.start[i] + ops.duration[i]};
    if (!out.empty() && span.start <= out.back().end) {
      out.back().end = std::max(out.back().end, span.end);
    } else {
      out.push_back(span);
    }
  }
  return out;
}

double share_beside(const Span& of, const std::vector<Span>& spans) {
  auto at = std::partition_point(spans.begin(), spans.end(),
                                 [&](const Span& s) { return s.end <= of.start; });
  Nanos inside = 0;
  for (; at != spans.end() && at->start < of.end; ++at) {
    inside += std::min(at->end, of.end) - std::max(at->start, of.start);
  }
  return static_cast<double>(inside) / static_cast<double>(of.end - of.start);
}

// One kernel of a step, over all steps.
struct Met {
  std::vector<double> alone, beside;
};

// A kernel that met both, as a point of the weighted median.
struct Ratio {
  double ratio = 0, weight = 0;
};

void add_rank(const traces::RankTrace& rank, std::vector<Ratio>& out) {
  const traces::Operations& ops = rank.ops;
  const std::vector<Span> calls = resident_calls(ops);
  if (calls.empty() || rank.steps.size() < 2) return;
  std::map<int64_t, Nanos> launched;  // by correlation
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops.kind[i] == OpKind::kLaunch && ops.correlation[i] != 0) {
      launched[ops.correlation[i]] = ops.start[i];
    }
  }
  std::vector<std::pair<Nanos, size_t>> kernels;  // by launch
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops.kind[i] != OpKind::kKernel || ops.duration[i] <= 0) continue;
    const auto at = launched.find(ops.correlation[i]);
    if (at != launched.end()) kernels.emplace_back(at->second, i);
  }
  std::sort(kernels.begin(), kernels.end());
  std::map<std::pair<uint32_t, uint32_t>, Met> met;  // name, nth of the step
  for (const traces::Step& step : rank.steps) {
    std::map<uint32_t, uint32_t> nth;
    auto at = std::lower_bound(kernels.begin(), kernels.end(), std::pair{step.start, size_t{0}});
    for (; at != kernels.end() && at->first < step.end; ++at) {
      const size_t i = at->second;
      Met& one = met[{ops.name[i], nth[ops.name[i]]++}];
      const double share = share_beside({ops.start[i], ops.start[i] + ops.duration[i]}, calls);
      if (share <= kMostApart) one.alone.push_back(static_cast<double>(ops.duration[i]));
      if (share >= kLeastBeside) one.beside.push_back(static_cast<double>(ops.duration[i]));
    }
  }
  for (const auto& [key, one] : met) {
    if (one.alone.empty() || one.beside.empty()) continue;
    const double alone = quantile_of(one.alone, .5);
    out.push_back({quantile_of(one.beside, .5) / alone, alone});
  }
}

// Where half of the weight lies on either side. Of at least one.
double weighted_median(std::vector<Ratio> ratios) {
  std::sort(ratios.begin(), ratios.end(), [](const Ratio& a, const Ratio& b) {
    return std::tie(a.ratio, a.weight) < std::tie(b.ratio, b.weight);
  });
  double all = 0, below = 0;
  for (const Ratio& one : ratios) all += one.weight;
  for (const Ratio& one : ratios) {
    below += one.weight;
    if (2 * below >= all) return one.ratio;
  }
  return ratios.back().ratio;
}

double bounded(double slowdown) { return std::clamp(slowdown, 1.0, kMostSlowdown); }

}  // namespace

Interference interference(const traces::Trace& trace) {
  std::vector<Ratio> ratios;
  for (const traces::RankTrace& rank : trace.ranks) add_rank(rank, ratios);
  Interference out;
  out.kernels = ratios.size();
  if (ratios.size() < kFewestKernels) {
    out.why =
        fmt::format("{} kernels were recorded beside a collective in one step and alone in another",
                    ratios.size());
    return out;
  }
  const double measured = weighted_median(ratios);
  std::vector<double> drawn;
  for (uint64_t k = 0; k < kRedrawn; ++k) {
    Random random(0, "interference", k);
    std::vector<Ratio> again;
    again.reserve(ratios.size());
    for (size_t i = 0; i < ratios.size(); ++i) again.push_back(ratios[random.below(ratios.size())]);
    drawn.push_back(weighted_median(std::move(again)));
  }
  out.low = bounded(quantile_of(drawn, .05));
  out.high = bounded(quantile_of(drawn, .95));
  out.slowdown = bounded(measured);
  out.at_bound = out.slowdown != measured;
  out.determined = out.high <= kWidestRange * out.low;
  if (!out.determined) {
    out.why = fmt::format("{} kernels disagree: {:.3g} to {:.3g} times", ratios.size(), out.low,
                          out.high);
  }
  return out;
}

void add_interference(const Interference& found, uint64_t seed, pb::Patch& overlay) {
  if (!found.determined) return;
  const std::string path = "platform.efficiency.beside";
  const auto word = [](double value) { return fmt::format("{:.4g}", value); };
  (*overlay.mutable_set())[path] = word(found.slowdown);
  pb::Calibration& calibration = *overlay.mutable_calibration();
  pb::CalibratedParameter& row = *calibration.add_parameters();
  row.set_path(path);
  row.set_what("time of a kernel beside a collective over alone");
  row.set_value(word(found.slowdown));
  row.set_low(word(found.low));
  row.set_high(word(found.high));
  row.set_prior("the model's");
  row.set_standing(found.at_bound ? "at-bound" : "fitted");
  const double spread = std::log(found.high / found.low) / 2 / kNormal90;
  for (int k = 0; k < calibration.draws_size(); ++k) {
    Random random(seed, "interference draw", static_cast<uint64_t>(k));
    calibration.mutable_draws(k)->add_values(
        word(bounded(found.slowdown * std::exp(spread * random.normal()))));
  }
}

}  // namespace rehearse::validation
