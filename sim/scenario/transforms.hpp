// SPDX-License-Identifier: Apache-2.0
// The table of transforms: one row per field of the oneof in sim/proto/patch.proto, with all that the rest of the house
// asks of a kind of transform. What is asked of one field of a transform (that it is a rank, a node, that it must be
// given) stands at the field as an option. A new transform is a message and a row; of those that edit the program, the trace or
// the scenario the row names the function. What acts on the run or on memory is read where that is simulated
// (sim/scenario/timed.cpp, sim/memory/account.cpp), and a rank that ends is known by name to what begins later or is made
// smaller (sim/snapshot/travel.cpp, sim/shrink/script.cpp, faults/shrink/shrink.cpp, faults/diagnose/recorders.cpp). Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/error.hpp"
#include "sim/proto/patch.pb.h"
#include "traces/program/program.hpp"

namespace rehearse::sim {

struct Scenario;

enum class ActsOn : uint8_t {
  kProgram,   // operations and calls, before the replay: Transform::edit
  kMemory,    // the account of allocations (sim/memory)
  kRun,       // the run as it goes on (sim/scenario/timed.hpp)
  kTrace,     // which trace is replayed: Transform::apply
  kDocument,  // the scenario itself: Transform::apply; nothing is left that could be undone
};

// Kinds of change whose predictions are validated each for itself (validation/certainty).
enum class Change : uint8_t {
  kAlgorithm,    // variables by which NCCL chooses algorithm, protocol, channels and chunks
  kTransport,    // variables by which bytes take another way: adapters, peer access, sockets
  kEnvironment,  // other variables and launch settings
  kBandwidth,    // what the machines offer
  kScale,        // ranks
  kLayout,       // model, batch or parallel layout
  kCompute,      // speed of ranks
  kProgram,      // who makes which call
};
constexpr size_t kChanges = 8;

// How the calls of the rank part from those of its peers.
enum class Parting : uint8_t { kNone, kFewer, kMore, kOtherSize, kOtherOrder, kEnds };

// Which steps GPU work or the gaps before it take longer in.
enum class Straggling : uint8_t { kNone, kEveryStep, kDrawnSteps, kSomeSteps };

// What a run that completes shows of it; sets of these are joined by |.
namespace shows {
constexpr uint8_t kNothing = 0;
constexpr uint8_t kCompute = 1 << 0;  // times
constexpr uint8_t kHost = 1 << 1;
constexpr uint8_t kIdle = 1 << 2;
constexpr uint8_t kCalls = 1 << 3;  // numbers or bytes of collectives
constexpr uint8_t kBytes = 1 << 4;  // bytes, by far more than rounding
constexpr uint8_t kMemory = 1 << 5;
}  // namespace shows

struct Transform {
  pb::Patch::TransformCase field = pb::Patch::TRANSFORM_NOT_SET;
  std::string_view name;  // as people write it
  ActsOn acts_on = ActsOn::kProgram;
  bool interval = false;  // may hold for a part of the run
  Change change = Change::kProgram;
  // At least one of these is to be seen in a run of it that completes; nothing: not known.
  uint8_t shows = shows::kNothing;
  bool other_traffic =
      false;  // can change which collectives are made and how many bytes they carry
  Parting parting = Parting::kNone;
  Straggling straggling = Straggling::kNone;
  // kProgram: edits it. kTrace, kDocument: edits the scenario, assignments of the patch being made. Else null.
  Result<void> (*edit)(traces::Program& program, const pb::Patch& patch) = nullptr;
  Result<void> (*apply)(Scenario& scenario, const pb::Patch& patch) = nullptr;
};

// In the order of the oneof.
[[nodiscard]] std::span<const Transform> transforms();

// The row of the patch's transform; null: it has none.
[[nodiscard]] const Transform* transform_of(const pb::Patch& patch);
// By name, `_` being `-`; null: there is none.
[[nodiscard]] const Transform* find_transform(std::string_view name);

// Does the patch's transform act on `what`, part from its peers, straggle so?
[[nodiscard]] bool acts_on(const pb::Patch& patch, ActsOn what);
[[nodiscard]] bool parts(const pb::Patch& patch, Parting how);
[[nodiscard]] bool straggles(const pb::Patch& patch, Straggling how);

}  // namespace rehearse::sim
