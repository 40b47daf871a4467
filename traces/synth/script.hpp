// SPDX-License-Identifier: Apache-2.0
// A Script: what one kind of rank does in one step, as instructions in the order in which its host
// threads issue them. Ranks of the same role share a script; Timeline (timeline.hpp) plays it for
// each rank. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "traces/model/trace.hpp"
#include "traces/synth/layout.hpp"

namespace rehearse::synth {

enum class Do : uint8_t {
  kHost,         // `value` ns of work on host lane `lane`
  kKernel,       // launch on `lane`, `value` ns on `stream`
  kMemset,       // the same for a memset
  kCopy,         // the same for copies[index]
  kCall,         // launch calls[index] on `stream`
  kRecord,       // event slot `index` takes the state of `stream`
  kWait,         // `stream` waits for event slot `index`
  kAwaitEvent,   // `lane` blocks until event slot `index`
  kAwaitDevice,  // `lane` blocks until every stream is idle
  kHandOver,     // host lane `stream` goes on not before `lane` is here plus `value` ns
  kMemory,       // `value` bytes allocated (freed when negative) under address `index`
  kBegin,        // annotation `name` opens in slot `index` on `lane`
  kEnd,          // ... and closes
};

struct Instruction {
  Do what = Do::kHost;
  uint8_t lane = 0;
  uint8_t stream = 0;
  uint32_t name = 0;  // string id
  uint32_t index = 0;
  int64_t value = 0;
};

// One collective or point-to-point as every rank of the role makes it.
struct CallSpec {
  Group group = Group::kWorld;
  traces::Collective collective = traces::Collective::kAllReduce;
  Bytes bytes_in = 0;
  Bytes bytes_out = 0;
  traces::DType dtype = traces::DType::kUnknown;
  traces::Reduction reduction = traces::Reduction::kNone;
  int32_t peer = -1;
  Nanos local = 0;   // nominal transfer time inside a node
  Nanos remote = 0;  // ... and between nodes
};

struct Script {
  std::vector<traces::Lane> lanes;
  std::vector<Instruction> once;  // before the first step
  std::vector<Instruction> step;
  std::vector<CallSpec> calls;
  std::vector<traces::Copy> copies;
  uint32_t events = 0;       // event slots used
  uint32_t annotations = 0;  // annotation slots used
};

}  // namespace rehearse::synth
