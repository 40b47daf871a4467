// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/changes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.hpp"
#include "faults/diagnose/call_orders.hpp"
#include "faults/diagnose/deviations.hpp"
#include "faults/diagnose/error_texts.hpp"
#include "faults/diagnose/observable.hpp"

namespace rehearse::faults {
namespace {

constexpr double kNothing = 1e-9;
// Ranks that are waited for less than this share of the one most waited for are in somebody's way, not missing.
constexpr double kHardly = 0.3;

// The noise of a figure: a floor, and a part of the change itself, because strengths are fitted and
// models err in proportion.
Change with_noise(double value, double floor, double part) {
  return {.value = value, .noise = floor + part * std::abs(value)};
}

double log_ratio(double a, double b) { return a > 0 && b > 0 ? std::log(a / b) : 0; }

std::string rank_key(uint32_t rank) { return fmt::format("rank {}", rank); }

void add_steps(const pb::Outcome& run, const pb::Outcome& healthy, Changes& out) {
  const pb::StepTimes &now = run.step_time_ns(), &before = healthy.step_time_ns();
  if (now.mean() <= 0 || before.mean() <= 0) return;
  out[Aspect::kStep]["mean"] = with_noise(
      log_ratio(static_cast<double>(now.mean()), static_cast<double>(before.mean())), 0.02, 0.08);
  if (now.each_size() != before.each_size()) return;
  for (int i = 0; i < now.each_size(); ++i) {
    const double value =
        log_ratio(static_cast<double>(now.each(i)), static_cast<double>(now.mean())) -
        log_ratio(static_cast<double>(before.each(i)), static_cast<double>(before.mean()));
    out[Aspect::kPattern][fmt::format("step {}", i)] = with_noise(value, 0.04, 0.12);
  }
}

void add_breakdown(const pb::Outcome& run, const pb::Outcome& healthy, Changes& out) {
  std::map<uint32_t, const pb::RankBreakdown*> before;
  for (const pb::RankBreakdown& rank : healthy.breakdown()) before[rank.rank()] = &rank;
  for (const pb::RankBreakdown& rank : run.breakdown()) {
    const auto found = before.find(rank.rank());
    if (found == before.end() || found->second->step() <= 0) continue;
    const pb::RankBreakdown& was = *found->second;
    const auto step = static_cast<double>(was.step());
    const auto put = [&](Aspect aspect, int64_t a, int64_t b) {
      out[aspect][rank_key(rank.rank())] =
          with_noise(static_cast<double>(a - b) / step, 0.03, 0.12);
    };
    put(Aspect::kCompute, rank.compute(), was.compute());
    put(Aspect::kTransfer, rank.communication(), was.communication());
    put(Aspect::kWait, rank.wait(), was.wait());
    put(Aspect::kHost, rank.host(), was.host());
    put(Aspect::kIdle, rank.idle(), was.idle());
    put(Aspect::kOverlap, rank.overlapped(), was.overlapped());
  }
}

// "ring/LL x12, tree/Simple x3" without the counts.
std::set<std::string> algorithms_of(const pb::CommunicatorUse& use) {
  std::set<std::string> out;
  for (const std::string& part : split(use.algorithms(), ',')) {
    const size_t begin = part.find_first_not_of(' ');
    if (begin == part.npos) continue;
    out.insert(part.substr(begin, part.rfind(" x") - begin));
  }
  return out;
}

void add_communicators(const pb::Outcome& run, const pb::Outcome& healthy, Changes& out) {
  std::map<std::string, const pb::CommunicatorUse*> now, before;
  for (const pb::CommunicatorUse& use : run.communicators()) now[use.id()] = &use;
  for (const pb::CommunicatorUse& use : healthy.communicators()) before[use.id()] = &use;
  const bool whole = run.verdict() == pb::COMPLETED || run.verdict() == pb::WRONG_SEMANTICS;
  for (const auto& [id, use] : now) {
    const auto found = before.find(id);
    if (found == before.end()) {
      if (whole) out[Aspect::kCalls][id + " exists"] = {1, 0};
      continue;
    }
    const pb::CommunicatorUse& was = *found->second;
    if (use->transport() != was.transport()) {
      out[Aspect::kTransport][id + ": " + use->transport()] = {1, 0};
    }
    if (!whole) continue;
    const double calls =
        log_ratio(static_cast<double>(use->calls()), static_cast<double>(was.calls()));
    const double bytes =
        log_ratio(static_cast<double>(use->bytes()), static_cast<double>(was.bytes()));
    if (std::abs(calls) > kNothing)
      out[Aspect::kCalls][id + " calls"] = with_noise(calls, 0.01, 0.05);
    if (std::abs(bytes) > kNothing)
      out[Aspect::kCalls][id + " bytes"] = with_noise(bytes, 0.01, 0.05);
    out[Aspect::kBandwidth][id] = with_noise(log_ratio(use->busbw(), was.busbw()), 0.1, 0.2);
    const auto chosen = algorithms_of(*use), usual = algorithms_of(was);
    for (const std::string& name : chosen) {
      if (!usual.count(name)) out[Aspect::kAlgorithm][fmt::format("{} uses {}", id, name)] = {1, 0};
    }
    for (const std::string& name : usual) {
      if (!chosen.count(name))
        out[Aspect::kAlgorithm][fmt::format("{} no longer uses {}", id, name)] = {1, 0};
    }
  }
  for (const auto& [id, use] : before) {
    if (whole && !now.count(id)) out[Aspect::kCalls][id + " is gone"] = {1, 0};
  }
}

void add_links(const pb::Outcome& run, const pb::Outcome& healthy, Changes& out) {
  std::map<std::string, std::pair<double, double>> use;
  for (const pb::LinkUse& link : run.links()) use[link.name()].first = link.utilisation();
  for (const pb::LinkUse& link : healthy.links()) use[link.name()].second = link.utilisation();
  for (const auto& [name, pair] : use) {
    const double value = pair.first - pair.second;
    if (std::abs(value) > 0.02) out[Aspect::kLinks][name] = with_noise(value, 0.04, 0.2);
  }
}

void add_memory(const pb::Outcome& run, const pb::Outcome& healthy, Changes& out) {
  std::map<uint32_t, const pb::RankMemory*> before;
  for (const pb::RankMemory& rank : healthy.memory().ranks()) before[rank.rank()] = &rank;
  std::map<std::string, double> parts;
  double capacity = 0;
  for (const pb::RankMemory& rank : run.memory().ranks()) {
    const auto found = before.find(rank.rank());
    if (found == before.end() || rank.capacity() <= 0) continue;
    const auto size = static_cast<double>(rank.capacity());
    const double value = static_cast<double>(rank.peak() - found->second->peak()) / size;
    if (std::abs(value) > 0.01) {
      out[Aspect::kMemory][rank_key(rank.rank())] = with_noise(value, 0.01, 0.1);
    }
    capacity += size;
    for (const pb::MemoryPart& part : rank.parts()) {
      parts[part.name()] += static_cast<double>(part.bytes());
    }
    for (const pb::MemoryPart& part : found->second->parts()) {
      parts[part.name()] -= static_cast<double>(part.bytes());
    }
  }
  for (const auto& [name, bytes] : parts) {
    // Weighs as much as the peaks of all ranks together.
    const double value = capacity > 0 ? bytes / capacity : 0;
    if (std::abs(value) <= 0.005) continue;
    const double ranks = static_cast<double>(run.ranks() > 0 ? run.ranks() : before.size());
    out[Aspect::kMemory]["part " + name] = with_noise(value * ranks, 0.01 * ranks, 0.1);
  }
}

void add_findings(const pb::Outcome& run, Changes& out) {
  for (const pb::OutcomeFinding& finding : run.findings()) {
    if (finding.id() == "transport-fallback" || finding.id() == kStepsTold) continue;
    out[Aspect::kFindings][finding.id() + " " + finding.category()] = {1, 0};
    if (!finding.first().empty()) {
      out[Aspect::kFindings][finding.id() + ": " + finding.first()] = {1, 0};
    }
  }
  for (const pb::Culprit& culprit : run.culprits()) {
    if (culprit.kind() == "node") {
      out[Aspect::kTransport][fmt::format("node {} says so", culprit.node())] = {1, 0};
    }
  }
}

// Ranks that came to a call with another size than most, and how much other.
void add_sizes(const pb::Outcome& run, Changes& out) {
  std::map<std::pair<std::string, int64_t>, std::map<uint32_t, int64_t>> calls;
  for (const pb::Wait& wait : run.waits()) {
    if (wait.elements_in() > 0) {
      calls[{wait.communicator(), wait.sequence()}][wait.rank()] = wait.elements_in();
    }
  }
  for (const auto& [call, sizes] : calls) {
    std::map<int64_t, size_t> times;
    for (const auto& [rank, size] : sizes) ++times[size];
    const auto usual =
        std::max_element(times.begin(), times.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    for (const auto& [rank, size] : sizes) {
      if (size == usual->first) continue;
      out[Aspect::kSize][rank_key(rank)] = with_noise(
          log_ratio(static_cast<double>(size), static_cast<double>(usual->first)), 0.05, 0.05);
    }
  }
}

void add_records(const pb::Outcome& run, Changes& out) {
  auto& records = out[Aspect::kRecords];
  for (const Deviation& row : deviations(run)) {
    const std::string key = fmt::format("rank {} in {}: ", row.rank, row.group);
    // By how much somebody is ahead depends on the moment; that he is does not.
    records[key + "calls more"] = {std::clamp(0.5 * row.ahead, -1.0, 1.0), 0.25};
    records[key + "other calls"] = {std::log1p(static_cast<double>(row.others)), 0.1};
    records[key + "size"] = {row.size, 0.05};
    records[key + "runs it"] = {static_cast<double>(row.running), 0.25};
    records[key + "first other call"] = {std::log1p(static_cast<double>(row.sequence + 1)), 0.05};
  }
  for (const CallOrder& row : call_orders(run)) {
    const std::string key = fmt::format("rank {}: ", row.rank);
    records[key + "order of groups"] = {row.other ? 1.0 : 0.0, 0.25};
  }
  if (records.empty()) out.erase(Aspect::kRecords);
}

// A process that is alive dumps, and says so when its watchdog gives a call up.
void add_silent(const pb::Outcome& run, Changes& out) {
  if (run.flight_records().empty()) return;
  std::set<uint32_t> heard(run.not_heard().begin(), run.not_heard().end());
  for (const pb::FlightRecorder& recorder : run.flight_records()) heard.insert(recorder.rank());
  for (const pb::TimerEvent& timer : run.timers()) heard.insert(timer.rank());
  for (const pb::ErrorText& error : run.error_text()) heard.insert(error.rank());
  for (uint32_t rank = 0; rank < run.ranks(); ++rank) {
    if (!heard.contains(rank)) out[Aspect::kSilent][rank_key(rank)] = {1, 0};
  }
}

void add_text(const std::string& text, Changes& out) {
  out[Aspect::kText][text_kind(text)] = {1, 0};
  for (const uint32_t rank : ranks_named_in(text)) {
    out[Aspect::kFailed][rank_key(rank) + " is named"] = {1, 0};
  }
}

void add_failure(const pb::Outcome& run, const pb::Outcome& healthy, Changes& out) {
  const pb::Failure& failure = run.first_failure();
  out[Aspect::kPhase][pb::Phase_Name(failure.phase())] = {1, 0};
  if (const auto steps = steps_told(run)) {
    out[Aspect::kPhase]["steps printed"] = {std::log1p(*steps), 0.05};
  }
  // Whose timer of many ends first in a hang is chance.
  if (run.has_first_failure() && run.verdict() != pb::HANG) {
    out[Aspect::kFailed][rank_key(failure.rank())] = {1, 0};
  }
  for (const pb::RankBringUp& rank : run.bring_up().ranks()) {
    out[Aspect::kState][rank_key(rank.rank()) + " " + rank.state()] = {1, 0};
  }
  std::set<uint32_t> waiting;
  for (const pb::Wait& wait : run.waits()) {
    waiting.insert(wait.rank());
    out[Aspect::kCall][wait.communicator() + " " + wait.operation()] = {1, 0};
  }
  if (const pb::Wait* call = stuck_call(run); call && call->sequence() >= 0) {
    out[Aspect::kCall]["sequence of " + call->communicator()] =
        with_noise(std::log1p(static_cast<double>(call->sequence())), 0.05, 0);
  } else if (!failure.operation().empty()) {
    out[Aspect::kCall][failure.communicator() + " " + failure.operation()] = {1, 0};
  }
  for (const uint32_t rank : waiting) out[Aspect::kWaiting][rank_key(rank)] = {1, 0};
  const auto wanted = waited_for(run);
  double most = 0;
  for (const auto& [rank, share] : wanted) most = std::max(most, share);
  for (const auto& [rank, share] : wanted) {
    if (share > kHardly * most) out[Aspect::kMissing][rank_key(rank)] = {share / most, 0.1};
  }
  for (const pb::ErrorText& error : run.error_text()) {
    add_text(error.text(), out);
    // Who gives up a call was in it.
    if (run.waits().empty()) out[Aspect::kWaiting][rank_key(error.rank())] = {1, 0};
  }
  for (const pb::TimerEvent& timer : run.timers()) {
    if (timer.timer() == "watchdog") out[Aspect::kWaiting][rank_key(timer.rank())] = {1, 0};
  }
  add_sizes(run, out);
  add_records(run, out);
  add_silent(run, out);
  for (const pb::RankBringUp& rank : run.bring_up().ranks()) {
    if (!rank.text().empty()) add_text(rank.text(), out);
  }
  const double step = std::max<double>(1, static_cast<double>(healthy.step_time_ns().mean()));
  const auto in_steps = [&](int64_t time) {
    return std::log1p(static_cast<double>(std::max<int64_t>(0, time)) / step);
  };
  out[Aspect::kWhen]["last progress"] = with_noise(in_steps(run.last_progress_ns()), 0.15, 0.05);
  out[Aspect::kWhen]["first error"] = with_noise(in_steps(failure.time_ns()), 0.15, 0.03);
}

}  // namespace

const char* name_of(Aspect aspect) {
  switch (aspect) {
    case Aspect::kStep:
      return "step time";
    case Aspect::kPattern:
      return "single steps";
    case Aspect::kCompute:
      return "compute of ranks";
    case Aspect::kTransfer:
      return "communication of ranks";
    case Aspect::kWait:
      return "waits of ranks";
    case Aspect::kHost:
      return "host time of ranks";
    case Aspect::kIdle:
      return "idle time of ranks";
    case Aspect::kOverlap:
      return "overlap";
    case Aspect::kCalls:
      return "calls and bytes";
    case Aspect::kBandwidth:
      return "bus bandwidth";
    case Aspect::kAlgorithm:
      return "algorithms";
    case Aspect::kLinks:
      return "use of links";
    case Aspect::kTransport:
      return "transports";
    case Aspect::kMemory:
      return "memory";
    case Aspect::kFindings:
      return "what was noticed";
    case Aspect::kPhase:
      return "phase";
    case Aspect::kState:
      return "state at start";
    case Aspect::kWaiting:
      return "ranks that wait";
    case Aspect::kMissing:
      return "ranks waited for";
    case Aspect::kCall:
      return "call";
    case Aspect::kFailed:
      return "first to fail";
    case Aspect::kText:
      return "error text";
    case Aspect::kRecords:
      return "recorded calls";
    case Aspect::kSize:
      return "size brought to the call";
    case Aspect::kWhen:
      return "time of the failure";
    case Aspect::kSilent:
      return "ranks without a dump or a word";
  }
  return "";
}

bool is_measured(Aspect aspect) {
  return aspect <= Aspect::kOverlap || aspect == Aspect::kBandwidth || aspect == Aspect::kRecords;
}

bool is_time(Aspect aspect) {
  return aspect <= Aspect::kOverlap || aspect == Aspect::kBandwidth || aspect == Aspect::kLinks;
}

std::map<uint32_t, double> waited_for(const pb::Outcome& run) {
  std::map<uint32_t, double> out;
  for (const pb::Wait& wait : run.waits()) {
    for (const uint32_t rank : wait.for_ranks()) out[rank] += 1.0 / wait.for_ranks_size();
  }
  return out;
}

const pb::Wait* stuck_call(const pb::Outcome& run) {
  std::map<std::pair<std::string, int64_t>, int> ranks;
  const pb::Wait* most = nullptr;
  const auto in = [&](const pb::Wait& wait) -> int& {
    return ranks[{wait.communicator(), wait.sequence()}];
  };
  for (const pb::Wait& wait : run.waits()) ++in(wait);
  for (const pb::Wait& wait : run.waits()) {
    if (!most || in(wait) > in(*most)) most = &wait;
  }
  return most;
}

Changes changes_of(const pb::Outcome& run, const pb::Outcome& healthy) {
  Changes out;
  const bool whole = run.verdict() == pb::COMPLETED || run.verdict() == pb::WRONG_SEMANTICS ||
                     run.verdict() == pb::REJECTED;
  if (whole) {
    add_steps(run, healthy, out);
    add_breakdown(run, healthy, out);
    add_links(run, healthy, out);
  } else {
    add_failure(run, healthy, out);
  }
  if (run.verdict() == pb::REJECTED) {
    for (const pb::ErrorText& error : run.error_text())
      out[Aspect::kText][text_kind(error.text())] = {1, 0};
  }
  add_communicators(run, healthy, out);
  add_memory(run, healthy, out);
  add_findings(run, out);
  return out;
}

}  // namespace rehearse::faults
