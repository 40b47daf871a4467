// SPDX-License-Identifier: Apache-2.0
#include "sim/snapshot/travel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/version.hpp"
#include "sim/scenario/transforms.hpp"
#include "sim/simulate.hpp"
#include "sim/snapshot/happenings.hpp"
#include "sim/snapshot/snapshot.hpp"
#include "sim/worker.hpp"

namespace rehearse::sim {
namespace {

constexpr std::string_view kLastProgressWord = "last-progress";

// A job that did not come up: where each rank is in its start. Times count from the launch.
pb::Snapshot starting(const Scenario& scenario, const pb::Outcome& outcome, const MomentName& to) {
  pb::Snapshot out;
  out.set_schema("rehearse.at/1");
  out.set_scenario(scenario.document.name());
  out.set_version(version());
  for (const std::string& patch : scenario.applied) out.add_patches(patch);
  out.set_time_ns(to.kind == MomentName::Kind::kTime ? to.time : outcome.end_ns());
  out.set_end_ns(outcome.end_ns());
  if (out.time_ns() >= outcome.end_ns()) out.set_ended(outcome.verdict());
  for (const pb::RankLaunch& rank : scenario.document.launch().ranks()) {
    pb::RankState& row = *out.add_ranks();
    row.set_rank(rank.rank());
    row.set_step(-1);
    row.set_bring_up("up");
    for (const pb::RankBringUp& failed : outcome.bring_up().ranks()) {
      if (failed.rank() != rank.rank()) continue;
      row.set_bring_up(failed.since_ns() <= out.time_ns() ? failed.state() : "starting");
      if (!failed.has_gives_up_ns() || failed.since_ns() > out.time_ns()) continue;
      pb::TimerState& timer = *out.add_timers();
      timer.set_rank(rank.rank());
      timer.set_timer("start");
      timer.set_runs_out_ns(failed.gives_up_ns());
      timer.set_ran_out(failed.gives_up_ns() <= out.time_ns());
    }
  }
  return out;
}

// Where the journey ends, told by the whole run: time, end, how it ended and what happens on the way. A job that does
// not come up is told at once.
struct Destination {
  pb::Snapshot told;
  bool came_up = true;
};

Result<Nanos> time_of(const MomentName& name, const std::vector<Nanos>& ends, Nanos progress) {
  switch (name.kind) {
    case MomentName::Kind::kTime:
      return name.time;
    case MomentName::Kind::kLastProgress:
      return progress;
    case MomentName::Kind::kStep:
      break;
  }
  if (name.step < ends.size()) return ends[name.step];
  return fail(Code::kBadInput, fmt::format("the run does not come to step {}", name.step), "TIME",
              ends.empty() ? "name a time" : fmt::format("its last is step {}", ends.size() - 1));
}

Result<Destination> find_destination(const Scenario& written, const Travel& travel,
                                     Reporter& reporter) {
  RH_TRY(const Start start, come_up(written));
  Destination out;
  if (start.up.failed) {
    out.told = starting(written, start.up.outcome, travel.to);
    out.came_up = false;
    return out;
  }
  const Scenario& scenario = start.of(written);
  Result<Nanos> time = 0;
  auto done = replay_here(scenario, reporter, [&](const Evidence& evidence) {
    const pb::Outcome outcome = make_outcome(scenario, evidence);
    const bool crashed = outcome.verdict() == pb::CRASH;
    time =
        time_of(travel.to, step_ends(evidence),
                outcome.verdict() == pb::COMPLETED ? outcome.end_ns() : outcome.last_progress_ns());
    if (!time) return;
    // What the replay has after a timer ended the job did not happen.
    const Nanos last = crashed ? outcome.end_ns() : INT64_MAX;
    const Passage way = passage(evidence, std::min(*time, last), travel.moments, last);
    for (const pb::Happening& event : way.events) *out.told.add_events() = event;
    out.told.set_time_ns(way.to);
    out.told.set_end_ns(outcome.end_ns());
    if (way.to >= outcome.end_ns()) out.told.set_ended(outcome.verdict());
  });
  if (!done) return tl::unexpected(done.error());
  if (!time) return tl::unexpected(time.error());
  return out;
}

// Snapshots are sent home one after the other, each behind its length.
void append(const pb::Snapshot& snapshot, std::string& out) {
  const std::string bytes = snapshot.SerializeAsString();
  out += std::to_string(bytes.size()) + ":" + bytes;
}

Result<std::vector<pb::Snapshot>> parse_all(std::string_view bytes) {
  std::vector<pb::Snapshot> out;
  while (!bytes.empty()) {
    size_t size = 0;
    const auto [past, error] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), size);
    const auto head = static_cast<size_t>(past - bytes.data()) + 1;
    if (error != std::errc() || head + size > bytes.size() ||
        !out.emplace_back().ParseFromArray(bytes.data() + head, static_cast<int>(size))) {
      return fail(Code::kInternal, "the simulation's answer could not be read");
    }
    bytes.remove_prefix(head + size);
  }
  return out;
}

// The first `looks` times of a run; it goes on afterwards or not.
Result<std::vector<pb::Snapshot>> watch(const Scenario& written, const std::vector<Nanos>& times,
                                        bool go_on, Reporter& reporter) {
  RH_TRY(std::string bytes, in_child(
                                [&](Reporter& inner) -> Result<std::string> {
                                  RH_TRY(const Start start, come_up(written));
                                  const Scenario& scenario = start.of(written);
                                  std::string out;
                                  size_t seen = 0;
                                  auto done = watch_here(
                                      scenario, times, inner,
                                      [&](const Evidence& evidence, const Standing& standing) {
                                        append(take_snapshot(scenario, evidence, standing), out);
                                        return go_on || ++seen < times.size();
                                      });
                                  if (!done) return tl::unexpected(done.error());
                                  return out;
                                },
                                reporter));
  return parse_all(bytes);
}

}  // namespace

Result<MomentName> parse_moment(std::string_view text) {
  MomentName out;
  if (text == kLastProgressWord) {
    out.kind = MomentName::Kind::kLastProgress;
    return out;
  }
  const auto refuse = [&] {
    return fail(Code::kUsage, fmt::format("'{}' is not a moment of a run", text), "TIME",
                "a simulated time such as 1.5s, `step 2` or last-progress");
  };
  if (text.starts_with("step")) {
    text.remove_prefix(4);
    while (!text.empty() && (text.front() == ' ' || text.front() == '-')) text.remove_prefix(1);
    const auto [past, error] = std::from_chars(text.data(), text.data() + text.size(), out.step);
    if (error != std::errc() || past != text.data() + text.size()) return refuse();
    out.kind = MomentName::Kind::kStep;
    return out;
  }
  const Result<Nanos> time = parse_duration(text);
  if (!time || *time < 0 || *time > kEndOfTime) return refuse();
  out.time = *time;
  return out;
}

Result<pb::Snapshot> state_at(const Scenario& scenario, const Travel& travel, Reporter& reporter) {
  RH_TRY(std::string bytes, in_child(
                                [&](Reporter& inner) -> Result<std::string> {
                                  RH_TRY(const Destination found,
                                         find_destination(scenario, travel, inner));
                                  RH_TRY(const std::string told, encoded(found.told));
                                  return (found.came_up ? "r" : "s") + told;
                                },
                                reporter));
  pb::Snapshot told;
  if (bytes.empty() || !told.ParseFromString(bytes.substr(1))) {
    return fail(Code::kInternal, "the simulation's answer could not be read");
  }
  if (bytes.front() == 's') return told;
  RH_TRY(std::vector<pb::Snapshot> seen, watch(scenario, {told.time_ns()}, false, reporter));
  if (seen.size() != 1) return fail(Code::kInternal, "the run did not come to the moment");
  seen.front().MergeFrom(told);
  return std::move(seen.front());
}

Result<std::vector<pb::Snapshot>> states_at(const Scenario& scenario,
                                            const std::vector<Nanos>& times, Reporter& reporter) {
  return watch(scenario, times, true, reporter);
}

Result<Scenario> branch_of(const Scenario& scenario, const pb::Patch& patch, Nanos from) {
  pb::Patch limited = patch;
  const auto too_early = [&] {
    return fail(
        Code::kBadInput,
        fmt::format("the patch holds before {}, where the branch begins", format_duration(from)),
        "--branch", "leave its time out, or name a later one");
  };
  const Transform* transform = transform_of(patch);
  if (!patch.set().empty() || (transform != nullptr && transform->interval)) {
    if (patch.has_from() && patch.from() < from) return too_early();
    if (!patch.has_from()) limited.set_from(from);
  } else if (patch.has_stop_rank()) {
    if (patch.stop_rank().at() == 0) limited.mutable_stop_rank()->set_at(from);
    if (limited.stop_rank().at() < from) return too_early();
  }
  Scenario branch = scenario;
  if (auto applied = apply(branch, limited); !applied) return tl::unexpected(applied.error());
  return branch;
}

Result<void> check_past(const Scenario& scenario, const Scenario& branch, Nanos when,
                        Reporter& reporter) {
  if (when <= 0) return {};
  // What changes at `when` does so at that very nanosecond.
  const std::vector<Nanos> before = {when - 1};
  RH_TRY(std::vector<pb::Snapshot> a, watch(scenario, before, false, reporter));
  RH_TRY(std::vector<pb::Snapshot> b, watch(branch, before, false, reporter));
  for (pb::Snapshot* snapshot : {&a.front(), &b.front()}) {
    // The same rates are added up in another order when links are kept apart.
    snapshot->clear_flows();
    snapshot->clear_links();
    snapshot->clear_patches();
    snapshot->clear_timers();
  }
  if (a.front().SerializeAsString() == b.front().SerializeAsString()) return {};
  return fail(Code::kBadInput,
              fmt::format("the patch changes what happened before {}", format_duration(when)),
              "--branch", "name an earlier TIME, or a patch that acts later");
}

}  // namespace rehearse::sim
