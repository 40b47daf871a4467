// SPDX-License-Identifier: Apache-2.0
// Who is to blame for a hang, from the flight recorders of its ranks alone. Group by group (the same name
// and members on all ranks) the collectives that never ended are compared:
//
//   never entered   others have a call pending that this rank never issued, and it waits for nobody
//   stopped first   its oldest pending call is older than its peers': they saw calls end that it did not
//   never started   it has put the call into its queue as the others, but only theirs run
//   ahead           it alone waits in a call that most others never issued
//   other size      it came to the same call with tensors of another size than most
//   left out        likewise, and its calls from there on are those that its peers make one later
//   made one more   likewise, those that its peers made one earlier
//   no dump         all others wait, and this rank has left nothing
//
// Point-to-point calls are not symmetrical and are left out. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "faults/fault_catalogue.hpp"
#include "faults/proto/diagnosis.pb.h"
#include "traces/proto/evidence.pb.h"

namespace rehearse::faults {

enum class Divergence {
  kNeverEntered,
  kStoppedFirst,
  kNeverStarted,
  kAhead,
  kOtherSize,
  kLeftOut,
  kOneMore,
  kNoDump
};

struct Diverging {
  uint32_t rank = 0;
  Divergence how = Divergence::kNeverEntered;
  uint32_t groups = 0;  // in which it shows
  std::string why;      // of the first of them
};

// Those to blame, by rank; empty when all wait alike or nothing is pending. Dumps without a rank are left out.
[[nodiscard]] std::vector<Diverging> compare_recorders(
    std::span<const pb::FlightRecorder> recorders);

// The same as a diagnosis: faults of the catalogue whose patches make ranks diverge in that way, ranked by
// rules. Healthy when nobody waits; unknown when all wait alike.
[[nodiscard]] pb::Diagnosis diagnose_recorders(std::span<const pb::FlightRecorder> recorders,
                                               const FaultCatalogue& catalogue);

}  // namespace rehearse::faults
