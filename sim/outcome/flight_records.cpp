// SPDX-License-Identifier: Apache-2.0
#include "sim/outcome/flight_records.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/finding.hpp"
#include "base/text.hpp"
#include "sim/nccl/version.hpp"
#include "sim/outcome/expiry.hpp"
#include "sim/scenario/environment.hpp"
#include "sim/timers/settings.hpp"

namespace rehearse::sim {
namespace {

const char* torch_type(traces::DType type) {
  switch (type) {
    case traces::DType::kFp16:
      return "Half";
    case traces::DType::kBf16:
      return "BFloat16";
    case traces::DType::kFp64:
      return "Double";
    case traces::DType::kInt64:
      return "Long";
    case traces::DType::kInt32:
      return "Int";
    case traces::DType::kInt8:
      return "Char";
    case traces::DType::kUint8:
      return "Byte";
    default:
      return "Float";
  }
}

TorchTimers torch_of(const pb::Launch& launch, const pb::RankLaunch& rank) {
  Findings unused;
  return timers_of(launch, environment_of(launch, rank), unused).torch;
}

// The seat of a rank; one without a setting of its own where the launch has none.
pb::RankLaunch seat_of(const pb::Launch& launch, uint32_t rank) {
  const auto seat = std::find_if(launch.ranks().begin(), launch.ranks().end(),
                                 [&](const pb::RankLaunch& each) { return each.rank() == rank; });
  return seat == launch.ranks().end() ? pb::RankLaunch() : *seat;
}

pb::FlightRecorder& add_recorder(const pb::Launch& launch, uint32_t rank, pb::Outcome& out) {
  pb::FlightRecorder& recorder = *out.add_flight_records();
  recorder.set_rank(rank);
  recorder.set_version("2.10");
  recorder.set_nccl_version(launch.nccl_version());
  return recorder;
}

// The process groups of a rank before its first call; indices in `out` by communicator.
std::map<size_t, int> add_groups(const std::vector<traces::Communicator>& communicators,
                                 traces::RankId rank, pb::FlightRecorder& out) {
  std::map<size_t, int> group_of;
  for (size_t c = 0; c < communicators.size(); ++c) {
    const auto& members = communicators[c].members;
    if (members.size() < 2 || std::find(members.begin(), members.end(), rank) == members.end()) {
      continue;
    }
    group_of[c] = out.groups_size();
    pb::FlightGroup& group = *out.add_groups();
    group.set_id(std::to_string(group_of[c]));
    group.set_name(communicators[c].id);
    group.set_description(communicators[c].description);
    for (const traces::RankId member : members) group.add_ranks(member);
    group.set_last_enqueued(-1);
    group.set_last_started(-1);
    group.set_last_completed(-1);
  }
  return group_of;
}

void add_tensor(int64_t elements, traces::DType type, pb::FlightTensor& out) {
  out.add_sizes(elements);
  out.set_dtype(torch_type(type));
}

// "nccl:all_reduce", "nccl:send 0->3", "nccl:recv 3<-0": numbers are places in the group, as PyTorch writes them.
std::string profiling_name(const traces::Call& call, traces::RankId rank,
                           const pb::FlightGroup& group) {
  std::string name = fmt::format("nccl:{}", name_of(call.collective));
  if (!traces::is_point_to_point(call.collective) || call.peer < 0) return name;
  const auto own = std::find(group.ranks().begin(), group.ranks().end(), rank);
  return fmt::format("{} {}{}{}", name, own - group.ranks().begin(),
                     call.collective == traces::Collective::kSend ? "->" : "<-", call.peer);
}

// A call that the host has put on its stream, and nothing more.
pb::FlightEntry scheduled_entry(const traces::Call& call, Nanos created, Nanos timeout,
                                traces::RankId rank, pb::FlightGroup& group) {
  const bool pair = traces::is_point_to_point(call.collective);
  const int64_t sequence = call.sequence + 1;  // PyTorch counts from 1
  pb::FlightEntry entry;
  entry.set_group_id(group.id());
  entry.set_group_name(group.name());
  entry.set_group_description(group.description());
  entry.set_collective_seq(pair ? 0 : sequence);
  entry.set_p2p_seq(pair ? sequence : 0);
  entry.set_op_id(sequence);
  entry.set_p2p(pair);
  entry.set_collective(name_of(call.collective));
  entry.set_profiling_name(profiling_name(call, rank, group));
  entry.set_created_ns(created);
  entry.set_timeout_ms(timeout / 1'000'000);
  entry.set_state("scheduled");
  const int64_t element = std::max(1, traces::size_of(call.dtype));
  add_tensor(call.bytes_in / element, call.dtype, *entry.add_inputs());
  add_tensor(call.bytes_out / element, call.dtype, *entry.add_outputs());
  if (!pair) group.set_last_enqueued(std::max(group.last_enqueued(), sequence));
  return entry;
}

// One rank's dump.
class RecordedRank {
 public:
  RecordedRank(const Evidence& evidence, uint32_t rank, Nanos until)
      : evidence_(evidence),
        rank_(evidence.program.ranks[rank]),
        arrival_(evidence.replayed.arrival[rank]),
        end_(evidence.replayed.end[rank]),
        until_(until) {}

  void fill(const TorchTimers& torch, pb::FlightRecorder& out) {
    group_of_ = add_groups(evidence_.program.communicators, rank_.rank, out);
    std::vector<pb::FlightEntry> entries;
    for (size_t c = 0; c < rank_.calls.size(); ++c) {
      const Nanos created = created_at(c);
      if (created < 0) continue;
      entries.push_back(entry_of(c, created, torch.timeout, out));
    }
    std::stable_sort(entries.begin(), entries.end(),
                     [](const auto& a, const auto& b) { return a.created_ns() < b.created_ns(); });
    out.set_entries_total(entries.size());
    const size_t first =
        entries.size() - std::min(entries.size(), static_cast<size_t>(torch.records));
    for (size_t i = first; i < entries.size(); ++i) {
      entries[i].set_record_id(static_cast<int64_t>(i));
      *out.add_entries() = std::move(entries[i]);
    }
  }

 private:
  [[nodiscard]] bool done(Nanos time) const { return time >= 0 && time <= until_; }

  // When the host put it on its stream: the last of the host operations before it.
  [[nodiscard]] Nanos created_at(size_t c) const {
    if (group_of_.count(rank_.calls[c].communicator) == 0) return -1;
    const traces::OpId op = rank_.call_op[c];
    Nanos when = -1;
    for (const traces::OpId before : rank_.predecessors(op)) {
      if (rank_.on_gpu(rank_.lane_of(before))) continue;
      if (!done(end_[before])) return -1;
      when = std::max(when, end_[before]);
    }
    if (when >= 0) return when;
    return done(arrival_[c]) ? arrival_[c] : -1;
  }

  pb::FlightEntry entry_of(size_t c, Nanos created, Nanos timeout, pb::FlightRecorder& out) {
    const traces::Call& call = rank_.calls[c];
    pb::FlightGroup& group = *out.mutable_groups(group_of_[call.communicator]);
    pb::FlightEntry entry = scheduled_entry(call, created, timeout, rank_.rank, group);
    const Nanos end = end_[rank_.call_op[c]];
    const bool started = done(arrival_[c]), completed = done(end);
    entry.set_state(completed ? "completed" : started ? "started" : "scheduled");
    entry.set_retired(completed);
    if (started) entry.set_started_ns(arrival_[c]);
    if (completed) {
      entry.set_completed_ns(end);
      entry.set_duration_ms(static_cast<double>(end - arrival_[c]) / 1e6);
    }
    if (!entry.p2p()) {
      const int64_t sequence = entry.collective_seq();
      if (started) group.set_last_started(std::max(group.last_started(), sequence));
      if (completed) group.set_last_completed(std::max(group.last_completed(), sequence));
    }
    return entry;
  }

  const Evidence& evidence_;
  const traces::RankProgram& rank_;
  const std::vector<Nanos>& arrival_;
  const OpTimes& end_;
  Nanos until_;
  std::map<size_t, int> group_of_;  // by communicator
};

bool is_gone(const Evidence& evidence, uint32_t rank, Nanos until) {
  const auto& stopped = evidence.schedule.stopped;
  return std::any_of(stopped.begin(), stopped.end(), [&](const StoppedRank& each) {
    return each.rank == rank && each.at <= until;
  });
}

}  // namespace

void fill_flight_records(const Scenario& scenario, const Evidence& evidence, Nanos until,
                         pb::Outcome& out) {
  const pb::Launch& launch = scenario.document.launch();
  for (uint32_t r = 0; r < evidence.program.ranks.size(); ++r) {
    const uint32_t rank = evidence.program.ranks[r].rank;
    const TorchTimers torch = torch_of(launch, seat_of(launch, rank));
    if (torch.records == 0 || is_gone(evidence, rank, until)) continue;
    RecordedRank(evidence, r, until).fill(torch, add_recorder(launch, rank, out));
  }
}

void fill_first_calls(const Scenario& scenario, pb::Outcome& out) {
  const pb::Launch& launch = scenario.document.launch();
  for (const pb::RankBringUp& row : out.bring_up().ranks()) {
    const auto& ranks = scenario.trace->ranks;
    const auto rank = std::find_if(ranks.begin(), ranks.end(), [&](const traces::RankTrace& each) {
      return each.rank == row.rank();
    });
    const TorchTimers torch = torch_of(launch, seat_of(launch, row.rank()));
    if (rank == ranks.end() || torch.records == 0) continue;
    pb::FlightRecorder& recorder = add_recorder(launch, row.rank(), out);
    const std::map<size_t, int> groups =
        add_groups(scenario.trace->communicators, rank->rank, recorder);
    const auto call =
        std::find_if(rank->ops.calls.begin(), rank->ops.calls.end(),
                     [&](const traces::Call& each) { return groups.count(each.communicator) > 0; });
    if (call == rank->ops.calls.end()) continue;
    pb::FlightGroup& group = *recorder.mutable_groups(groups.at(call->communicator));
    pb::FlightEntry& entry = *recorder.add_entries();
    entry = scheduled_entry(*call, row.since_ns(), torch.timeout, rank->rank, group);
    // Its kernel runs and waits for data.
    entry.set_state("started");
    entry.set_started_ns(row.since_ns());
    if (!entry.p2p()) group.set_last_started(entry.collective_seq());
    recorder.set_entries_total(1);
  }
}

bool dumps_records(const pb::Launch& launch, const pb::Outcome& outcome) {
  if (launch.framework() != pb::PYTORCH) return false;
  const bool expired =
      std::any_of(outcome.timers().begin(), outcome.timers().end(),
                  [](const pb::TimerEvent& timer) { return timer.timer() == "watchdog"; });
  return expired &&
         std::any_of(launch.ranks().begin(), launch.ranks().end(), [&](const pb::RankLaunch& rank) {
           return torch_of(launch, rank).records > 0;
         });
}

void add_health_report(const Scenario& scenario, const Evidence& evidence, pb::Outcome& out) {
  const pb::Launch& launch = scenario.document.launch();
  const auto version = parse_nccl_version(launch.nccl_version());
  const auto enabled = launch.env().find("NCCL_RAS_ENABLE");
  if (!version || *version < NcclVersion{2, 24, 0} ||
      (enabled != launch.env().end() && enabled->second == "0")) {
    return;
  }
  // Counted by NCCL, whatever PyTorch records.
  pb::Outcome counters;
  for (uint32_t r = 0; r < evidence.program.ranks.size(); ++r) {
    const uint32_t rank = evidence.program.ranks[r].rank;
    if (is_gone(evidence, rank, INT64_MAX)) continue;
    RecordedRank(evidence, r, INT64_MAX).fill({}, add_recorder(launch, rank, counters));
  }
  std::map<std::string, std::map<int64_t, std::vector<uint32_t>>> launched;  // by communicator
  for (const pb::FlightRecorder& recorder : counters.flight_records()) {
    for (const pb::FlightGroup& group : recorder.groups()) {
      launched[group.name()][std::max<int64_t>(0, group.last_enqueued())].push_back(
          recorder.rank());
    }
  }
  for (const auto& [name, counts] : launched) {
    if (counts.size() < 2) continue;
    std::string text;
    for (const auto& [count, ranks] : counts) {
      text += fmt::format("{}{} rank{} ({}) {} launched up to operation {}",
                          text.empty() ? "" : ", ", ranks.size(), ranks.size() == 1 ? "" : "s",
                          format_ranks(ranks), ranks.size() == 1 ? "has" : "have", count);
    }
    pb::OutcomeFinding& finding = *out.add_findings();
    finding.set_id("nccl-ras");
    finding.set_severity(name_of(Severity::kInfo));
    finding.set_count(1);
    finding.set_first(fmt::format("{}: {}", name, text));
    finding.set_advice("what ncclras prints of the hung job; those behind are waited for");
  }
}

}  // namespace rehearse::sim
