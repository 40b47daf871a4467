// SPDX-License-Identifier: Apache-2.0
// The same run with some of it taking no time: replayed again, so that ranks meet anew, links are shared anew and
// kernels that no longer run beside a waiting collective go at their full rate. On the plain solver
// (make_reference_fabric), because SimGrid allows one run per process; both agree to rounding. One replay per
// question.
#pragma once

#include <functional>

#include "sim/outcome/outcome.hpp"

namespace rehearse::sim {

class Retimed {
 public:
  // Of a run that completed. `evidence` must outlive this.
  explicit Retimed(const Evidence& evidence);

  struct Without {
    std::function<bool(size_t rank, OpId op)> operation;  // own work that takes no time
    std::function<bool(const traces::Call& call)> call;   // whose data moves in no time
    LinkId link = platforms::kNoLink;  // a wire, both directions, that never holds anything up
  };
  // Mean time of a step, of the whole run when it has no steps; -1: it would not end.
  [[nodiscard]] Nanos step(const Without& without);

 private:
  const Evidence& evidence_;
  traces::Program program_;  // to change and change back
};

}  // namespace rehearse::sim
