// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/timed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/document.hpp"
#include "base/text.hpp"
#include "sim/efficiency.hpp"
#include "sim/scenario/failover.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/transform.hpp"
#include "sim/scenario/transforms.hpp"

namespace rehearse::sim {
namespace {

constexpr int64_t kMostIntervals = 100'000;

// What a moment of the run looks like.
struct Moment {
  std::vector<BytesPerSec> capacities;  // by LinkId
  std::map<uint32_t, double> speeds;    // by rank, relative to the program
};

double gpu_speed(const pb::Scenario& document, const pb::RankLaunch& rank) {
  const double speed = document.platform()
                           .nodes(static_cast<int>(rank.node()))
                           .gpus(static_cast<int>(rank.gpu()))
                           .speed();
  return speed > 0 ? speed : 1;
}

class Scheduler {
 public:
  Scheduler(const Scenario& scenario, const platforms::Links& links,
            const std::vector<BytesPerSec>& capacities)
      : scenario_(scenario), links_(links), start_{capacities, {}} {
    for (const pb::RankLaunch& rank : scenario.document.launch().ranks()) {
      start_.speeds[rank.rank()] = 1;
    }
  }

  Result<Schedule> make() {
    for (const pb::Patch& patch : scenario_.timed) holds_.push_back(intervals_of(patch));
    std::set<Nanos> times;
    for (const auto& intervals : holds_) {
      for (const Interval& interval : intervals) {
        times.insert(interval.from);
        if (interval.until != Outage::kForever) times.insert(interval.until);
      }
    }
    down_since_.assign(start_.capacities.size(), -1);
    for (size_t l = 0; l < start_.capacities.size(); ++l) {
      if (!(start_.capacities[l] > 0)) down_since_[l] = 0;
    }
    Moment now = start_;
    for (Nanos when : times) {
      RH_TRY(const Moment* next, at(when));
      change(when, now, *next);
      now = *next;
    }
    for (size_t l = 0; l < down_since_.size(); ++l) {
      if (down_since_[l] >= 0) out_.outages.push_back({static_cast<LinkId>(l), down_since_[l]});
    }
    std::sort(out_.outages.begin(), out_.outages.end(), [](const Outage& a, const Outage& b) {
      return a.from != b.from ? a.from < b.from : a.link < b.link;
    });
    take_over(scenario_, links_, start_.capacities, out_);
    for (const pb::Patch& patch : scenario_.transforms) {
      if (!patch.has_stop_rank()) continue;
      if (auto stopped = stop(patch.stop_rank()); !stopped) return tl::unexpected(stopped.error());
    }
    std::stable_sort(out_.stopped.begin(), out_.stopped.end(),
                     [](const StoppedRank& a, const StoppedRank& b) { return a.at < b.at; });
    for (const pb::Patch& patch : scenario_.timed) {
      if (!patch.has_background_traffic()) continue;
      if (auto added = background(patch); !added) return tl::unexpected(added.error());
    }
    return std::move(out_);
  }

 private:
  using LinkId = platforms::LinkId;

  [[nodiscard]] std::vector<size_t> holding(Nanos when) const {
    std::vector<size_t> out;
    for (size_t p = 0; p < holds_.size(); ++p) {
      // The last interval that begins by then.
      const auto next = std::upper_bound(
          holds_[p].begin(), holds_[p].end(), when,
          [](Nanos time, const Interval& interval) { return time < interval.from; });
      if (next != holds_[p].begin() && when < std::prev(next)->until) out.push_back(p);
    }
    return out;
  }

  Result<const Moment*> at(Nanos when) {
    const std::vector<size_t> active = holding(when);
    const auto known = moments_.find(active);
    if (known != moments_.end()) return &known->second;
    Moment moment = start_;
    pb::Scenario document = scenario_.document;
    bool edited = false;
    for (size_t p : active) {
      const pb::Patch& patch = scenario_.timed[p];
      for (const auto& [path, value] : sorted_assignments(patch.set())) {
        RH_TRY(int fields, set_path(document, path, value));
        (void)fields;
        edited = true;
      }
      if (patch.has_slow_rank()) {
        if (patch.slow_rank().has_rank() && moment.speeds.count(patch.slow_rank().rank()) == 0) {
          return fail(Code::kBadInput,
                      fmt::format("there is no rank {} in the job", patch.slow_rank().rank()),
                      "slow-rank", "ranks count from 0");
        }
        RH_TRY(const std::vector<RankRange> slow, slowed_ranks(patch.slow_rank()));
        for (auto& [rank, speed] : moment.speeds) {
          const auto holds = [&, rank = rank](const RankRange& range) { return range.holds(rank); };
          if (std::any_of(slow.begin(), slow.end(), holds)) {
            speed /= patch.slow_rank().slowdown();
          }
        }
      }
    }
    if (edited) {
      if (auto filled = fill(document, moment); !filled) return tl::unexpected(filled.error());
    }
    return &moments_.emplace(active, std::move(moment)).first->second;
  }

  Result<void> fill(const pb::Scenario& document, Moment& moment) const {
    RH_TRY(platforms::Links links, platforms::Links::build(document.platform()));
    bool same = links.size() == links_.size();
    for (size_t l = 0; same && l < links.size(); ++l) {
      const auto id = static_cast<LinkId>(l);
      same = links[id].name == links_[id].name;
    }
    if (!same) {
      return fail(Code::kBadInput, "the patch changes which links there are", "from, until",
                  "leave the interval out, or change bandwidth, down or speed only");
    }
    moment.capacities = effective_capacities(document.platform(), links);
    for (const pb::RankLaunch& rank : document.launch().ranks()) {
      moment.speeds[rank.rank()] *= gpu_speed(document, rank) / gpu_speed(scenario_.document, rank);
    }
    return {};
  }

  void change(Nanos when, const Moment& before, const Moment& after) {
    for (size_t l = 0; l < after.capacities.size(); ++l) {
      if (before.capacities[l] == after.capacities[l]) continue;
      const auto link = static_cast<LinkId>(l);
      out_.capacities.push_back({when, link, after.capacities[l]});
      if (!(after.capacities[l] > 0)) {
        down_since_[l] = when;
      } else if (down_since_[l] >= 0) {
        out_.outages.push_back({link, down_since_[l], when});
        down_since_[l] = -1;
      }
    }
    for (const auto& [rank, speed] : after.speeds) {
      if (before.speeds.at(rank) != speed) out_.speeds.push_back({when, rank, speed});
    }
  }

  Result<void> stop(const pb::StopRank& how) {
    if (how.has_rank() == how.has_node()) {
      return fail(Code::kBadInput, "either rank or node says who stops", "stop-rank",
                  "write stop-rank: {rank: 3, at: 2s}");
    }
    bool found = false;
    for (const pb::RankLaunch& rank : scenario_.document.launch().ranks()) {
      if (how.has_rank() ? rank.rank() != how.rank() : rank.node() != how.node()) continue;
      found = true;
      out_.stopped.push_back({rank.rank(), how.at(), how.silent(), how.text()});
    }
    if (found) return {};
    return fail(Code::kBadInput,
                how.has_rank() ? fmt::format("there is no rank {}", how.rank())
                               : fmt::format("no rank runs on node {}", how.node()),
                "stop-rank", "ranks and nodes count from 0");
  }

  Result<void> background(const pb::Patch& patch) {
    const pb::BackgroundTraffic& traffic = patch.background_traffic();
    const pb::Platform& platform = scenario_.document.platform();
    for (uint32_t node : {traffic.from_node(), traffic.to_node()}) {
      if (node >= static_cast<uint32_t>(platform.nodes_size()) ||
          traffic.nic() >=
              static_cast<uint32_t>(platform.nodes(static_cast<int>(node)).nics_size())) {
        return fail(Code::kBadInput,
                    fmt::format("there is no NIC {} on node {}", traffic.nic(), node),
                    "background-traffic", "nodes and NICs count from 0");
      }
    }
    if (traffic.from_node() == traffic.to_node()) {
      return fail(Code::kBadInput, "both ends are on the same node", "background-traffic",
                  "name two nodes");
    }
    Background flow;
    flow.rate = traffic.rate();
    links_.network(traffic.from_node(), traffic.nic(), traffic.to_node(), traffic.nic(), 0,
                   flow.route);
    for (const Interval& interval : intervals_of(patch)) {
      flow.from = interval.from;
      flow.until = interval.until;
      out_.background.push_back(flow);
    }
    return {};
  }

  const Scenario& scenario_;
  const platforms::Links& links_;
  Moment start_;
  std::vector<std::vector<Interval>> holds_;       // by timed patch
  std::map<std::vector<size_t>, Moment> moments_;  // by the patches that hold
  std::vector<Nanos> down_since_;                  // by link; -1: it is up
  Schedule out_;
};

}  // namespace

bool is_timed(const pb::Patch& patch) {
  return patch.has_from() || patch.has_until() || patch.has_every() || patch.has_lasting();
}

Result<void> check_interval(const pb::Patch& patch) {
  const Nanos until = patch.has_until() ? patch.until() : Outage::kForever;
  if (until <= patch.from()) {
    return fail(Code::kBadInput, "the patch ends before it begins", "until", "raise until");
  }
  if (patch.has_every() != patch.has_lasting()) {
    return fail(Code::kBadInput, "every and lasting go together", "every, lasting",
                "write {every: 2s, lasting: 200ms}");
  }
  if (patch.has_every()) {
    if (!patch.has_until()) {
      return fail(Code::kBadInput, "a patch that comes and goes needs an end", "every",
                  "add until");
    }
    if (patch.every() <= 0 || patch.lasting() <= 0 || patch.lasting() > patch.every()) {
      return fail(Code::kBadInput, "lasting is above 0 and at most every", "every, lasting",
                  "write {every: 2s, lasting: 200ms}");
    }
    if ((until - patch.from()) / patch.every() > kMostIntervals) {
      return fail(Code::kLimit,
                  fmt::format("it would come and go more than {} times", kMostIntervals), "every",
                  "raise every or lower until");
    }
  }
  if (const Transform* transform = transform_of(patch); transform && !transform->interval) {
    std::vector<std::string> those = {"assignments"};
    for (const Transform& each : transforms()) {
      if (each.interval) those.emplace_back(each.name);
    }
    return fail(Code::kBadInput, fmt::format("{} does not take an interval", transform->name),
                "from, until", fmt::format("only {} do", join_words(those)));
  }
  if (patch.has_slow_rank()) {
    if (auto slow = slowed_ranks(patch.slow_rank()); !slow) return tl::unexpected(slow.error());
  }
  for (const auto& [path, value] : sorted_assignments(patch.set())) {
    if (path.rfind("platform.", 0) == 0) continue;
    return fail(Code::kBadInput, "only the platform changes while a run goes on", path,
                "leave the interval out");
  }
  return {};
}

std::vector<Interval> intervals_of(const pb::Patch& patch) {
  const Nanos until = patch.has_until() ? patch.until() : Outage::kForever;
  if (!patch.has_every() || patch.lasting() == patch.every()) return {{patch.from(), until}};
  std::vector<Interval> out;
  for (Nanos from = patch.from(); from < until; from += patch.every()) {
    out.push_back({from, std::min(until, from + patch.lasting())});
  }
  return out;
}

Result<Schedule> schedule_of(const Scenario& scenario, const platforms::Links& links,
                             const std::vector<BytesPerSec>& capacities) {
  return Scheduler(scenario, links, capacities).make();
}

}  // namespace rehearse::sim
