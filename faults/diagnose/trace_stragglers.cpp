// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/trace_stragglers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/text.hpp"
#include "faults/symptoms/classifier.hpp"
#include "sim/scenario/places.hpp"
#include "sim/scenario/transforms.hpp"

namespace rehearse::faults {
namespace {

// Of the mean work of a step. The largest of many workers in a step is above the mean by chance, one that is so in
// all steps is not.
constexpr double kFixedMore = 0.05, kChangingMore = 0.1;
// Places within this of the slowest one are slow with it.
constexpr double kNearSlowest = 0.5;

using Matrix = std::vector<std::vector<double>>;  // by step and rank of the trace

struct WorkAndGaps {
  Matrix work, gaps;
  double mean = 0;  // work of a worker in a step
};

WorkAndGaps work_and_gaps(const traces::Trace& trace) {
  WorkAndGaps out;
  size_t steps = SIZE_MAX;
  for (const traces::RankTrace& rank : trace.ranks) steps = std::min(steps, rank.steps.size());
  if (trace.ranks.empty()) steps = 0;
  out.work.assign(steps, std::vector<double>(trace.ranks.size()));
  out.gaps = out.work;
  double sum = 0;
  for (size_t r = 0; r < trace.ranks.size(); ++r) {
    const traces::RankTrace& rank = trace.ranks[r];
    for (size_t i = 0; i < rank.ops.size(); ++i) {
      const bool work = rank.ops.kind[i] == traces::OpKind::kKernel;
      if (!work && rank.ops.call(i) == nullptr) continue;
      const auto after =
          std::upper_bound(rank.steps.begin(), rank.steps.end(), rank.ops.start[i],
                           [](Nanos time, const traces::Step& step) { return time < step.start; });
      if (after == rank.steps.begin()) continue;
      const auto s = static_cast<size_t>(after - rank.steps.begin()) - 1;
      if (s >= steps || rank.ops.start[i] >= rank.steps[s].end) continue;
      const auto duration = static_cast<double>(rank.ops.duration[i]);
      if (work) out.work[s][r] += duration;
      out.gaps[s][r] -= duration;
    }
    for (size_t s = 0; s < steps; ++s) {
      out.gaps[s][r] += static_cast<double>(rank.steps[s].end - rank.steps[s].start);
      sum += out.work[s][r];
    }
  }
  const auto cells = static_cast<double>(steps * trace.ranks.size());
  out.mean = cells > 0 ? sum / cells : 0;
  return out;
}

// Ranks that send to each other are one pipeline; the place of each is its position in it, by number.
std::vector<size_t> places_in_pipelines(const traces::Trace& trace) {
  std::vector<size_t> root(trace.ranks.size());
  std::iota(root.begin(), root.end(), 0);
  const auto find = [&](size_t r) {
    while (root[r] != r) r = root[r] = root[root[r]];
    return r;
  };
  std::map<uint32_t, size_t> index;
  for (size_t r = 0; r < trace.ranks.size(); ++r) index[trace.ranks[r].rank] = r;
  for (size_t r = 0; r < trace.ranks.size(); ++r) {
    const auto& ops = trace.ranks[r].ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      const traces::Call* call = ops.call(i);
      if (call == nullptr || !traces::is_point_to_point(call->collective)) continue;
      const auto& members = trace.communicators[call->communicator].members;
      if (call->peer < 0 || static_cast<size_t>(call->peer) >= members.size()) continue;
      const auto peer = index.find(members[static_cast<size_t>(call->peer)]);
      if (peer != index.end()) root[find(r)] = find(peer->second);
    }
  }
  std::map<size_t, std::vector<std::pair<uint32_t, size_t>>> pipelines;
  for (size_t r = 0; r < trace.ranks.size(); ++r) {
    pipelines[find(r)].emplace_back(trace.ranks[r].rank, r);
  }
  std::vector<size_t> out(trace.ranks.size());
  for (auto& [first, ranks] : pipelines) {
    std::sort(ranks.begin(), ranks.end());
    for (size_t place = 0; place < ranks.size(); ++place) out[ranks[place].second] = place;
  }
  return out;
}

double mean_of(const std::vector<double>& values) {
  return values.empty() ? 0
                        : std::accumulate(values.begin(), values.end(), 0.0) /
                              static_cast<double>(values.size());
}

// What each rank has in a step, mean over the steps.
std::vector<double> always(const Matrix& values, size_t ranks) {
  std::vector<double> out(ranks);
  for (const auto& step : values) {
    for (size_t r = 0; r < ranks; ++r) out[r] += step[r] / static_cast<double>(values.size());
  }
  return out;
}

// What the one with most has more than usual for it, mean over the steps.
double another_each_step(const Matrix& values, const std::vector<double>& usual) {
  double sum = 0;
  for (const auto& step : values) {
    // A step in which all have more is a longer step, not a straggler.
    double all = 0, most = 0;
    for (size_t r = 0; r < usual.size(); ++r) all += (step[r] - usual[r]) / double(usual.size());
    for (size_t r = 0; r < usual.size(); ++r) most = std::max(most, step[r] - usual[r] - all);
    sum += most;
  }
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

std::string kind_of(const TraceStragglers& found) {
  const double fixed = std::max(found.by_stage, found.by_rank);
  const double changing = std::max(found.by_step, found.by_gaps);
  if (fixed >= kFixedMore && fixed >= changing) {
    return found.by_stage >= found.by_rank ? "fixed-stage" : "fixed-rank";
  }
  if (changing < kChangingMore) return fixed >= kFixedMore ? "fixed-rank" : "";
  return found.by_step >= found.by_gaps ? "random" : "rotating";
}

bool makes_kind(const pb::Fault& fault, const std::string& kind) {
  return std::any_of(fault.patch().begin(), fault.patch().end(), [&](const pb::Patch& patch) {
    using sim::Straggling;
    const bool one_rank = sim::rank_of(patch).has_value();
    if (kind == "fixed-stage") return sim::straggles(patch, Straggling::kEveryStep) && !one_rank;
    if (kind == "fixed-rank") return sim::straggles(patch, Straggling::kEveryStep) && one_rank;
    if (kind == "random") return sim::straggles(patch, Straggling::kDrawnSteps);
    return sim::straggles(patch, Straggling::kSomeSteps);
  });
}

}  // namespace

TraceStragglers find_stragglers(const traces::Trace& trace) {
  TraceStragglers out;
  const WorkAndGaps seen = work_and_gaps(trace);
  out.steps = static_cast<uint32_t>(seen.work.size());
  const size_t ranks = trace.ranks.size();
  if (ranks < 2 || out.steps == 0 || seen.mean <= 0) return out;
  const std::vector<double> usual = always(seen.work, ranks);
  const std::vector<size_t> place = places_in_pipelines(trace);
  const size_t places = *std::max_element(place.begin(), place.end()) + 1;
  std::vector<std::vector<double>> at(places);
  for (size_t r = 0; r < ranks; ++r) at[place[r]].push_back(usual[r]);
  std::vector<double> of_place;
  of_place.reserve(places);
  for (const auto& values : at) of_place.push_back(mean_of(values));
  const double slowest = *std::max_element(of_place.begin(), of_place.end());
  out.by_stage = (slowest - mean_of(of_place)) / seen.mean;
  for (size_t r = 0; r < ranks; ++r) {
    out.by_rank = std::max(out.by_rank, (usual[r] - of_place[place[r]]) / seen.mean);
  }
  out.by_step = another_each_step(seen.work, usual) / seen.mean;
  out.by_gaps = another_each_step(seen.gaps, always(seen.gaps, ranks)) / seen.mean;
  out.kind = kind_of(out);
  for (size_t r = 0; r < ranks; ++r) {
    const double more = out.kind == "fixed-stage"
                            ? (of_place[place[r]] - mean_of(of_place)) / seen.mean
                            : (usual[r] - of_place[place[r]]) / seen.mean;
    const double most = out.kind == "fixed-stage" ? out.by_stage : out.by_rank;
    if (out.kind.starts_with("fixed") && more > kNearSlowest * most) {
      out.ranks.push_back(trace.ranks[r].rank);
    }
  }
  return out;
}

pb::Diagnosis diagnose_trace(const traces::Trace& trace, const FaultCatalogue& catalogue) {
  pb::Diagnosis out;
  out.set_schema("rehearse.diagnosis/1");
  out.set_scenario(trace.header.job());
  const TraceStragglers found = find_stragglers(trace);
  pb::Symptom& symptom = *out.mutable_symptom();
  symptom.set_id(found.kind.empty() ? std::string(kHealthy) : "D2.2");
  symptom.set_label(std::string(symptom_label(symptom.id())));
  symptom.add_reasons(
      fmt::format("{} ranks in {} steps: the slowest place of the pipeline has {:+.0f} % work, the "
                  "slowest rank "
                  "{:+.0f} % of its place, another one in each step {:+.0f} % (gaps {:+.0f} %)",
                  trace.ranks.size(), found.steps, 100 * found.by_stage, 100 * found.by_rank,
                  100 * found.by_step, 100 * found.by_gaps));
  out.set_straggler(found.kind);
  if (found.kind.empty()) return out;
  for (const auto& entry : catalogue.entries()) {
    const auto& known = entry->fault.symptoms();
    if (!makes_kind(entry->fault, found.kind) ||
        std::find(known.begin(), known.end(), "D2.2") == known.end()) {
      continue;
    }
    pb::Cause& cause = *out.add_causes();
    cause.set_fault(entry->fault.id());
    cause.set_name(entry->fault.name());
    cause.set_use(entry->fault.id());
    // A fault of this one mechanism before those of several.
    cause.set_score(entry->fault.patch_size() == 1 ? 0.8 : 0.6);
    cause.add_evidence(found.ranks.empty() ? "late: " + found.kind
                                           : fmt::format("late: {}, rank {}", found.kind,
                                                         format_ranks(found.ranks)));
    for (const uint32_t rank : found.ranks) {
      pb::Culprit& culprit = *cause.add_culprits();
      culprit.set_kind("rank");
      culprit.set_rank(rank);
      culprit.set_why(found.kind);
    }
  }
  std::stable_sort(out.mutable_causes()->begin(), out.mutable_causes()->end(),
                   [](const pb::Cause& a, const pb::Cause& b) { return a.score() > b.score(); });
  out.set_unknown(out.causes().empty());
  return out;
}

}  // namespace rehearse::faults
