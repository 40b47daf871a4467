// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/text.hpp"
#include "traces/inspect/call_matching.hpp"
#include "traces/inspect/inspection.hpp"
#include "traces/inspect/intervals.hpp"

namespace rehearse::traces {
namespace {

constexpr Interval kAlways{std::numeric_limits<Nanos>::min(), std::numeric_limits<Nanos>::max()};
constexpr Interval kNever{0, 0};

bool starts_in(Nanos start, Interval window) { return start >= window.start && start < window.end; }

// The value that a share of all is not above.
Nanos quantile(const std::vector<Nanos>& sorted, double share) {
  const auto place = static_cast<size_t>(share * static_cast<double>(sorted.size()) + 0.999999);
  return sorted[std::clamp<size_t>(place, 1, sorted.size()) - 1];
}

Severity severity_from(const std::string& name) {
  for (const Severity severity : {Severity::kInfo, Severity::kWarning, Severity::kDataLoss}) {
    if (name == name_of(severity)) return severity;
  }
  return Severity::kError;
}

struct NameTotal {
  uint64_t count = 0;
  Nanos total = 0;
};

}  // namespace

struct Inspector::Impl {
  const Strings& strings;
  CallMatching matching;
  Inspection out;
  std::vector<NameTotal> kernels;  // by string
  std::vector<Nanos> step_lengths;
  std::set<int64_t> step_numbers;
  bool has_step = false;

  [[nodiscard]] Interval zoom(const RankTrace& rank);
  void add_operations(const RankTrace& rank, Interval window);
  void add_program(const RankTrace& rank, RankTimes& times);
  void finish_steps();
  void finish_kernels();
};

// What counts of this rank: all, one step, or nothing.
Interval Inspector::Impl::zoom(const RankTrace& rank) {
  if (out.options.rank && *out.options.rank != rank.rank) return kNever;
  if (!out.options.step) return kAlways;
  Interval window = kNever;
  for (const Step& step : rank.steps) {
    step_numbers.insert(step.number);
    if (step.number != *out.options.step) continue;
    window = {step.start, step.end};
    has_step = true;
  }
  return window;
}

void Inspector::Impl::add_operations(const RankTrace& rank, Interval window) {
  const Operations& ops = rank.ops;
  IntervalUnion compute, communication;
  RankTimes times{.rank = rank.rank, .host = rank.host, .gpu_model = rank.gpu_model};
  uint64_t last_group = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    const bool counts = starts_in(ops.start[i], window);
    const OpKind kind = ops.kind[i];
    times.operations += counts ? 1 : 0;
    out.by_kind[static_cast<size_t>(kind)] += counts ? 1 : 0;
    if (counts && kind == OpKind::kKernel) {
      ++kernels[ops.name[i]].count;
      kernels[ops.name[i]].total += ops.duration[i];
    }
    if (rank.lanes[ops.lane[i]].kind != LaneKind::kStream) continue;
    const Nanos end = ops.start[i] + ops.duration[i];
    if (kind == OpKind::kCall) {
      // One kernel does all calls of a group; they stand one behind the other.
      const Call* const call = ops.call(i);
      const uint64_t group = call != nullptr ? call->group : 0;
      out.nccl_kernels += counts && (group == 0 || group != last_group) ? 1 : 0;
      last_group = group;
      communication.add(ops.start[i], end);
    } else if (kind == OpKind::kKernel || kind == OpKind::kCopy || kind == OpKind::kMemset) {
      compute.add(ops.start[i], end);
    }
  }
  out.operations += times.operations;
  std::vector<Interval> windows;
  for (const Step& step : rank.steps) {
    if (out.options.step && step.number != *out.options.step) continue;
    windows.push_back({step.start, step.end});
    step_lengths.push_back(step.end - step.start);
    Nanos& longest = out.steps.longest[step.number];
    longest = std::max(longest, step.end - step.start);
  }
  times.steps = windows.size();
  if (windows.empty() && !out.options.step) {
    Interval all{kAlways.end, kAlways.start};
    for (const auto* parts : {&compute.parts(), &communication.parts()}) {
      if (parts->empty()) continue;
      all = {std::min(all.start, parts->front().start), std::max(all.end, parts->back().end)};
    }
    if (all.start < all.end) windows.push_back(all);
  }
  for (const Interval& w : windows) {
    const Nanos busy = compute.covered(w), both = covered_by_both(compute, communication, w);
    const Nanos exposed = communication.covered(w) - both;
    times.window += w.end - w.start;
    times.compute += busy;
    times.overlapped += both;
    times.exposed += exposed;
    times.idle += w.end - w.start - busy - exposed;
  }
  add_program(rank, times);
  out.times.push_back(std::move(times));
}

void Inspector::Impl::add_program(const RankTrace& rank, RankTimes& times) {
  Findings findings;
  const auto program = build_rank_program(rank, 0, findings);
  if (!program) return;
  for (const Finding& f : findings.rows()) {
    // The import tells of work without launches already.
    if (f.id == "work-without-launch") continue;
    out.findings.add(f.id, f.severity, f.first, f.advice, f.count);
  }
  times.edges = program->edges.size();
  times.inferred_edges = program->inferred_edges;
  times.host_time = program->host;
  out.edges += times.edges;
  out.inferred_edges += times.inferred_edges;
}

void Inspector::Impl::finish_steps() {
  StepTimes& steps = out.steps;
  steps.least = out.times.empty() ? 0 : UINT64_MAX;
  for (const RankTimes& times : out.times) {
    steps.per_rank = std::max(steps.per_rank, times.steps);
    steps.least = std::min(steps.least, times.steps);
  }
  if (steps.least != steps.per_rank) {
    out.findings.add("steps-differ", Severity::kWarning,
                     fmt::format("{} to {} steps per rank", steps.least, steps.per_rank),
                     "record all ranks over the same steps");
  }
  if (step_lengths.empty()) {
    if (out.operations > 0 &&
        out.findings.count("no-steps") == 0) {  // the import tells it per rank
      out.findings.add("no-steps", Severity::kInfo, "no rank has steps",
                       "times are from the first to the last stream operation; record with "
                       "profiler.step() or name the steps at import");
    }
    return;
  }
  std::sort(step_lengths.begin(), step_lengths.end());
  double sum = 0;
  for (const Nanos length : step_lengths) sum += static_cast<double>(length);
  steps.mean = static_cast<Nanos>(std::llround(sum / static_cast<double>(step_lengths.size())));
  steps.p50 = quantile(step_lengths, 0.50);
  steps.p99 = quantile(step_lengths, 0.99);
}

void Inspector::Impl::finish_kernels() {
  for (uint32_t id = 0; id < kernels.size(); ++id) {
    if (kernels[id].count == 0) continue;
    out.kernels.push_back({strings.at(id), kernels[id].count, kernels[id].total});
  }
  std::sort(out.kernels.begin(), out.kernels.end(), [](const KernelTotal& a, const KernelTotal& b) {
    return a.total != b.total ? a.total > b.total : a.name < b.name;
  });
  if (out.kernels.size() > out.options.top_kernels) out.kernels.resize(out.options.top_kernels);
}

Inspector::Inspector(const pb::TraceHeader& header, const Strings& strings,
                     const std::vector<Communicator>& communicators,
                     const std::vector<RankId>& ranks, const InspectOptions& options)
    : impl_(new Impl{strings, CallMatching(communicators, ranks), {}, {}, {}, {}, false}) {
  impl_->kernels.resize(strings.size());
  Inspection& out = impl_->out;
  out.header = header;
  out.options = options;
  out.ranks = ranks;
  for (const pb::TraceFinding& f : header.findings()) {
    out.findings.add(f.id(), severity_from(f.severity()), f.first(), f.advice(), f.count());
  }
}
Inspector::Inspector(Inspector&&) noexcept = default;
Inspector& Inspector::operator=(Inspector&&) noexcept = default;
Inspector::~Inspector() = default;

void Inspector::add(const RankTrace& rank) {
  const Interval window = impl_->zoom(rank);
  ++impl_->out.gpus[rank.gpu_model.empty() ? "unknown" : rank.gpu_model];
  impl_->matching.add(rank, window);
  if (!impl_->out.options.rank || *impl_->out.options.rank == rank.rank) {
    impl_->add_operations(rank, window);
  }
}

Result<Inspection> Inspector::finish() {
  Inspection& out = impl_->out;
  if (out.options.rank &&
      !std::binary_search(out.ranks.begin(), out.ranks.end(), *out.options.rank)) {
    return fail(Code::kUsage, fmt::format("rank {} is not in this trace", *out.options.rank), {},
                fmt::format("recorded are ranks {}", format_ranks(out.ranks)));
  }
  if (out.options.step && !impl_->has_step) {
    const std::set<int64_t>& numbers = impl_->step_numbers;
    return fail(Code::kUsage, fmt::format("step {} is not in this trace", *out.options.step), {},
                numbers.empty()       ? "no steps were recorded"
                : numbers.size() == 1 ? fmt::format("recorded is step {}", *numbers.begin())
                                      : fmt::format("recorded are steps {} to {}", *numbers.begin(),
                                                    *numbers.rbegin()));
  }
  impl_->matching.finish(out);
  impl_->finish_steps();
  impl_->finish_kernels();
  return std::move(out);
}

Result<Inspection> inspect(const RtraceReader& reader, const InspectOptions& options,
                           Reporter& reporter) {
  Inspector inspector(reader.header(), reader.strings(), reader.communicators(), reader.ranks(),
                      options);
  const auto add = [&](RankTrace&& rank) -> Result<void> {
    inspector.add(rank);
    return {};
  };
  if (auto done = reader.for_each_rank(add, reporter); !done) return tl::unexpected(done.error());
  RH_TRY(Inspection out, inspector.finish());
  out.findings.merge(reader.findings());
  out.evidence = reader.evidence();
  return out;
}

Result<Inspection> inspect(const Trace& trace, const InspectOptions& options) {
  std::vector<RankId> ranks;
  for (const RankTrace& rank : trace.ranks) ranks.push_back(rank.rank);
  Inspector inspector(trace.header, trace.strings, trace.communicators, ranks, options);
  for (const RankTrace& rank : trace.ranks) inspector.add(rank);
  RH_TRY(Inspection out, inspector.finish());
  out.evidence = trace.evidence;
  return out;
}

}  // namespace rehearse::traces
