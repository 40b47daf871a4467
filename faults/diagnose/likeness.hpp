// SPDX-License-Identifier: Apache-2.0
// How alike two runs look from outside: a simulated fault against the evidence. The score is a
// weighted mean, 0 to 1, of the parts that both runs show; runs with different verdicts are not
// alike at all.
//
//   completed  step time 0.4 (falls to 1/e at 10 % difference), where each rank's time went 0.3
//              (1/e when 10 % of the step is elsewhere), transports 0.2, use of links 0.2 (1/e when
//              a link is busy 20 % more or less), culprits 0.1
//   hang       ranks waited for 0.4, communicator and sequence number 0.4 (1/e at 2 calls), culprits 0.2
//   crash,     rank that failed first 0.3, phase 0.3, communicator and operation 0.2, kind of error
//   others     text 0.2
//
// Pure functions.
#pragma once

#include <string>
#include <vector>

#include "sim/proto/outcome.pb.h"

namespace rehearse::faults {

struct Likeness {
  double score = 0;
  std::vector<std::string> same;       // what agrees, in words
  std::vector<std::string> different;  // what does not
};

[[nodiscard]] Likeness likeness(const pb::Outcome& evidence, const pb::Outcome& simulated);

}  // namespace rehearse::faults
