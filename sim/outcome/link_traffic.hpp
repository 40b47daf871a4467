// SPDX-License-Identifier: Apache-2.0
// What was on links at which time: calls, transfers and traffic of others, each spreading its bytes over the time in
// which it moved them. For reports after a run; the replay itself needs none of it.
#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "sim/outcome/loads.hpp"

namespace rehearse::sim {

// What links could carry while the run went on: patches on an interval of time change it, and a link that is back
// carries nothing before its transport tries again. Times are nanoseconds.
class CapacityHistory {
 public:
  explicit CapacityHistory(const Evidence& evidence);
  // Nothing ever changed on the link.
  [[nodiscard]] bool steady(LinkId link) const { return !changes_.contains(link); }
  [[nodiscard]] bool steady() const { return changes_.empty(); }
  // Bytes that a link could carry in [from, until), and the same by its data sheet.
  [[nodiscard]] double room(LinkId link, double from, double until) const;
  [[nodiscard]] double nominal_room(LinkId link, double from, double until) const;

 private:
  const Evidence& evidence_;
  std::map<LinkId, std::vector<std::pair<Nanos, BytesPerSec>>> changes_;  // in order of time
};

class LinkTraffic {
 public:
  explicit LinkTraffic(const Evidence& evidence);

  // Something that moved bytes over links.
  struct Mover {
    double from = 0, until = 0;
    const ShapeLoad* load = nullptr;
  };
  [[nodiscard]] const std::vector<Mover>& movers();
  [[nodiscard]] const CapacityHistory& history() const { return history_; }
  // The part of a mover's bytes that crossed a link in [from, until).
  [[nodiscard]] double part(const Mover& mover, LinkId link, double from, double until) const;

  // The link that held up a call of this shape, or a transfer, that moved in [from, until): of those on its way the one that was
  // fullest meanwhile, whoever filled it. kNoLink: it crosses none.
  [[nodiscard]] LinkId bottleneck(uint32_t shape, Nanos from, Nanos until);
  [[nodiscard]] LinkId bottleneck(const ShapeLoad& load, Nanos from, Nanos until);

 private:
  void find_movers();

  const Evidence& evidence_;
  CapacityHistory history_;
  bool found_ = false;  // what follows: many runs are reported without it
  std::vector<ShapeLoad> shapes_, transfers_, background_;
  std::vector<Mover> movers_;   // by from
  std::vector<double> latest_;  // the latest `until` of movers_ up to here
  bool crowded_ = false;        // links were shared: who else was there matters
  std::vector<double> bytes_;   // scratch, by link
};

// Share of what the data sheet says that is put on each of `links`, in equal slices of the run. Nothing of a run that took no time.
[[nodiscard]] std::vector<std::vector<double>> use_over_time(LinkTraffic& traffic, Nanos end_time,
                                                             std::span<const LinkId> links,
                                                             int slices);

}  // namespace rehearse::sim
