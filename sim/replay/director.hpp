// SPDX-License-Identifier: Apache-2.0
// Who changes things while a replay runs: a Director is told when its timers fire and acts on the
// Stage (capacities of links, speeds of GPUs, ranks that stop). Patches on an interval of time,
// deaths and retry timers are directors; the replay knows nothing of them. Ranks are positions in
// Program::ranks. Everything takes effect at the simulated time of the call.
#pragma once

#include <cstdint>

#include "sim/fabric/fabric.hpp"

namespace rehearse::sim {

class Stage {
 public:
  virtual ~Stage() = default;
  [[nodiscard]] virtual Nanos now() const = 0;
  // Calls Director::on_timer(tag) at `when`; tags below 2^60.
  virtual void timer(Nanos when, uint64_t tag) = 0;
  // 0 takes the link down. False when Director::declare() did not keep the link.
  virtual bool set_capacity(LinkId link, BytesPerSec capacity) = 0;
  // Traffic that is not the job's, over a route that declare() added; ends with
  // Director::on_flow_end(tag).
  virtual void start_flow(RouteId route, double bytes, uint64_t tag) = 0;
  // GPU work of the rank, also what runs now, goes on `speed` times as fast as the program says;
  // 0: it stands still.
  virtual void set_gpu_speed(size_t rank, double speed) = 0;
  // The rank is no more: its lanes stop where they are, calls that it is in never end.
  virtual void stop_rank(size_t rank) = 0;
  // Since when the first of the job's calls that cross the link has been moving data, or tried to;
  // -1: none does.
  [[nodiscard]] virtual Nanos crossing_since(LinkId link) const = 0;
  // No lane can go on by itself and no flow of the job can move: only directors' timers are left.
  [[nodiscard]] virtual bool idle() const = 0;
};

class Director {
 public:
  virtual ~Director() = default;
  // Before the run: keeps links whose capacity will change, adds routes of its own.
  virtual void declare(Fabric& fabric) = 0;
  // At time 0.
  virtual void begin(Stage& stage) = 0;
  virtual void on_timer(Stage& stage, uint64_t tag) = 0;
  virtual void on_flow_end(Stage& /*stage*/, uint64_t /*tag*/) {}
};

}  // namespace rehearse::sim
