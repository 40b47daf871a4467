// SPDX-License-Identifier: Apache-2.0
#include "cli/snapshot_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/outcome_text.hpp"
#include "cli/table.hpp"

namespace rehearse::cli {
namespace {

constexpr size_t kMostStateRows = 16;

// Rows that differ only in the rank are one, with all their ranks; in order of the first of them.
class RowsByRanks {
 public:
  void add(uint32_t rank, std::vector<std::string> cells) {
    std::string key = fmt::format("{}", fmt::join(cells, "\t"));
    const auto [at, fresh] = index_.emplace(std::move(key), rows_.size());
    if (fresh) rows_.push_back({{}, std::move(cells)});
    rows_[at->second].first.push_back(rank);
  }
  void print(Table& table) const {
    for (size_t i = 0; i < std::min(rows_.size(), kMostStateRows); ++i) {
      std::vector<std::string> cells = rows_[i].second;
      std::vector<uint32_t> ranks = rows_[i].first;
      std::ranges::sort(ranks);
      cells.insert(cells.begin(), format_ranks(ranks));
      table.add(std::move(cells));
    }
    if (rows_.size() > kMostStateRows) {
      table.add({fmt::format("and {} more", rows_.size() - kMostStateRows)});
    }
  }
  [[nodiscard]] bool empty() const { return rows_.empty(); }

 private:
  std::map<std::string, size_t> index_;
  std::vector<std::pair<std::vector<uint32_t>, std::vector<std::string>>> rows_;
};

std::vector<uint32_t> listed(const google::protobuf::RepeatedField<uint32_t>& list) {
  return {list.begin(), list.end()};
}

std::string state_head(const pb::Snapshot& snapshot, const Terminal& terminal) {
  std::set<uint32_t> in_call;
  size_t moving = 0, stopped = 0, done = 0;
  for (const pb::RankState& rank : snapshot.ranks()) {
    stopped += rank.stopped() ? 1 : 0;
    const auto& lanes = rank.lanes();
    done += !lanes.empty() && std::ranges::all_of(lanes, [](const pb::LaneState& lane) {
      return lane.state() == "done";
    });
    for (const pb::LaneState& lane : lanes) {
      if (lane.state() == "in-call") in_call.insert(rank.rank());
    }
  }
  for (const pb::FlowState& flow : snapshot.flows()) moving += flow.rate() > 0 ? 1 : 0;
  std::string out = fmt::format(
      "{} at {}: {} of {} ranks in a call, {} call{} open, {} flow{} moving", snapshot.scenario(),
      format_duration(snapshot.time_ns()), in_call.size(), snapshot.ranks_size(),
      snapshot.calls_size(), snapshot.calls_size() == 1 ? "" : "s", moving, moving == 1 ? "" : "s");
  if (done > 0) out += fmt::format(", {} done", done);
  if (stopped > 0) out += fmt::format(", {} no more", stopped);
  out = terminal.styled(Style::kBold, out) + "\n";
  Table table({{""}, {""}});
  for (const std::string& patch : snapshot.patches()) table.add({"  changed", patch});
  if (snapshot.ended() != pb::VERDICT_UNSPECIFIED) {
    table.add({"  over", fmt::format("{} at {}", verdict_name(snapshot.ended()),
                                     format_duration(snapshot.end_ns()))});
  }
  return out + table.text(terminal);
}

std::string lane_doing(const pb::LaneState& lane) {
  std::string out = lane.state();
  if (!lane.operation().empty()) {
    out += lane.state() == "gap" ? " before " + lane.operation() : " " + lane.operation();
  }
  if (!lane.waits_for().empty()) out += " for " + lane.waits_for();
  return out;
}

std::string lane_rows(const pb::Snapshot& snapshot, const Terminal& terminal) {
  RowsByRanks rows;
  for (const pb::RankState& rank : snapshot.ranks()) {
    if (!rank.bring_up().empty()) {
      rows.add(rank.rank(), {"start", rank.bring_up(), ""});
      continue;
    }
    for (const pb::LaneState& lane : rank.lanes()) {
      if (lane.operations() == 0) continue;
      rows.add(rank.rank(), {lane.lane(), lane_doing(lane),
                             fmt::format("{} of {}", lane.index(), lane.operations())});
    }
  }
  if (rows.empty()) return "";
  Table table({{"ranks"}, {"lane"}, {"state"}, {"operations done", Align::kRight}});
  rows.print(table);
  return "\n" + table.text(terminal);
}

std::string call_rows(const pb::Snapshot& snapshot, const Terminal& terminal) {
  if (snapshot.calls().empty()) return "";
  Table table({{"open call"},
               {"bytes", Align::kRight},
               {"state"},
               {"arrived"},
               {"first", Align::kRight},
               {"not arrived"},
               {"left"}});
  for (int i = 0; i < std::min<int>(kMostStateRows, snapshot.calls_size()); ++i) {
    const pb::OpenCall& call = snapshot.calls(i);
    std::vector<uint32_t> arrived;
    int64_t first = INT64_MAX;
    for (const pb::Arrived& who : call.arrived()) {
      arrived.push_back(who.rank());
      first = std::min(first, who.time_ns());
    }
    std::ranges::sort(arrived);
    table.add({fmt::format("{} {} on {}", call.operation(), call.sequence(), call.communicator()),
               format_bytes(call.bytes()), call.state(), format_ranks(arrived),
               format_duration(first), format_ranks(listed(call.missing())),
               format_ranks(listed(call.left()))});
  }
  std::string out = "\n" + table.text(terminal);
  for (const pb::OpenCall& call : snapshot.calls()) {
    if (call.why().empty()) continue;
    out += fmt::format("{} {} on {}: {}\n", call.operation(), call.sequence(), call.communicator(),
                       call.why());
  }
  return out;
}

std::string flow_rows(const pb::Snapshot& snapshot, const Terminal& terminal) {
  if (snapshot.flows().empty()) return "";
  Table table({{"flow of"},
               {"rate", Align::kRight},
               {"left", Align::kRight},
               {"of", Align::kRight},
               {"tightest link"}});
  for (int i = 0; i < std::min<int>(kMostStateRows, snapshot.flows_size()); ++i) {
    const pb::FlowState& flow = snapshot.flows(i);
    table.add({flow.of(), format_bandwidth(flow.rate()),
               format_bytes(static_cast<Bytes>(flow.left())),
               format_bytes(static_cast<Bytes>(flow.bytes())), flow.tightest()});
  }
  Table links({{"links in use"}, {"rate", Align::kRight}, {"share", Align::kRight}});
  for (int i = 0; i < std::min(5, snapshot.links_size()); ++i) {
    const pb::LinkState& link = snapshot.links(i);
    links.add({link.name(), format_bandwidth(link.rate()),
               link.capacity() > 0 ? fmt::format("{:.1f} %", 100 * link.rate() / link.capacity())
                                   : "down"});
  }
  return "\n" + table.text(terminal) + "\n" + links.text(terminal);
}

std::string timer_rows(const pb::Snapshot& snapshot, const Terminal& terminal) {
  RowsByRanks rows;
  for (const pb::TimerState& timer : snapshot.timers()) {
    rows.add(timer.rank(), {timer.timer(), timer.call(),
                            fmt::format("{} {}", timer.ran_out() ? "ran out at" : "runs out at",
                                        format_duration(timer.runs_out_ns()))});
  }
  if (rows.empty()) return "";
  Table table({{"ranks"}, {"timer"}, {"watches"}, {""}});
  rows.print(table);
  return "\n" + table.text(terminal);
}

std::string memory_rows(const pb::Snapshot& snapshot, const Terminal& terminal) {
  RowsByRanks rows;
  for (const pb::RankState& rank : snapshot.ranks()) {
    if (!rank.has_memory()) continue;
    rows.add(rank.rank(), {rank.step() < 0 ? "-" : fmt::format("{}", rank.step()),
                           format_bytes(rank.memory()), format_bytes(rank.memory_capacity())});
  }
  if (rows.empty()) return "";
  Table table({{"ranks"},
               {"step", Align::kRight},
               {"memory in use", Align::kRight},
               {"of", Align::kRight}});
  rows.print(table);
  return "\n" + table.text(terminal);
}

std::string event_rows(const pb::Snapshot& snapshot, const Terminal& terminal) {
  if (snapshot.events().empty()) return "";
  std::map<std::pair<int64_t, std::string>, std::vector<uint32_t>> rows;
  for (const pb::Happening& event : snapshot.events()) {
    rows[{event.time_ns(), event.what()}].push_back(event.rank());
  }
  Table table({{"on the way", Align::kRight}, {"ranks"}, {""}});
  size_t shown = 0;
  for (const auto& [key, ranks] : rows) {
    if (++shown > 2 * kMostStateRows) break;
    table.add({format_duration(key.first), format_ranks(ranks), key.second});
  }
  return "\n" + table.text(terminal);
}

std::string branch_rows(const pb::Snapshot& snapshot, const Terminal& terminal) {
  if (!snapshot.has_branch()) return "";
  const pb::Branch& branch = snapshot.branch();
  const auto line = [&](const pb::Outcome& outcome) {
    return fmt::format("{} at {}, {}", verdict_name(outcome.verdict()),
                       format_duration(outcome.end_ns()), step_text(outcome));
  };
  std::string out = "\n" + terminal.styled(Style::kBold, "from here on") + "\n";
  Table table({{""}, {""}});
  for (const std::string& patch : branch.patches()) table.add({"  with", patch});
  table.add({"  then", line(branch.outcome())});
  table.add({"  without", line(branch.without())});
  for (const pb::Culprit& culprit : branch.outcome().culprits()) {
    table.add({"  culprit", culprit.why()});
  }
  return out + table.text(terminal);
}

}  // namespace

std::string snapshot_text(const pb::Snapshot& snapshot, const Terminal& terminal) {
  return state_head(snapshot, terminal) + event_rows(snapshot, terminal) +
         lane_rows(snapshot, terminal) + call_rows(snapshot, terminal) +
         flow_rows(snapshot, terminal) + timer_rows(snapshot, terminal) +
         memory_rows(snapshot, terminal) + branch_rows(snapshot, terminal) +
         findings_text(snapshot.findings(), terminal);
}

}  // namespace rehearse::cli
