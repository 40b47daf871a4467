// SPDX-License-Identifier: Apache-2.0
#include "validation/replay_check.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "sim/outcome/outcome.hpp"
#include "sim/simulate.hpp"
#include "sim/worker.hpp"

namespace rehearse::validation {
namespace {

using sim::Evidence;
using traces::OpId;
using traces::OpKind;
using traces::RankProgram;
using traces::RankTrace;
using Json = nlohmann::json;

// Operations of a recorded lane that the program has too.
bool is_work(OpKind kind) {
  return kind != OpKind::kHost && kind != OpKind::kAnnotation && kind != OpKind::kMemory;
}

// Recorded operation behind each one of the program; empty when they do not match.
std::optional<std::vector<size_t>> recorded_of(const RankTrace& trace, const RankProgram& program) {
  std::vector<std::vector<size_t>> lanes(trace.lanes.size());
  for (size_t i = 0; i < trace.ops.size(); ++i) {
    if (is_work(trace.ops.kind[i])) lanes[trace.ops.lane[i]].push_back(i);
  }
  std::vector<size_t> out;
  for (const auto& lane : lanes) out.insert(out.end(), lane.begin(), lane.end());
  if (out.size() != program.size()) return std::nullopt;
  for (OpId op = 0; op < out.size(); ++op) {
    if (trace.ops.kind[out[op]] != program.kind[op]) return std::nullopt;
  }
  return out;
}

class ReplayComparison {
 public:
  ReplayComparison(const sim::Scenario& scenario, const Evidence& evidence)
      : trace_(*scenario.trace), evidence_(evidence) {}

  Result<Json> make() {
    if (!evidence_.replayed.completed) {
      return fail(Code::kBadInput, "the replay of the trace as recorded does not complete", {},
                  "look at `rehearse run` of the trace: who waits for whom");
    }
    origin_ = INT64_MAX;
    for (const RankTrace& rank : trace_.ranks) {
      if (rank.ops.size() > 0) origin_ = std::min(origin_, rank.ops.start.front());
    }
    if (origin_ == INT64_MAX) {
      return fail(Code::kBadInput, "the trace has no operations to compare", {},
                  "record with the CUDA activity switched on");
    }
    Json steps = Json::array(), calls = Json::array();
    for (size_t r = 0; r < trace_.ranks.size(); ++r) {
      const auto recorded = recorded_of(trace_.ranks[r], evidence_.program.ranks[r]);
      if (!recorded) {
        return fail(Code::kInternal, "the program does not follow its trace",
                    "rank " + std::to_string(trace_.ranks[r].rank));
      }
      for (uint32_t s = 0; s < evidence_.program.steps; ++s) {
        steps.push_back({trace_.ranks[r].rank, s, measured(r, s), predicted(r, s, *recorded),
                         naive(r, s), waited(r, s)});
      }
      add_calls(r, *recorded, calls);
    }
    return Json{{"steps", steps}, {"calls", calls}};
  }

 private:
  [[nodiscard]] Nanos measured(size_t r, uint32_t s) const {
    return trace_.ranks[r].steps[s].end - trace_.ranks[r].steps[s].start;
  }

  // A step is what its annotation spans: what its host threads do, with the same lead and tail as recorded.
  [[nodiscard]] Nanos predicted(size_t r, uint32_t s, const std::vector<size_t>& recorded) const {
    const RankProgram& rank = evidence_.program.ranks[r];
    const sim::OpTimes& end = evidence_.replayed.end[r];
    const traces::Operations& ops = trace_.ranks[r].ops;
    Nanos first_was = INT64_MAX, first_is = 0, last_was = INT64_MIN, last_is = 0;
    for (traces::LaneId l = 0; l < rank.lanes.size(); ++l) {
      if (rank.on_gpu(l)) continue;
      const OpId* begin = &rank.step_begin[size_t{l} * (evidence_.program.steps + 1)];
      for (OpId op = begin[s]; op < begin[s + 1]; ++op) {
        const Nanos was = ops.start[recorded[op]];
        const Nanos ended = was + ops.duration[recorded[op]];
        if (was < first_was) {
          first_was = was;
          first_is = end[op] - rank.duration[op];
        }
        if (ended > last_was) {
          last_was = ended;
          last_is = end[op];
        }
      }
    }
    if (last_was < first_was) return measured(r, s);
    return measured(r, s) - (last_was - first_was) + (last_is - first_is);
  }

  [[nodiscard]] Nanos waited(size_t r, uint32_t s) const {
    const RankProgram& rank = evidence_.program.ranks[r];
    const sim::OpTimes& end = evidence_.replayed.end[r];
    Nanos sum = 0;
    for (traces::LaneId l = 0; l < rank.lanes.size(); ++l) {
      if (rank.on_gpu(l)) continue;
      const OpId* begin = &rank.step_begin[size_t{l} * (evidence_.program.steps + 1)];
      for (OpId op = begin[s]; op < begin[s + 1]; ++op) {
        Nanos ready = op > rank.lane_begin[l] ? end[op - 1] : 0, released = 0;
        for (OpId before : rank.predecessors(op)) {
          Nanos& latest = rank.on_gpu(rank.lane_of(before)) ? released : ready;
          latest = std::max(latest, end[before]);
        }
        sum += std::max<Nanos>(0, released - ready);
      }
    }
    return sum;
  }

  // The longest stream, kernel after kernel; transfers as the model has them, without any wait.
  [[nodiscard]] Nanos naive(size_t r, uint32_t s) const {
    const RankProgram& rank = evidence_.program.ranks[r];
    Nanos longest = 0;
    for (traces::LaneId l = 0; l < rank.lanes.size(); ++l) {
      if (!rank.on_gpu(l)) continue;
      const OpId* begin = &rank.step_begin[size_t{l} * (evidence_.program.steps + 1)];
      Nanos sum = 0;
      for (OpId op = begin[s]; op < begin[s + 1]; ++op) {
        if (rank.call[op] == traces::kNoCall) {
          sum += rank.duration[op];
        } else {
          const auto& meeting =
              evidence_.replayed.meetings[evidence_.replayed.meeting_of[r][rank.call[op]]];
          sum += meeting.end - meeting.last_arrival;
        }
      }
      longest = std::max(longest, sum);
    }
    return longest;
  }

  void add_calls(size_t r, const std::vector<size_t>& recorded, Json& out) const {
    const RankProgram& rank = evidence_.program.ranks[r];
    const traces::Operations& ops = trace_.ranks[r].ops;
    for (size_t c = 0; c < rank.calls.size(); ++c) {
      const traces::Call& call = rank.calls[c];
      const OpId op = rank.call_op[c];
      const Nanos start = ops.start[recorded[op]] - origin_;
      out.push_back({evidence_.program.communicators[call.communicator].id,
                     traces::name_of(call.collective), call.sequence, rank.rank,
                     std::max(call.bytes_in, call.bytes_out), start,
                     start + ops.duration[recorded[op]], evidence_.replayed.arrival[r][c],
                     evidence_.replayed.end[r][op]});
    }
  }

  const traces::Trace& trace_;
  const Evidence& evidence_;
  Nanos origin_ = 0;
};

}  // namespace

Result<ReplayReport> check_replay(const sim::Scenario& scenario, Reporter& reporter) {
  RH_TRY(const std::string bytes,
         sim::in_child(
             [&](Reporter& inner) -> Result<std::string> {
               Result<Json> compared = fail(Code::kInternal, "nothing was replayed");
               const auto look = [&](const Evidence& evidence) {
                 compared = evidence.program.steps == 0
                                ? fail(Code::kBadInput, "the trace has no steps to compare", {},
                                       "record with profiler steps")
                                : ReplayComparison(scenario, evidence).make();
               };
               if (auto done = sim::replay_here(scenario, inner, look); !done) {
                 return tl::unexpected(done.error());
               }
               if (!compared) return tl::unexpected(compared.error());
               // Names of others need not be UTF-8.
               return compared->dump(-1, ' ', false, Json::error_handler_t::replace);
             },
             reporter));
  const Json json = Json::parse(bytes, nullptr, false);
  if (json.is_discarded()) return fail(Code::kInternal, "the comparison could not be read");
  ReplayReport report;
  report.platform = scenario.document.platform().name();
  for (const Json& row : json["steps"]) {
    report.steps.push_back({row[0], row[1], row[2], row[3], row[4], row[5]});
  }
  for (const Json& row : json["calls"]) {
    report.calls.push_back(
        {row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7], row[8]});
    report.largest = std::max(report.largest, report.calls.back().bytes);
  }
  std::stable_sort(report.steps.begin(), report.steps.end(),
                   [](const RankStep& a, const RankStep& b) {
                     return std::tie(a.step, a.rank) < std::tie(b.step, b.rank);
                   });
  // Members of one call stand together, calls in the order of their ends.
  std::map<std::tuple<std::string, std::string, int64_t>, Nanos> ends;
  const auto key = [](const CallTimes& call) {
    const bool pair = call.collective == "send" || call.collective == "recv";
    return std::make_tuple(call.communicator, pair ? call.collective : std::string(),
                           call.sequence);
  };
  for (const CallTimes& call : report.calls) {
    Nanos& end = ends[key(call)];
    end = std::max(end, call.measured_end);
  }
  std::stable_sort(report.calls.begin(), report.calls.end(),
                   [&](const CallTimes& a, const CallTimes& b) {
                     return std::make_tuple(ends[key(a)], key(a), a.rank) <
                            std::make_tuple(ends[key(b)], key(b), b.rank);
                   });
  return report;
}

bool predicts_steps(const ReplayReport& report) {
  return std::any_of(report.steps.begin(), report.steps.end(),
                     [](const RankStep& step) { return step.waited > 0; });
}

std::vector<double> step_errors(const ReplayReport& report, Nanos RankStep::*what) {
  std::vector<double> errors;
  for (const RankStep& step : report.steps) {
    if (step.measured <= 0) continue;
    errors.push_back(std::abs(static_cast<double>(step.*what - step.measured)) /
                     static_cast<double>(step.measured));
  }
  std::sort(errors.begin(), errors.end());
  return errors;
}

}  // namespace rehearse::validation
