// SPDX-License-Identifier: Apache-2.0
// Steps of a job that was recorded on all its workers, computed again from what each worker did:
// work takes its recorded time or a common one, calls end when the last member has come plus a
// transfer time. What-ifs of the straggler study ("Understanding Stragglers in Large Model Training
// Using What-if Analysis") are of this kind: replace the work of slow workers and see what a step
// would have taken. Assumes that a worker does one thing after the other, calls that begin together
// being one batched exchange. Pure functions.
#pragma once

#include <compare>
#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/units.hpp"
#include "traces/model/trace.hpp"

namespace rehearse::validation {

// Who meets in a call: a collective of a communicator, or a message between two of its members.
struct MeetingKey {
  uint32_t communicator = 0;
  int32_t from = -1, to = -1;
  int64_t sequence = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): a comparison with 0
  auto operator<=>(const MeetingKey&) const = default;
};

struct RecordedCall {
  MeetingKey key;
  uint32_t name = 0;  // string id
};

// Work, or calls that began together.
struct RecordedUnit {
  Nanos start = 0;  // from the start of the step
  Nanos end = 0;
  uint32_t name = 0;  // string id; of calls, the first one's
  std::vector<RecordedCall> calls;
};

struct RecordedStep {
  std::vector<std::vector<RecordedUnit>> workers;  // by position of the rank in the trace
  [[nodiscard]] Nanos measured() const;
};

// Steps that every rank has, in order. kBadInput when there are none.
[[nodiscard]] Result<std::vector<RecordedStep>> recorded_steps(const traces::Trace& trace);

// What does not depend on who is slow.
struct StepCosts {
  std::map<uint32_t, Nanos> transfer;                   // by name of the call
  std::map<std::pair<size_t, uint32_t>, Nanos> before;  // of the host, by worker and name
};
// Transfer: median time from the last arrival to the end. Host: the tenth percentile of the time between two units; what
// comes only sometimes is a wait that the recording does not show.
[[nodiscard]] StepCosts costs_of(const std::vector<RecordedStep>& steps);

enum class HostCosts { kCounted, kNone };
// Time of a step with the recorded work, or with `work` by name in its place. kBadInput when calls of the recording never meet.
[[nodiscard]] Result<Nanos> replayed(const RecordedStep& step, const StepCosts& costs,
                                     HostCosts host, const std::map<uint32_t, Nanos>* work);

// Mean duration of each kind of work over all workers and steps.
[[nodiscard]] std::map<uint32_t, Nanos> mean_work(const std::vector<RecordedStep>& steps);

}  // namespace rehearse::validation
