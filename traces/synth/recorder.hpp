// SPDX-License-Identifier: Apache-2.0
// Sink of a Player that writes the operations of one rank. Correlation and event ids count from 1.
#pragma once

#include <vector>

#include "traces/model/trace.hpp"
#include "traces/synth/layout.hpp"
#include "traces/synth/player.hpp"

namespace rehearse::synth {

// String ids every rank needs, interned before the first rank is played.
struct CommonNames {
  uint32_t launch = 0;          // cudaLaunchKernel
  uint32_t launch_nccl = 0;     // cudaLaunchKernelExC
  uint32_t copy = 0;            // cudaMemcpyAsync
  uint32_t memset = 0;          // cudaMemsetAsync
  std::vector<uint32_t> steps;  // ProfilerStep#N
};

class Recorder {
 public:
  static constexpr bool kRecords = true;
  Recorder(const Script& script, const Layout& layout, const CommonNames& names,
           traces::RankTrace& out);

  void begin_step(uint32_t step, Nanos at);
  void end_step(Nanos at);
  void memory(const Instruction& i, Nanos at);
  void launch(const Instruction& i, Nanos start, Nanos duration);
  void host(const Instruction& i, Nanos start, Nanos duration);
  void work(const Instruction& i, Nanos start, Nanos duration);
  void event(const Instruction& i, Nanos start, Nanos duration);
  void begin(const Instruction& i, Nanos at);
  void end(const Instruction& i, Nanos at);
  void call(const Instruction& i, const Place& place, Nanos start, Nanos duration);

 private:
  const Script& script_;
  const Layout& layout_;
  const CommonNames& names_;
  traces::RankTrace& out_;
  int64_t correlation_ = 0;
  uint64_t events_ = 0;
  std::vector<uint64_t> event_of_slot_;
  std::vector<size_t> open_;
  size_t step_op_ = 0;
};

}  // namespace rehearse::synth
