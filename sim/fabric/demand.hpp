// SPDX-License-Identifier: Apache-2.0
// Which flows need a solver. A flow alone on its route goes at its own bound: the tightest capacity / weight on it.
// A constraint on which the bounds of all flows together fit holds nobody back, so a flow all of whose constraints
// fit goes at its bound whatever the others do (a max-min fair share is never more than the bound, and the bounds are
// feasible): it is free. Only flows over a crowded constraint share, and those that were free there are told to.
// What shares stays with the solver to its end; on constraints that are not crowded it may see fewer flows than there
// are, which cannot bind there.
//
// Constraints that may change their capacity have no bound: routes over them are never free.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"

namespace rehearse::sim {

class Demand {
 public:
  struct Use {
    uint32_t constraint = 0;
    uint32_t weight = 1;
  };
  // By constraint: capacity, and whether it may change. By route: what it uses, each once.
  Demand(std::vector<BytesPerSec> capacity, const std::vector<bool>& changes,
         std::vector<std::vector<Use>> routes);

  // What a flow of the route gets when it is free; 0: never anything.
  [[nodiscard]] BytesPerSec bound(uint32_t route) const { return bound_[route]; }
  // A flow starts on a route. True: it is free. Free flows that must share from now on are appended to
  // `crowded`, in order of constraints and starts.
  bool start(uint32_t flow, uint32_t route, std::vector<uint32_t>& crowded);
  // A free flow shares from now on.
  void hold(uint32_t flow, uint32_t route);
  // A flow that started has gone; `free`: nothing made it share.
  void end(uint32_t flow, uint32_t route, bool free);

 private:
  struct Constraint {
    BytesPerSec capacity = 0;
    double demand = 0;  // bounds x weights of all flows on it
    uint32_t flows = 0;
    std::vector<uint32_t> free;  // those of them that are free
    bool changes = false;
  };
  std::vector<Constraint> constraints_;
  std::vector<std::vector<Use>> routes_;
  std::vector<BytesPerSec> bound_;
  std::vector<bool> shares_;  // by route: never free
};

}  // namespace rehearse::sim
