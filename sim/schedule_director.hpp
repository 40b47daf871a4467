// SPDX-License-Identifier: Apache-2.0
// Carries out a Schedule while the replay runs.
#pragma once

#include <map>
#include <vector>

#include "sim/replay/director.hpp"
#include "sim/schedule.hpp"
#include "traces/program/program.hpp"

namespace rehearse::sim {

// Changes of one moment are made in the order capacities, speeds, stops. A link that comes back under data of the job
// carries nothing before its transport tries again (timers/retries.hpp); what begins in between waits with it. Traffic of others is a flow per
// `kSlice` of its rate, renewed when it has passed and the job still goes on.
class ScheduleDirector final : public Director {
 public:
  ScheduleDirector(const Schedule& schedule, const traces::Program& program);
  void declare(Fabric& fabric) override;
  void begin(Stage& stage) override;
  void on_timer(Stage& stage, uint64_t tag) override;
  void on_flow_end(Stage& stage, uint64_t tag) override;
  // After the run: when links carried nothing, waits for a transport's next try included.
  [[nodiscard]] std::vector<Outage> outages() const;

 private:
  void act(Stage& stage, Nanos when);
  void renew(Stage& stage, size_t background);
  // Something changed and the job may go on: traffic that ended with it comes back.
  void resume(Stage& stage);
  void change(Stage& stage, LinkId link, BytesPerSec capacity);
  // The link is back, or a try of the transport is due: let it carry, or wait for the next try.
  void try_again(Stage& stage, LinkId link);

  const Schedule& schedule_;
  const traces::Program& program_;
  std::vector<Nanos> times_;  // at which something changes
  std::vector<RouteId> routes_;
  std::vector<int> looks_;  // by background: how often the job was found idle in a row
  struct Dead {
    Nanos since = 0;
    BytesPerSec scheduled = 0;  // what the schedule says it has now
    bool waits = false;         // for a timer of try_again()
  };
  std::map<LinkId, Dead> dead_;
  std::vector<Outage> ended_;
};

}  // namespace rehearse::sim
