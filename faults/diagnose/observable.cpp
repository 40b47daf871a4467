// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/observable.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <string>

#include "faults/diagnose/recorded_waits.hpp"

namespace rehearse::faults {
namespace {

// Findings that a person would make with nvidia-smi, the framework's log or NCCL's.
constexpr std::string_view kFallback = "transport-fallback";
constexpr std::array<std::string_view, 7> kSeen = {
    "uneven-steps",         "memory-grows", "unexpected-device", kFallback,
    "effective-world-size", "in-logs",      kStepsTold};
// What is left of a rule of the check.
constexpr std::string_view kWrongResult = "wrong-result";

// Fields of the launch that describe what happens, not what is written.
constexpr std::array<std::string_view, 4> kBehaviour = {"context", "contexts_on", "absent",
                                                        "computes_wrong"};

// "rank 4" where a rule names a rank, else its place: "job".
std::string where_of(const std::string& text) {
  for (const std::string_view word : {"rank ", "ranks "}) {
    for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
      size_t end = at + word.size();
      while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
      if (end > at + word.size()) {
        return "rank " + text.substr(at + word.size(), end - at - word.size());
      }
    }
  }
  return text.substr(0, text.find(':'));
}

// Ranks of which something is missing: the profile, dump and allocator snapshot, or what they printed too. Mostly that is in
// the job's log all the same: launchers bring the output of every rank.
class Missing {
 public:
  explicit Missing(const google::protobuf::RepeatedField<uint32_t>& ranks)
      : ranks_(ranks.begin(), ranks.end()) {}

  [[nodiscard]] bool has(uint32_t rank) const { return ranks_.contains(rank); }
  // A finding that begins with the rank that tells it: "rank 3 has 2 of 4 steps".
  [[nodiscard]] bool told(const std::string& text) const {
    return std::any_of(ranks_.begin(), ranks_.end(), [&](uint32_t rank) {
      const std::string teller = "rank " + std::to_string(rank);
      return text == teller || text.starts_with(teller + " ") || text.starts_with(teller + ":");
    });
  }

  template <typename Rows>
  void copy(const Rows& from, Rows& to) const {
    for (const auto& row : from) {
      if (!has(row.rank())) *to.Add() = row;
    }
  }

 private:
  std::set<uint32_t> ranks_;
};

void copy_findings(const pb::Outcome& from, const Missing& not_recorded, pb::Outcome& to) {
  // What a process says when it is refused is on its screen; that results are wrong is seen of the job, nobody
  // knows from where.
  const bool refused = from.verdict() == pb::REJECTED;
  const bool wrong = from.verdict() == pb::WRONG_SEMANTICS;
  for (const pb::OutcomeFinding& finding : from.findings()) {
    const bool lost = not_recorded.told(finding.first());
    if (std::find(kSeen.begin(), kSeen.end(), finding.id()) != kSeen.end()) {
      if (lost) continue;
      pb::OutcomeFinding& row = *to.add_findings();
      row.set_id(finding.id());
      row.set_count(finding.count());
      // Why a transport is not used is not in the log that shows which one is.
      if (finding.id() != kFallback) row.set_first(finding.first());
    } else if (!finding.category().empty() && (wrong || (refused && !lost))) {
      pb::OutcomeFinding& row = *to.add_findings();
      row.set_id(std::string(kWrongResult));
      row.set_category(finding.category());
      if (refused) row.set_first(where_of(finding.first()));
    }
  }
}

// Nodes whose NCCL log tells that a transport is not used there.
void copy_named_nodes(const pb::Outcome& from, pb::Outcome& to) {
  for (const pb::Culprit& culprit : from.culprits()) {
    if (culprit.kind() != "node") continue;
    pb::Culprit& row = *to.add_culprits();
    row.set_kind(culprit.kind());
    row.set_node(culprit.node());
  }
}

// Counters of ports, NVLinks and PCIe.
void copy_links(const pb::Outcome& from, pb::Outcome& to) {
  for (const pb::LinkUse& link : from.links()) {
    pb::LinkUse& row = *to.add_links();
    row.set_name(link.name());
    row.set_bytes(link.bytes());
    row.set_utilisation(link.utilisation());
  }
}

// In which state each process stood is what it printed last.
void copy_start(const pb::BringUp& from, const Missing& not_heard, pb::BringUp& to) {
  to.set_ready_ns(from.ready_ns());
  not_heard.copy(from.ranks(), *to.mutable_ranks());
  const bool same = to.ranks_size() == from.ranks_size();
  to.set_failed_in(same || to.ranks().empty() ? from.failed_in() : to.ranks(0).state());
}

// Which process ended first is what launchers print. In a hang nobody ends: it is the first whose log tells of a timer.
void copy_failure(const pb::Outcome& from, const Missing& not_heard, pb::Outcome& to) {
  if (!from.has_first_failure()) return;
  pb::Failure& failure = *to.mutable_first_failure();
  failure = from.first_failure();
  if (from.verdict() != pb::HANG || !not_heard.has(failure.rank())) return;
  failure.set_rank(from.ranks());
  if (to.timers().empty()) return;
  failure.set_rank(to.timers(0).rank());
  failure.set_time_ns(to.timers(0).time_ns());
}

}  // namespace

pb::Outcome observable(const pb::Outcome& from) {
  const Missing not_recorded(from.not_recorded()), not_heard(from.not_heard());
  pb::Outcome out;
  out.set_schema(from.schema());
  out.set_scenario(from.scenario());
  out.set_synthetic(from.synthetic());
  out.set_verdict(from.verdict());
  out.set_ranks(from.ranks());
  *out.mutable_not_recorded() = from.not_recorded();
  *out.mutable_not_heard() = from.not_heard();
  if (from.has_step_time_ns()) *out.mutable_step_time_ns() = from.step_time_ns();
  if (from.has_baseline_step_time_ns()) {
    *out.mutable_baseline_step_time_ns() = from.baseline_step_time_ns();
  }
  out.set_end_ns(from.end_ns());
  out.set_last_progress_ns(from.last_progress_ns());
  not_recorded.copy(from.breakdown(), *out.mutable_breakdown());
  not_heard.copy(from.error_text(), *out.mutable_error_text());
  not_heard.copy(from.timers(), *out.mutable_timers());
  not_recorded.copy(from.flight_records(), *out.mutable_flight_records());
  not_recorded.copy(from.waits(), *out.mutable_waits());
  not_recorded.copy(from.memory().ranks(), *out.mutable_memory()->mutable_ranks());
  *out.mutable_communicators() = from.communicators();
  copy_links(from, out);
  if (from.has_bring_up()) copy_start(from.bring_up(), not_heard, *out.mutable_bring_up());
  copy_failure(from, not_heard, out);
  copy_findings(from, not_recorded, out);
  copy_named_nodes(from, out);
  *out.mutable_waits() = recorded_waits(out);
  return out;
}

std::optional<uint32_t> steps_told(const pb::Outcome& outcome) {
  for (const pb::OutcomeFinding& finding : outcome.findings()) {
    if (finding.id() == kStepsTold) return static_cast<uint32_t>(finding.count());
  }
  return std::nullopt;
}

bool readable(std::string_view path) {
  if (!path.starts_with("launch.")) return false;
  const std::string_view last = path.substr(path.rfind('.') + 1);
  return std::find(kBehaviour.begin(), kBehaviour.end(), last) == kBehaviour.end();
}

pb::Launch readable_launch(const pb::Launch& launch) {
  pb::Launch out = launch;
  out.clear_context();
  for (pb::RankLaunch& rank : *out.mutable_ranks()) {
    rank.clear_contexts_on();
    rank.clear_absent();
    rank.clear_computes_wrong();
  }
  return out;
}

}  // namespace rehearse::faults
