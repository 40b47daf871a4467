// SPDX-License-Identifier: Apache-2.0
#include "sim/outcome/expiry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <tuple>

#include "base/text.hpp"
#include "sim/horovod/fusion.hpp"
#include "sim/outcome/desync.hpp"
#include "sim/outcome/loads.hpp"
#include "sim/scenario/environment.hpp"
#include "sim/timers/settings.hpp"

namespace rehearse::sim {
namespace {

using traces::RankProgram;

constexpr Nanos kMillisecond = 1'000'000;
constexpr Nanos kSecond = 1'000'000'000;

// Where every rank runs and what its timers are.
struct Watched {
  RankTimers timers;
  uint32_t node = 0;
};

std::vector<Watched> watched(const Evidence& evidence, const pb::Launch& launch,
                             Findings& findings) {
  std::vector<Watched> out(evidence.program.ranks.size());
  for (const pb::RankLaunch& rank : launch.ranks()) {
    const int at = evidence.program.find(rank.rank());
    if (at < 0) continue;
    out[static_cast<size_t>(at)] = {timers_of(launch, environment_of(launch, rank), findings),
                                    rank.node()};
  }
  return out;
}

// When the host put a call on its stream.
Nanos enqueued(const RankProgram& rank, const OpTimes& end, OpId op, Nanos arrival) {
  Nanos when = -1;
  for (OpId before : rank.predecessors(op)) {
    if (!rank.on_gpu(rank.lane_of(before))) when = std::max(when, end[before]);
  }
  return when < 0 ? arrival : std::min(when, arrival);
}

std::string watchdog_text(const traces::Call& call, const TorchTimers& torch) {
  const int64_t element = std::max(1, traces::size_of(call.dtype));
  const Nanos ms = torch.timeout / kMillisecond;
  return fmt::format(
      "Watchdog caught collective operation timeout: WorkNCCL(SeqNum={}, OpType={}, NumelIn={}, "
      "NumelOut={}, Timeout(ms)={}) ran for {} milliseconds before timing out.",
      call.sequence + 1, op_type_of(name_of(call.collective)), call.bytes_in / element,
      call.bytes_out / element, ms, ms);
}

const char* action_of(const TorchTimers& torch) {
  if (torch.blocking_wait) return "raise";
  switch (torch.handling) {
    case ErrorHandling::kNone:
      return "none";
    case ErrorHandling::kCleanUpOnly:
      return "abort";
    case ErrorHandling::kTearDown:
    case ErrorHandling::kSkipCleanUp:
      break;
  }
  return "tear-down";
}

// The first call of each rank that its watchdog gives up.
void torch_watchdogs(const Evidence& evidence, const std::vector<Watched>& ranks,
                     std::vector<Expiry>& out) {
  const Replayed& replayed = evidence.replayed;
  for (uint32_t r = 0; r < ranks.size(); ++r) {
    const TorchTimers& torch = ranks[r].timers.torch;
    if (!torch.acts()) continue;
    const RankProgram& rank = evidence.program.ranks[r];
    Expiry first;
    first.time = kEndOfTime;
    const traces::Call* late = nullptr;
    for (size_t c = 0; c < rank.calls.size(); ++c) {
      const Nanos arrival = replayed.arrival[r][c];
      if (arrival < 0) continue;
      const OpId op = rank.call_op[c];
      const Nanos end = replayed.end[r][op];
      // Most calls are far from their limit: no need to look when they were enqueued.
      if (end >= 0 && end <= torch.timeout) continue;
      const Nanos when = enqueued(rank, replayed.end[r], op, arrival) + torch.timeout;
      if ((end >= 0 && end <= when) || when >= first.time) continue;
      first.time = when;
      first.meeting = replayed.meeting_of[r][c];
      late = &rank.calls[c];
    }
    if (late == nullptr) continue;
    first.rank = r;
    first.timer = "watchdog";
    first.text = watchdog_text(*late, torch);
    if (torch.desync_debug) first.text += desync_report(evidence, r, *late, first.time);
    first.action = action_of(torch);
    first.ends_job = true;
    out.push_back(first);
    if (torch.monitoring && !torch.blocking_wait && torch.handling == ErrorHandling::kTearDown) {
      Expiry monitor = first;
      // The monitor looks once in a period of its check with the other ranks.
      monitor.time += torch.dump_wait + torch.heartbeat + torch.coordination;
      monitor.timer = "heartbeat";
      monitor.text = fmt::format(
          "ProcessGroupNCCL's watchdog got stuck for {} seconds without making progress in "
          "monitoring "
          "enqueued collectives.",
          torch.heartbeat / kSecond);
      monitor.action = "tear-down";
      out.push_back(std::move(monitor));
    }
  }
}

// Members that had not submitted what the others had by `when`. Horovod matches tensors by name: a member that comes
// with another one is missing too.
std::vector<uint32_t> not_submitted(const Evidence& evidence, uint32_t id, Nanos when) {
  const Replayed& replayed = evidence.replayed;
  using What = std::tuple<int, Bytes, Bytes>;
  std::map<uint32_t, What> there;  // by rank
  std::map<What, size_t> parties;
  for (size_t r = 0; r < evidence.program.ranks.size(); ++r) {
    const RankProgram& rank = evidence.program.ranks[r];
    for (size_t c = 0; c < rank.calls.size(); ++c) {
      const Nanos arrival = replayed.arrival[r][c];
      if (replayed.meeting_of[r][c] != id || arrival < 0 || arrival > when) continue;
      const traces::Call& call = rank.calls[c];
      const What what{static_cast<int>(call.collective), call.bytes_in, call.bytes_out};
      there[rank.rank] = what;
      ++parties[what];
    }
  }
  const auto most =
      std::max_element(parties.begin(), parties.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  std::vector<uint32_t> missing;
  const uint32_t communicator = replayed.meetings[id].communicator;
  for (traces::RankId member : evidence.program.communicators[communicator].members) {
    const auto at = there.find(member);
    if (at == there.end() || at->second != most->first) missing.push_back(member);
  }
  return missing;
}

// The coordinator, rank 0, looks at tensors that some ranks have submitted and others have not: it speaks of the first that
// stalls, and of the first whose stall lasts. Buffers that ranks pack differently hold tensors that all have submitted.
void horovod_stalls(const Evidence& evidence, const std::vector<Watched>& ranks,
                    std::vector<Expiry>& out) {
  if (ranks.empty() || !ranks.front().timers.horovod.checks) return;
  const HorovodTimers& horovod = ranks.front().timers.horovod;
  if (horovod.warning <= 0) return;
  const Replayed& replayed = evidence.replayed;
  const Nanos patience = horovod.shutdown > 0 ? horovod.shutdown : kEndOfTime;
  const Meeting *stalled = nullptr, *lasting = nullptr;
  const auto first = [](const Meeting* best, const Meeting& meeting) {
    return best == nullptr || meeting.first_arrival < best->first_arrival ? &meeting : best;
  };
  for (const Meeting& meeting : replayed.meetings) {
    if (meeting.arrived == 0 || traces::is_point_to_point(meeting.call.collective)) continue;
    const bool complete = meeting.arrived >= meeting.expected && !meeting.mismatch;
    const Nanos waited = meeting.last_arrival - meeting.first_arrival;
    if (complete && waited <= horovod.warning) continue;
    stalled = first(stalled, meeting);
    if (!complete || waited > patience) lasting = first(lasting, meeting);
  }
  if (stalled == nullptr) return;
  const auto warn = [&](const Meeting& meeting) {
    const auto id = static_cast<uint32_t>(&meeting - replayed.meetings.data());
    Expiry warning;
    warning.time = meeting.first_arrival + horovod.warning;
    warning.meeting = id;
    warning.timer = "stall-check";
    warning.action = "warn";
    warning.text = fmt::format(
        "One or more tensors were submitted to be reduced, gathered or broadcasted by subset of "
        "ranks and are waiting for remainder of ranks for more than {} seconds. [missing ranks: "
        "{}]",
        horovod.warning / kSecond, fmt::join(not_submitted(evidence, id, warning.time), ", "));
    out.push_back(std::move(warning));
  };
  warn(*stalled);
  if (lasting == nullptr) return;
  if (lasting != stalled) warn(*lasting);
  if (horovod.shutdown <= 0) return;
  Expiry shutdown = out.back();
  shutdown.time = lasting->first_arrival + horovod.shutdown;
  shutdown.action = "tear-down";
  shutdown.ends_job = true;
  shutdown.text = fmt::format(
      "One or more rank (marked by \"!\") is stalled for longer than {} seconds. Will shutdown.",
      horovod.shutdown / kSecond);
  out.push_back(std::move(shutdown));
}

// Flows that stand on a dead link until the transport gives them up.
void network_retries(const Evidence& evidence, const std::vector<Watched>& ranks,
                     std::vector<Expiry>& out) {
  if (evidence.schedule.outages.empty()) return;
  const std::vector<ShapeLoad> loads = shape_loads(evidence);
  const Replayed& replayed = evidence.replayed;
  for (const Outage& outage : evidence.schedule.outages) {
    for (uint32_t id = 0; id < replayed.meetings.size(); ++id) {
      const Meeting& meeting = replayed.meetings[id];
      if (meeting.arrived < meeting.expected || meeting.mismatch) continue;
      const ShapeLoad& load = loads[replayed.shape_of[id]];
      if (!(load.on(outage.link) > 0)) continue;
      const Nanos stands = std::max(outage.from, meeting.last_arrival + load.latency);
      if (stands >= outage.until || (meeting.end >= 0 && meeting.end <= stands)) continue;
      const std::string& transport = evidence.models[meeting.communicator].transport();
      const bool ib = transport.find("NET/IB") != std::string::npos;
      if (!ib && transport.find("NET/Socket") == std::string::npos) continue;
      // The one who notices sits on the node of the link, else it is the first to have come.
      uint32_t who = meeting.first_arriver;
      const uint32_t node = evidence.links[outage.link].node;
      for (traces::RankId member : evidence.program.communicators[meeting.communicator].members) {
        const int r = evidence.program.find(member);
        if (r < 0 || ranks[static_cast<size_t>(r)].node != node) continue;
        who = static_cast<uint32_t>(r);
        break;
      }
      const NetworkTimers& network = ranks[who].timers.network;
      const Nanos patience = ib ? network.ib_total() : network.tcp;
      if (patience <= 0 || outage.until - stands <= patience) continue;
      Expiry expiry;
      expiry.time = stands + patience;
      expiry.rank = who;
      expiry.meeting = id;
      expiry.timer = ib ? "ib-retry" : "socket";
      const std::string& link = evidence.links[outage.link].name;
      const size_t adapter = link.find('/') + 1;
      expiry.text = ib ? fmt::format(
                             "NET/IB: Got completion from peer with "
                             "status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) len=0 "
                             "vendor err 129 hca {}: NCCL WARN unhandled system error, "
                             "remote process exited or there was a network error",
                             link.substr(adapter, link.find('/', adapter) - adapter))
                       : "NCCL WARN socketProgress: Connection closed by remote peer: Connection "
                         "timed out";
      expiry.action = "tear-down";
      expiry.ends_job = true;
      expiry.link = outage.link;
      out.push_back(std::move(expiry));
    }
  }
}

// A process that is no more counts no time: what it had begun to wait in runs out unseen.
void drop_of_the_dead(const Evidence& evidence, std::vector<Expiry>& out) {
  for (const StoppedRank& stopped : evidence.schedule.stopped) {
    const int r = evidence.program.find(stopped.rank);
    std::erase_if(out, [&](const Expiry& expiry) {
      return r >= 0 && expiry.rank == static_cast<uint32_t>(r) && expiry.time >= stopped.at;
    });
  }
}

// The first call in which others wait for a rank that has stopped; UINT32_MAX: nobody does by `when`.
uint32_t waited_for(const Evidence& evidence, uint32_t r, Nanos when) {
  const Replayed& replayed = evidence.replayed;
  uint32_t found = UINT32_MAX;
  for (size_t c = 0; c < evidence.program.ranks[r].calls.size(); ++c) {
    if (replayed.end[r][evidence.program.ranks[r].call_op[c]] >= 0) continue;
    const uint32_t id = replayed.meeting_of[r][c];
    const Meeting& meeting = replayed.meetings[id];
    const uint32_t others = meeting.arrived - (replayed.arrival[r][c] >= 0 ? 1 : 0);
    if (others == 0 || meeting.first_arrival > when) continue;
    if (found == UINT32_MAX || meeting.first_arrival < replayed.meetings[found].first_arrival) {
      found = id;
    }
  }
  return found;
}

// Ranks that end loudly, as far as somebody looks.
void launcher(const Evidence& evidence, const pb::Launch& launch, std::vector<Expiry>& out) {
  const Nanos notices = launcher_notices(launch);
  for (const StoppedRank& stopped : evidence.schedule.stopped) {
    const int r = evidence.program.find(stopped.rank);
    if (r < 0 || stopped.silent || notices < 0) continue;
    Expiry expiry;
    expiry.time = stopped.at + notices;
    expiry.rank = static_cast<uint32_t>(r);
    expiry.meeting = waited_for(evidence, expiry.rank, expiry.time);
    expiry.timer = "launcher";
    expiry.action = "tear-down";
    expiry.ends_job = true;
    expiry.text = launch.launcher() == pb::TORCHRUN || launch.framework() == pb::PYTORCH
                      ? fmt::format(
                            "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "
                            "rank {} exitcode: -9 (SIGKILL)",
                            stopped.rank)
                      : fmt::format(
                            "Primary job terminated normally, but 1 process returned a "
                            "non-zero exit code: rank {} was killed (signal 9)",
                            stopped.rank);
    if (!stopped.text.empty()) expiry.text = stopped.text + "\n" + expiry.text;
    out.push_back(std::move(expiry));
  }
}

void out_of_memory(const Evidence& evidence, const pb::Launch& launch,
                   std::span<const MemoryAccount> memory, std::vector<Expiry>& out) {
  const std::vector<Nanos> ends = step_ends(evidence);
  for (const MemoryAccount& account : memory) {
    if (account.refused == 0) continue;
    const Nanos when = time_of(ends, account.refused_step, account.refused_part);
    if (when < 0) continue;  // the run did not come so far
    const uint32_t rank = evidence.program.ranks[account.rank].rank;
    uint32_t device = 0;
    for (const pb::RankLaunch& seat : launch.ranks()) {
      if (seat.rank() == rank) device = seat.gpu();
    }
    Expiry expiry;
    expiry.time = when;
    expiry.rank = account.rank;
    expiry.timer = "memory";
    expiry.action = "raise";
    expiry.text = out_of_memory_text(account, launch.framework(), device);
    expiry.ends_job = true;
    out.push_back(std::move(expiry));
  }
}

}  // namespace

std::string op_type_of(std::string_view collective) {
  std::string text(collective);
  std::erase(text, '_');
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::vector<Expiry> expiries(const Scenario& scenario, const Evidence& evidence,
                             std::span<const MemoryAccount> memory, Findings& findings) {
  const pb::Launch& launch = scenario.document.launch();
  const std::vector<Watched> ranks = watched(evidence, launch, findings);
  std::vector<Expiry> out;
  if (launch.framework() == pb::PYTORCH) torch_watchdogs(evidence, ranks, out);
  if (launch.framework() == pb::HOROVOD && !packs_differently(launch))
    horovod_stalls(evidence, ranks, out);
  network_retries(evidence, ranks, out);
  drop_of_the_dead(evidence, out);
  launcher(evidence, launch, out);
  out_of_memory(evidence, launch, memory, out);
  std::stable_sort(out.begin(), out.end(), [](const Expiry& a, const Expiry& b) {
    return a.time != b.time ? a.time < b.time : a.rank < b.rank;
  });
  std::set<std::pair<uint32_t, std::string>> seen;
  std::erase_if(out, [&](const Expiry& expiry) {
    return expiry.action != "warn" &&
           !seen.emplace(expiry.rank, expiry.timer + expiry.action).second;
  });
  return out;
}

Replayed cut(const Evidence& evidence, Nanos when) {
  Replayed out = evidence.replayed;
  out.completed = false;
  out.end_time = std::min(out.end_time, when);
  for (OpTimes& ends : out.end) ends.cut(when);
  for (Meeting& meeting : out.meetings) meeting.arrived = 0;
  for (size_t r = 0; r < out.arrival.size(); ++r) {
    for (size_t c = 0; c < out.arrival[r].size(); ++c) {
      Nanos& arrival = out.arrival[r][c];
      if (arrival > when) arrival = -1;
      if (arrival >= 0) ++out.meetings[out.meeting_of[r][c]].arrived;
    }
  }
  const std::vector<ShapeLoad> loads = shape_loads(evidence);
  for (size_t id = 0; id < out.meetings.size(); ++id) {
    Meeting& meeting = out.meetings[id];
    if (meeting.end <= when) continue;
    // What it had not moved by then leaves the account of its links.
    const auto whole = static_cast<double>(meeting.end - meeting.last_arrival);
    const auto left = static_cast<double>(meeting.end - std::max(when, meeting.last_arrival));
    for (const auto& [link, bytes] : loads[out.shape_of[id]].bytes) {
      out.link_bytes[link] -= whole > 0 ? bytes * left / whole : bytes;
      out.link_bytes[link] = std::max(0.0, out.link_bytes[link]);
    }
    meeting.end = -1;
  }
  for (size_t r = 0; r < out.transfer_begin.size(); ++r) {
    const auto& transfers = evidence.program.ranks[r].transfers;
    for (size_t i = 0; i < out.transfer_begin[r].size(); ++i) {
      const Nanos begin = out.transfer_begin[r][i];
      const Nanos end = evidence.replayed.end[r][transfers[i].op];
      if (begin < 0 || (end >= 0 && end <= when)) continue;
      const auto whole = static_cast<double>(end - begin);
      const double left = begin > when || whole <= 0 ? 1 : static_cast<double>(end - when) / whole;
      for (const auto& [link, bytes] : transfer_load(evidence, r, transfers[i]).bytes) {
        if (end >= 0) out.link_bytes[link] = std::max(0.0, out.link_bytes[link] - bytes * left);
      }
      if (begin > when) out.transfer_begin[r][i] = -1;
    }
  }
  return out;
}

}  // namespace rehearse::sim
