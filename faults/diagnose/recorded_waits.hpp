// SPDX-License-Identifier: Apache-2.0
// Who waits for whom, from what people can look at: flight recorder dumps, else the calls in which ranks are seen (stack
// traces, NCCL's log of calls). The simulator knows more: whether somebody would still have come. Pure functions.
//
//   dumps      A rank waits in the calls that it runs and has not ended. It waits for the members of the group whose dump
//              does not show that they run or ended the call, and for those that left no dump, unless their watchdog says
//              that they gave that call up; in a send or recv for its peer, unless that runs the opposite. Dumps that tell of no call whether it runs: in the first that has not
//              ended, for members that have not put it into their queue.
//   no dumps   A rank waits for the ranks that are seen in no call and gave none up; in a group of all ranks also for those
//              that are seen in another one.
#pragma once

#include "sim/proto/outcome.pb.h"

namespace rehearse::faults {

// The waits of `run` as they can be told from its dumps or, without any, from the calls that its waits name. What its waits
// say about whom they are for is not looked at.
[[nodiscard]] google::protobuf::RepeatedPtrField<pb::Wait> recorded_waits(const pb::Outcome& run);

}  // namespace rehearse::faults
