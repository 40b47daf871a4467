// SPDX-License-Identifier: Apache-2.0
#include "traces/program/overhead.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "traces/program/evaluate.hpp"

namespace rehearse::traces {
namespace {

constexpr Nanos kMostOverhead = 100'000;  // per event; more is not the profiler's doing

Nanos step_with(Trace& trace, Nanos overhead) {
  for (RankTrace& rank : trace.ranks) {
    rank.env.erase(kOverheadVariable);
    if (overhead > 0) rank.env[kOverheadVariable] = std::to_string(overhead);
  }
  const auto program = build_program(trace);
  return program ? recorded_step(*program) : 0;
}

Nanos recorded_mean(const Trace& trace) {
  Nanos sum = 0, count = 0;
  for (const RankTrace& r : trace.ranks) {
    for (const Step& s : r.steps) {
      sum += s.end - s.start;
      ++count;
    }
  }
  return count == 0 ? 0 : sum / count;
}

}  // namespace

Nanos overhead_of(const RankTrace& rank) {
  const auto at = rank.env.find(kOverheadVariable);
  if (at == rank.env.end()) return 0;
  Nanos value = 0;
  const std::string& text = at->second;
  const auto [past, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && past == text.data() + text.size();
  return whole && value > 0 && value <= kMostOverhead ? value : 0;
}

void remove_overhead(Draft& d) {
  const Nanos per_event = overhead_of(d.rank);
  if (per_event <= 0) return;
  std::vector<Nanos> open(d.rank.lanes.size(), 0);  // by thread: cost of events since its last call
  for (size_t i = 0; i < d.ops.size(); ++i) {
    const LaneId lane = d.ops.lane[i];
    if (d.rank.lanes[lane].kind != LaneKind::kHostThread) continue;
    open[lane] += per_event;
    const OpId op = d.position[i];
    if (op == kNoOp) continue;
    Nanos& gap = d.out.gap[op];
    Nanos& duration = d.out.duration[op];
    const Nanos from_gap = std::min(gap, open[lane]);
    gap -= from_gap;
    duration -= std::min(duration, std::min(per_event, open[lane] - from_gap));
    open[lane] = 0;
  }
}

void fit_overhead(Trace& trace, Nanos unprofiled, Findings& findings) {
  const Nanos recorded = recorded_mean(trace), whole = step_with(trace, 0);
  if (recorded <= 0 || whole <= 0) {
    findings.add("unprofiled-step-unused", Severity::kWarning, "no step could be evaluated",
                 "the trace has no steps, or its order contradicts itself");
    return;
  }
  const std::string times = fmt::format("recorded {}, unprofiled {}", format_duration(recorded),
                                        format_duration(unprofiled));
  if (unprofiled >= recorded) {
    findings.add("unprofiled-step-longer", Severity::kWarning, times,
                 "the profiled steps are not slower, so nothing is taken out");
    return;
  }
  // The evaluation need not hit the recorded step exactly; what is fitted is the ratio.
  const auto target = static_cast<Nanos>(
      static_cast<double>(whole) * static_cast<double>(unprofiled) / static_cast<double>(recorded));
  Nanos low = 0, high = kMostOverhead;
  while (high - low > 1) {
    const Nanos middle = low + (high - low) / 2;
    (step_with(trace, middle) > target ? low : high) = middle;
  }
  const Nanos reached = step_with(trace, high);
  const auto predicted = static_cast<Nanos>(
      static_cast<double>(recorded) * static_cast<double>(reached) / static_cast<double>(whole));
  if (predicted > unprofiled + unprofiled / 50) {
    findings.add(
        "unprofiled-step-not-reached", Severity::kWarning,
        fmt::format("{}; without any host overhead {}", times, format_duration(predicted)),
        "the profiler's work on host threads does not explain the difference; the GPU or the "
        "network was slower too");
  }
  // More per event changes nothing once host lanes no longer hold the step up.
  low = 0;
  Nanos least = high;
  while (least - low > 1) {
    const Nanos middle = low + (least - low) / 2;
    (step_with(trace, middle) > reached ? low : least) = middle;
  }
  step_with(trace, least);
  findings.add("profiler-overhead", Severity::kWarning,
               fmt::format("{}: {} per recorded host event", times, format_duration(least)),
               "taken out of host threads when the trace is replayed");
}

}  // namespace rehearse::traces
