// SPDX-License-Identifier: Apache-2.0
#include "validation/straggler_replay.hpp"

#include <algorithm>

namespace rehearse::validation {
namespace {

// Calls whose recorded starts lie closer are one exchange: times are rounded.
constexpr Nanos kTogether = 10'000;

MeetingKey key_of(const traces::Trace& trace, const traces::RankTrace& rank,
                  const traces::Call& call) {
  MeetingKey key{call.communicator, -1, -1, call.sequence};
  if (!traces::is_point_to_point(call.collective)) return key;
  const auto& members = trace.communicators[call.communicator].members;
  const auto own =
      static_cast<int32_t>(std::find(members.begin(), members.end(), rank.rank) - members.begin());
  const bool sends = call.collective == traces::Collective::kSend;
  key.from = sends ? own : call.peer;
  key.to = sends ? call.peer : own;
  return key;
}

std::vector<RecordedUnit> units_of(const traces::Trace& trace, const traces::RankTrace& rank,
                                   const traces::Step& step) {
  std::vector<RecordedUnit> out;
  const auto& ops = rank.ops;
  for (size_t i = 0; i < ops.size(); ++i) {
    const bool work = ops.kind[i] == traces::OpKind::kKernel;
    const traces::Call* call = ops.call(i);
    if ((!work && call == nullptr) || ops.start[i] < step.start || ops.start[i] >= step.end) {
      continue;
    }
    RecordedUnit unit{
        ops.start[i] - step.start, ops.start[i] + ops.duration[i] - step.start, ops.name[i], {}};
    if (call != nullptr) {
      const RecordedCall one{key_of(trace, rank, *call), ops.name[i]};
      if (!out.empty() && !out.back().calls.empty() && unit.start - out.back().start < kTogether) {
        out.back().calls.push_back(one);
        out.back().end = std::max(out.back().end, unit.end);
        continue;
      }
      unit.calls.push_back(one);
    }
    out.push_back(std::move(unit));
  }
  return out;
}

Nanos percentile(std::vector<Nanos> values, double share) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size()));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<size_t>(at)];
}

}  // namespace

Nanos RecordedStep::measured() const {
  Nanos end = 0;
  for (const auto& worker : workers) {
    for (const RecordedUnit& unit : worker) end = std::max(end, unit.end);
  }
  return end;
}

Result<std::vector<RecordedStep>> recorded_steps(const traces::Trace& trace) {
  size_t steps = SIZE_MAX;
  for (const traces::RankTrace& rank : trace.ranks) steps = std::min(steps, rank.steps.size());
  if (trace.ranks.empty() || steps == 0) {
    return fail(Code::kBadInput, "the trace has no steps", "", "record with profiler steps");
  }
  std::vector<RecordedStep> out(steps);
  for (size_t s = 0; s < steps; ++s) {
    for (const traces::RankTrace& rank : trace.ranks) {
      out[s].workers.push_back(units_of(trace, rank, rank.steps[s]));
    }
  }
  return out;
}

StepCosts costs_of(const std::vector<RecordedStep>& steps) {
  std::map<uint32_t, std::vector<Nanos>> transfers;
  std::map<std::pair<size_t, uint32_t>, std::vector<Nanos>> gaps;
  for (const RecordedStep& step : steps) {
    std::map<MeetingKey, Nanos> last;
    for (const auto& worker : step.workers) {
      for (const RecordedUnit& unit : worker) {
        for (const RecordedCall& call : unit.calls) {
          Nanos& arrival = last.try_emplace(call.key, unit.start).first->second;
          arrival = std::max(arrival, unit.start);
        }
      }
    }
    for (size_t w = 0; w < step.workers.size(); ++w) {
      Nanos before = 0;
      for (const RecordedUnit& unit : step.workers[w]) {
        gaps[{w, unit.name}].push_back(std::max<Nanos>(0, unit.start - before));
        before = unit.end;
        Nanos arrival = 0;
        for (const RecordedCall& call : unit.calls) arrival = std::max(arrival, last[call.key]);
        for (const RecordedCall& call : unit.calls) {
          transfers[call.name].push_back(std::max<Nanos>(0, unit.end - arrival));
        }
      }
    }
  }
  StepCosts out;
  for (const auto& [name, times] : transfers) out.transfer[name] = percentile(times, .5);
  for (const auto& [where, times] : gaps) out.before[where] = percentile(times, .1);
  return out;
}

Result<Nanos> replayed(const RecordedStep& step, const StepCosts& costs, HostCosts host,
                       const std::map<uint32_t, Nanos>* work) {
  std::map<MeetingKey, size_t> expected, arrived;
  std::map<MeetingKey, Nanos> last;
  for (const auto& worker : step.workers) {
    for (const RecordedUnit& unit : worker) {
      for (const RecordedCall& call : unit.calls) ++expected[call.key];
    }
  }
  const size_t workers = step.workers.size();
  std::vector<size_t> at(workers, 0);
  std::vector<Nanos> now(workers, 0);
  std::vector<bool> waits(workers, false);
  const auto found = [](const auto& map, const auto& key) {
    const auto entry = map.find(key);
    return entry == map.end() ? Nanos{0} : entry->second;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t w = 0; w < workers; ++w) {
      while (at[w] < step.workers[w].size()) {
        const RecordedUnit& unit = step.workers[w][at[w]];
        if (!waits[w]) {
          if (host == HostCosts::kCounted) now[w] += found(costs.before, std::pair{w, unit.name});
          moved = true;
          if (unit.calls.empty()) {
            now[w] += work != nullptr ? found(*work, unit.name) : unit.end - unit.start;
            ++at[w];
            continue;
          }
          waits[w] = true;
          for (const RecordedCall& call : unit.calls) {
            ++arrived[call.key];
            Nanos& latest = last.try_emplace(call.key, now[w]).first->second;
            latest = std::max(latest, now[w]);
          }
        }
        const bool met = std::all_of(unit.calls.begin(), unit.calls.end(), [&](const auto& call) {
          return arrived[call.key] == expected[call.key];
        });
        if (!met) break;
        for (const RecordedCall& call : unit.calls) {
          now[w] = std::max(now[w], last[call.key] + found(costs.transfer, call.name));
        }
        waits[w] = false;
        ++at[w];
        moved = true;
      }
    }
  }
  for (size_t w = 0; w < workers; ++w) {
    if (at[w] < step.workers[w].size()) {
      return fail(Code::kBadInput, "calls of the recorded step never meet", "",
                  "the recording is not complete");
    }
  }
  return *std::max_element(now.begin(), now.end());
}

std::map<uint32_t, Nanos> mean_work(const std::vector<RecordedStep>& steps) {
  std::map<uint32_t, std::pair<Nanos, int64_t>> sums;
  for (const RecordedStep& step : steps) {
    for (const auto& worker : step.workers) {
      for (const RecordedUnit& unit : worker) {
        if (!unit.calls.empty()) continue;
        auto& [sum, count] = sums[unit.name];
        sum += unit.end - unit.start;
        ++count;
      }
    }
  }
  std::map<uint32_t, Nanos> out;
  for (const auto& [name, sum] : sums) out[name] = sum.first / sum.second;
  return out;
}

}  // namespace rehearse::validation
