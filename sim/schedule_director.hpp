// SPDX-License-Identifier: Apache-2.0
// Carries out a Schedule while the replay runs.
#pragma once

#include <vector>

#include "sim/replay/director.hpp"
#include "sim/schedule.hpp"
#include "traces/program/program.hpp"

namespace rehearse::sim {

// Changes of one moment are made in the order capacities, speeds, stops. Traffic of others is a flow per
// `kSlice` of its rate, renewed when it has passed and the job still goes on.
class ScheduleDirector final : public Director {
 public:
  ScheduleDirector(const Schedule& schedule, const traces::Program& program);
  void declare(Fabric& fabric) override;
  void begin(Stage& stage) override;
  void on_timer(Stage& stage, uint64_t tag) override;
  void on_flow_end(Stage& stage, uint64_t tag) override;

 private:
  void act(Stage& stage, Nanos when);
  void renew(Stage& stage, size_t background);

  const Schedule& schedule_;
  const traces::Program& program_;
  std::vector<Nanos> times_;  // at which something changes
  std::vector<RouteId> routes_;
  std::vector<int> looks_;  // by background: how often the job was found idle in a row
};

}  // namespace rehearse::sim
