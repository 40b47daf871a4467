// SPDX-License-Identifier: Apache-2.0
#include "sim/outcome/link_traffic.hpp"

#include <algorithm>

namespace rehearse::sim {

CapacityHistory::CapacityHistory(const Evidence& evidence) : evidence_(evidence) {
  for (const CapacityChange& change : evidence.schedule.capacities) {
    changes_[change.link].emplace_back(change.at, change.capacity);
  }
  // Outages last until the transport's next try, longer than the schedule says.
  for (const Outage& outage : evidence.schedule.outages) {
    auto& changes = changes_[outage.link];
    BytesPerSec after = evidence.options.capacity[outage.link];
    for (const auto& [at, capacity] : changes) {
      if (at <= outage.until) after = capacity;
    }
    std::erase_if(changes, [&](const auto& change) {
      return change.first >= outage.from && change.first <= outage.until;
    });
    changes.emplace_back(outage.from, 0);
    if (outage.until != Outage::kForever) changes.emplace_back(outage.until, after);
    std::sort(changes.begin(), changes.end());
  }
}

double CapacityHistory::room(LinkId link, double from, double until) const {
  BytesPerSec now = evidence_.options.capacity[link];
  double bytes = 0;
  if (const auto found = changes_.find(link); found != changes_.end()) {
    for (const auto& [at, capacity] : found->second) {
      const auto when = static_cast<double>(at);
      if (when >= until) break;
      if (when > from) {
        bytes += now * (when - from) * 1e-9;
        from = when;
      }
      now = capacity;
    }
  }
  return bytes + now * (until - from) * 1e-9;
}

double CapacityHistory::nominal_room(LinkId link, double from, double until) const {
  BytesPerSec first = evidence_.options.capacity[link];
  if (const auto found = changes_.find(link); found != changes_.end()) {
    for (const auto& [at, capacity] : found->second) first = first > 0 ? first : capacity;
  }
  const BytesPerSec nominal = evidence_.links[link].capacity;
  if (steady(link) || !(first > 0)) return nominal * (until - from) * 1e-9;
  return room(link, from, until) * nominal / first;
}

LinkTraffic::LinkTraffic(const Evidence& evidence)
    : evidence_(evidence), history_(evidence), crowded_(evidence.replayed.counters.shared > 0) {}

const std::vector<LinkTraffic::Mover>& LinkTraffic::movers() {
  if (!found_) find_movers();
  return movers_;
}

void LinkTraffic::find_movers() {
  found_ = true;
  const Evidence& evidence = evidence_;
  const Replayed& replayed = evidence.replayed;
  shapes_ = shape_loads(evidence);
  const auto add = [&](Nanos from, Nanos until, const ShapeLoad& load) {
    const auto end = static_cast<double>(until);
    movers_.push_back({std::min(static_cast<double>(from), end - 1), end, &load});
  };
  for (size_t id = 0; id < replayed.meetings.size(); ++id) {
    const Meeting& meeting = replayed.meetings[id];
    const uint32_t shape = replayed.shape_of[id];
    if (meeting.end < 0 || shape == UINT32_MAX) continue;
    add(meeting.last_arrival + shapes_[shape].latency, meeting.end, shapes_[shape]);
  }
  size_t transfers = 0;
  for (const auto& begins : replayed.transfer_begin) transfers += begins.size();
  transfers_.reserve(transfers);  // movers point into it
  for (size_t r = 0; r < replayed.transfer_begin.size(); ++r) {
    for (size_t i = 0; i < replayed.transfer_begin[r].size(); ++i) {
      const traces::Transfer& transfer = evidence.program.ranks[r].transfers[i];
      const Nanos begin = replayed.transfer_begin[r][i], end = replayed.end[r][transfer.op];
      if (begin < 0 || end < 0) continue;
      transfers_.push_back(transfer_load(evidence, r, transfer));
      add(begin, end, transfers_.back());
    }
  }
  background_.reserve(evidence.schedule.background.size());
  for (const Background& traffic : evidence.schedule.background) {
    const Nanos until = std::min(traffic.until, replayed.end_time);
    if (until <= traffic.from) continue;
    ShapeLoad& load = background_.emplace_back();
    const double bytes = traffic.rate * static_cast<double>(until - traffic.from) * 1e-9;
    for (const LinkId link : traffic.route) load.bytes.emplace_back(link, bytes);
    std::sort(load.bytes.begin(), load.bytes.end());
    add(traffic.from, until, load);
  }
  std::stable_sort(movers_.begin(), movers_.end(),
                   [](const Mover& a, const Mover& b) { return a.from < b.from; });
  double latest = 0;
  for (const Mover& mover : movers_) latest_.push_back(latest = std::max(latest, mover.until));
}

double LinkTraffic::part(const Mover& mover, LinkId link, double from, double until) const {
  from = std::max(from, mover.from);
  until = std::min(until, mover.until);
  if (until <= from) return 0;
  if (!history_.steady(link)) {
    const double all = history_.room(link, mover.from, mover.until);
    if (all > 0) return history_.room(link, from, until) / all;
  }
  return (until - from) / (mover.until - mover.from);
}

LinkId LinkTraffic::bottleneck(uint32_t shape, Nanos from, Nanos until) {
  if (history_.steady() && !crowded_) return evidence_.replayed.shapes[shape].bottleneck;
  if (!found_) find_movers();
  return bottleneck(shapes_[shape], std::min(from + shapes_[shape].latency, until), until);
}

LinkId LinkTraffic::bottleneck(const ShapeLoad& load, Nanos from, Nanos until) {
  const auto begin = static_cast<double>(from);
  const auto end = static_cast<double>(std::max(until, from + 1));
  bytes_.resize(evidence_.links.size());
  for (const auto& [link, own] : load.bytes) bytes_[link] = 0;
  if (crowded_) {
    if (!found_) find_movers();
    const auto past =
        std::lower_bound(movers_.begin(), movers_.end(), end,
                         [](const Mover& mover, double time) { return mover.from < time; });
    for (auto m = past; m != movers_.begin();) {
      --m;
      if (latest_[static_cast<size_t>(m - movers_.begin())] <= begin) break;
      if (m->until <= begin) continue;
      for (const auto& [link, own] : m->load->bytes)
        bytes_[link] += own * part(*m, link, begin, end);
    }
  }
  LinkId found = platforms::kNoLink;
  double fullest = 0;
  for (const auto& [link, own] : load.bytes) {
    // What has not ended is no mover. Without room it takes for ever.
    const double use = std::max(bytes_[link], own) / history_.room(link, begin, end);
    if (!(use > fullest)) continue;
    fullest = use;
    found = link;
  }
  return found;
}

}  // namespace rehearse::sim
