// SPDX-License-Identifier: Apache-2.0
// Ports that take over from others (NCCL_IB_RESILIENCY_PORT_FAILOVER): where NCCL sees the ports of
// one adapter as one device, a port that is lost for longer than the retries of its queue pairs
// hands its connections to the other one. Without NCCL_IB_RESILIENCY_PORT_RECOVERY they stay there.
#pragma once

#include "sim/scenario/scenario.hpp"
#include "sim/schedule.hpp"

namespace rehearse::sim {

// Ends outages of such ports at the moment of take-over and halves the other port's rate between the
// two: both carried as much, now one carries all. `capacities` are those of the start of the run.
// Every rank must have the variable: connections end on both sides. Keeps the schedule's orders.
void take_over(const Scenario& scenario, const platforms::Links& links,
               const std::vector<BytesPerSec>& capacities, Schedule& schedule);

}  // namespace rehearse::sim
