// SPDX-License-Identifier: Apache-2.0
#include "faults/lessons/evidence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "base/document.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "faults/diagnose/job_logs.hpp"
#include "sim/bringup/nccl_log.hpp"
#include "sim/scenario/environment.hpp"
#include "sim/scenario/scenario.hpp"
#include "traces/export/flight_recorder.hpp"

namespace rehearse::faults {
namespace {

constexpr int64_t kLater = std::numeric_limits<int64_t>::max();

// A text with the ranks that show it, and when the first of them did.
struct Said {
  int64_t time_ns = kLater;
  std::string text;
  std::vector<uint32_t> ranks;
};

void add(std::vector<Said>& all, int64_t time_ns, uint32_t rank, const std::string& text) {
  if (text.empty()) return;
  for (Said& each : all) {
    if (each.text != text) continue;
    if (std::find(each.ranks.begin(), each.ranks.end(), rank) == each.ranks.end())
      each.ranks.push_back(rank);
    each.time_ns = std::min(each.time_ns, time_ns);
    return;
  }
  all.push_back({time_ns, text, {rank}});
}

std::string screen(const pb::Outcome& outcome) {
  std::vector<Said> all;
  for (const pb::TimerEvent& timer : outcome.timers()) {
    add(all, timer.time_ns(), timer.rank(), timer.text());
  }
  for (const pb::RankBringUp& rank : outcome.bring_up().ranks()) {
    if (rank.has_gives_up_ns()) add(all, rank.gives_up_ns(), rank.rank(), rank.text());
  }
  for (const pb::ErrorText& error : outcome.error_text()) {
    // Of the others it is only known that they follow.
    const bool first = error.rank() == outcome.first_failure().rank();
    add(all, first ? outcome.first_failure().time_ns() : kLater, error.rank(), error.text());
  }
  if (all.empty()) {
    return fmt::format("# {} ranks printed nothing out of the ordinary\n", outcome.ranks());
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Said& a, const Said& b) { return a.time_ns < b.time_ns; });
  std::string out = "# what ranks printed, by the time of the first\n";
  for (Said& each : all) {
    std::sort(each.ranks.begin(), each.ranks.end());
    out += fmt::format("\n[{}] rank {}\n  {}\n",
                       each.time_ns == kLater ? "later" : format_duration(each.time_ns),
                       format_ranks(each.ranks), fmt::join(split(each.text, '\n'), "\n  "));
  }
  return out;
}

// Share of a step in which a kernel is on the GPU; NCCL's spin while they wait.
double utilisation(const pb::RankBreakdown& rank) {
  return rank.step() > 0
             ? static_cast<double>(rank.compute() + rank.communication() + rank.wait()) /
                   static_cast<double>(rank.step())
             : 0;
}

std::string gpus(const sim::Scenario& job, const pb::Outcome& outcome) {
  std::string out =
      "# as nvidia-smi would show it: memory at its peak, utilisation over the whole steps\n"
      "node    GPU  model                        rank  memory                GPU-Util  PCIe       "
      "NVLinks\n";
  for (const pb::RankLaunch& rank : job.document.launch().ranks()) {
    const pb::Node& node = job.document.platform().nodes(static_cast<int>(rank.node()));
    const pb::Gpu& gpu = node.gpus(static_cast<int>(rank.gpu()));
    std::string memory = "-", busy = "-";
    for (const pb::RankMemory& each : outcome.memory().ranks()) {
      if (each.rank() == rank.rank())
        memory = format_bytes(each.peak()) + " / " + format_bytes(each.capacity());
    }
    for (const pb::RankBreakdown& each : outcome.breakdown()) {
      if (each.rank() == rank.rank()) busy = fmt::format("{:.0f} %", 100 * utilisation(each));
    }
    const bool waits = std::any_of(
        outcome.waits().begin(), outcome.waits().end(),
        [&](const auto& w) { return w.rank() == rank.rank() && !w.communicator().empty(); });
    if (waits) busy = "100 %";
    out += fmt::format("{:<7} {:>3}  {:<28} {:>4}  {:<20}  {:>8}  gen{} x{:<3}  {}\n", node.name(),
                       rank.gpu(), gpu.model(), rank.rank(), memory, busy, gpu.pcie().generation(),
                       gpu.pcie().width(), gpu.nvlink().links());
  }
  return out;
}

// How often a patch that holds for some time has begun by the end of the run.
int64_t times_begun(const pb::Patch& patch, int64_t end_ns) {
  if (patch.from() >= end_ns) return 0;
  return patch.every() > 0 ? 1 + (end_ns - 1 - patch.from()) / patch.every() : 1;
}

// By node and port: how often the link was lost.
using LinksLost = std::map<std::pair<int, int>, int64_t>;

Result<LinksLost> links_lost(const sim::Scenario& job, int64_t end_ns) {
  LinksLost lost;
  for (const pb::Patch& patch : job.timed) {
    pb::Scenario during = job.document;
    for (const auto& [path, value] : sim::sorted_assignments(patch.set())) {
      if (auto set = set_path(during, path, value); !set) return tl::unexpected(set.error());
    }
    for (int n = 0; n < during.platform().nodes_size(); ++n) {
      const auto &before = job.document.platform().nodes(n).nics(),
                 &after = during.platform().nodes(n).nics();
      for (int i = 0; i < after.size(); ++i) {
        if (after[i].down() && !before[i].down()) lost[{n, i}] += times_begun(patch, end_ns);
      }
    }
  }
  return lost;
}

std::string ports(const sim::Scenario& job, const LinksLost& lost) {
  std::string out =
      "# as ibstat and the counters of the ports would show it after the run\n"
      "node    port      state   rate        MTU   link downed\n";
  for (int n = 0; n < job.document.platform().nodes_size(); ++n) {
    const pb::Node& node = job.document.platform().nodes(n);
    for (int i = 0; i < node.nics_size(); ++i) {
      const pb::Nic& nic = node.nics(i);
      const auto times = lost.find({n, i});
      out += fmt::format("{:<7} {:<9} {:<7} {:<11} {:<5} {}\n", node.name(), nic.name(),
                         nic.down() ? "Down" : "Active",
                         fmt::format("{:.0f} Gb/s", nic.bandwidth() * 8 / 1e9), nic.mtu(),
                         times == lost.end() ? 0 : times->second);
    }
  }
  return out;
}

std::string steps(const pb::Outcome& outcome) {
  std::string out = "# step times of the run, then where a step of each rank goes (mean)\n";
  for (const int64_t step : outcome.step_time_ns().each()) out += format_duration(step) + "\n";
  out += fmt::format("\n{:>4}  {:>10} {:>14} {:>10} {:>10} {:>10}\n", "rank", "compute",
                     "communication", "waiting", "host", "idle");
  for (const pb::RankBreakdown& rank : outcome.breakdown()) {
    out += fmt::format("{:>4}  {:>10} {:>14} {:>10} {:>10} {:>10}\n", rank.rank(),
                       format_duration(rank.compute()), format_duration(rank.communication()),
                       format_duration(rank.wait()), format_duration(rank.host()),
                       format_duration(rank.idle()));
  }
  return out;
}

}  // namespace

Result<std::map<std::string, std::string>> evidence_of(const sim::Scenario& job,
                                                       const pb::Outcome& outcome) {
  std::map<std::string, std::string> files;
  files["screen.txt"] = screen(outcome);
  files["gpus.txt"] = gpus(job, outcome);
  RH_TRY(const LinksLost lost, links_lost(job, outcome.end_ns()));
  files["ports.txt"] = ports(job, lost);
  if (outcome.breakdown_size() > 0) files["steps.txt"] = steps(outcome);
  RH_TRY(const auto logs, sim::bringup::nccl_logs(job));
  for (const auto& log : logs) files[fmt::format("nccl/rank-{}.log", log.rank)] = log.text;
  const std::set<uint32_t> silent = ranks_gone(job);
  for (const pb::FlightRecorder& recorder : outcome.flight_records()) {
    if (silent.count(recorder.rank()) > 0) continue;
    files[fmt::format("flight-recorder/nccl_trace_rank_{}.json", recorder.rank())] =
        traces::flight_recorder_json(recorder);
  }
  return files;
}

}  // namespace rehearse::faults
