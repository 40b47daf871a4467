// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule_director.hpp"

#include <algorithm>
#include <span>

#include "sim/timers/retries.hpp"

namespace rehearse::sim {
namespace {

constexpr Nanos kSlice = 10'000'000;  // 10 ms
constexpr Nanos kLook = 1'000'000;    // how soon to look again whether the job goes on
constexpr int kLooks = 10;
constexpr uint64_t kTry = uint64_t{1} << 40;  // tags from here on: a link to try

// The entries of a list in order of time that belong to one moment.
template <typename T>
std::span<const T> at(const std::vector<T>& list, Nanos when) {
  const auto first = std::lower_bound(list.begin(), list.end(), when,
                                      [](const T& entry, Nanos time) { return entry.at < time; });
  const auto last = std::upper_bound(first, list.end(), when,
                                     [](Nanos time, const T& entry) { return time < entry.at; });
  return {first, last};
}

}  // namespace

ScheduleDirector::ScheduleDirector(const Schedule& schedule, const traces::Program& program)
    : schedule_(schedule), program_(program) {
  for (const CapacityChange& change : schedule.capacities) times_.push_back(change.at);
  for (const SpeedChange& change : schedule.speeds) times_.push_back(change.at);
  for (const StoppedRank& rank : schedule.stopped) times_.push_back(rank.at);
  for (const Background& traffic : schedule.background) times_.push_back(traffic.from);
  std::sort(times_.begin(), times_.end());
  times_.erase(std::unique(times_.begin(), times_.end()), times_.end());
  looks_.assign(schedule.background.size(), 0);
  for (const Outage& outage : schedule.outages) {
    if (outage.from == 0) dead_[outage.link] = {};
  }
}

void ScheduleDirector::declare(Fabric& fabric) {
  for (const CapacityChange& change : schedule_.capacities) fabric.keep(change.link);
  for (size_t b = 0; b < schedule_.background.size(); ++b) {
    const Background& traffic = schedule_.background[b];
    std::vector<LinkWeight> route;
    for (LinkId link : traffic.route) route.push_back({link, 1});
    // An owner of its own: caps of others do not hold here.
    routes_.push_back(fabric.add_route(route, {traffic.rate, UINT64_MAX - b}));
  }
}

void ScheduleDirector::begin(Stage& stage) {
  if (!times_.empty() && times_.front() == 0) act(stage, 0);
  const size_t first = !times_.empty() && times_.front() == 0 ? 1 : 0;
  if (first < times_.size()) stage.timer(times_[first], first);
}

void ScheduleDirector::on_timer(Stage& stage, uint64_t tag) {
  if (tag >= kTry) {
    const auto link = static_cast<LinkId>(tag - kTry);
    if (const auto at = dead_.find(link); at != dead_.end()) {
      at->second.waits = false;
      try_again(stage, link);
    }
    return;
  }
  if (tag >= times_.size()) return on_flow_end(stage, tag - times_.size());
  act(stage, times_[tag]);
  if (tag + 1 < times_.size()) stage.timer(times_[tag + 1], tag + 1);
}

void ScheduleDirector::on_flow_end(Stage& stage, uint64_t tag) {
  if (!stage.idle()) {
    looks_[tag] = 0;
    return renew(stage, tag);
  }
  // A call may be about to begin; a job that stays idle has ended or hangs.
  if (++looks_[tag] < kLooks) stage.timer(stage.now() + kLook, times_.size() + tag);
}

void ScheduleDirector::act(Stage& stage, Nanos when) {
  for (const CapacityChange& change : at(schedule_.capacities, when)) {
    this->change(stage, change.link, change.capacity);
  }
  for (const SpeedChange& change : at(schedule_.speeds, when)) {
    if (const int r = program_.find(change.rank); r >= 0) {
      stage.set_gpu_speed(static_cast<size_t>(r), change.speed);
    }
  }
  for (const StoppedRank& rank : at(schedule_.stopped, when)) {
    if (const int r = program_.find(rank.rank); r >= 0) stage.stop_rank(static_cast<size_t>(r));
  }
  for (size_t b = 0; b < schedule_.background.size(); ++b) {
    if (schedule_.background[b].from == when) renew(stage, b);
  }
  resume(stage);
}

void ScheduleDirector::change(Stage& stage, LinkId link, BytesPerSec capacity) {
  const auto at = dead_.find(link);
  if (at == dead_.end()) {
    if (!(capacity > 0)) dead_[link] = {stage.now(), 0, false};
    stage.set_capacity(link, capacity);
    return;
  }
  at->second.scheduled = capacity;
  if (!at->second.waits) try_again(stage, link);
}

void ScheduleDirector::try_again(Stage& stage, LinkId link) {
  Dead& dead = dead_.at(link);
  if (!(dead.scheduled > 0)) return;  // the next change of it comes here
  const Nanos now = stage.now();
  // When what stands on a link tries again; -1: it has given up.
  const auto next = [&](LinkId id, Nanos dead_since) {
    const auto retry = schedule_.retries.find(id);
    const Nanos since = retry == schedule_.retries.end() ? -1 : stage.crossing_since(id);
    return since < 0 ? now : next_try(retry->second, std::max(dead_since, since), now);
  };
  const Nanos due = next(link, dead.since);
  if (due < 0) return;  // the transport's timer says so (outcome/expiry.hpp)
  if (due > now) {
    dead.waits = true;
    return stage.timer(due, kTry + link);
  }
  // Links that are back together carry again together: with the first try over any of them.
  for (auto at = dead_.begin(); at != dead_.end();) {
    const auto& [id, each] = *at;
    if (!(each.scheduled > 0) || next(id, each.since) < 0) {
      ++at;
      continue;
    }
    stage.set_capacity(id, each.scheduled);
    if (each.since < now) ended_.push_back({id, each.since, now});
    at = dead_.erase(at);
  }
  resume(stage);
}

std::vector<Outage> ScheduleDirector::outages() const {
  std::vector<Outage> out = ended_;
  for (const auto& [link, dead] : dead_) out.push_back({link, dead.since});
  std::sort(out.begin(), out.end(), [](const Outage& a, const Outage& b) {
    return a.from != b.from ? a.from < b.from : a.link < b.link;
  });
  return out;
}

void ScheduleDirector::resume(Stage& stage) {
  for (size_t b = 0; b < looks_.size(); ++b) {
    if (looks_[b] < kLooks) continue;
    looks_[b] = 0;
    renew(stage, b);
  }
}

void ScheduleDirector::renew(Stage& stage, size_t background) {
  const Background& traffic = schedule_.background[background];
  const Nanos left = traffic.until - stage.now();
  if (left <= 0) return;
  stage.start_flow(routes_[background],
                   traffic.rate * static_cast<double>(std::min(left, kSlice)) * 1e-9, background);
}

}  // namespace rehearse::sim
