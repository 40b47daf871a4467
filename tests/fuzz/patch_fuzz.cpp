// SPDX-License-Identifier: Apache-2.0
// Any text as patches of a small scenario, divided by lines of "----": each is refused with words or applied, and the
// program still has the shape that the replay relies on.
#include <algorithm>
#include <memory>
#include <string>

#include "sim/scenario/scenario.hpp"
#include "sim/scenario/transform.hpp"
#include "tests/fuzz/reader_fuzz.hpp"
#include "tests/sim/small_trace.hpp"
#include "traces/program/program.hpp"

using namespace rehearse;

namespace {

sim::Scenario small_scenario() {
  tests::SmallTrace story(4);
  for (int step = 0; step < 2; ++step) {
    for (uint32_t rank = 0; rank < 4; ++rank) {
      story.kernel(rank, 100'000);
      story.copy(rank, traces::CopyDirection::kHostToDevice, 1 << 20, 50'000);
    }
    story.all_reduce({0, 1, 2, 3}, 1 << 20);
    story.exchange(0, 1, 4096);
    story.end_step();
  }
  auto scenario = sim::scenario_of(std::make_shared<traces::Trace>(story.trace()), "fuzz");
  if (!scenario) __builtin_trap();
  return std::move(*scenario);
}

void check_program(const traces::Program& program) {
  for (const traces::RankProgram& rank : program.ranks) {
    if (rank.call_op.size() != rank.calls.size()) __builtin_trap();
    for (const traces::OpId op : rank.call_op) {
      if (op >= rank.size()) __builtin_trap();
    }
    for (const traces::Call& call : rank.calls) {
      if (call.communicator >= program.communicators.size()) __builtin_trap();
    }
    // Of programs that repeat their steps without end the first operations have to do.
    const auto n = static_cast<traces::OpId>(std::min<size_t>(rank.size(), 100'000));
    for (traces::OpId op = 0; op < n; ++op) {
      if (rank.duration[op] < 0 || rank.gap[op] < 0) __builtin_trap();
      for (const traces::OpId before : rank.predecessors(op)) {
        if (before >= rank.size()) __builtin_trap();
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const sim::Scenario fresh = small_scenario();
  static const auto recorded = traces::build_program(*fresh.trace);
  if (!recorded) __builtin_trap();
  sim::Scenario scenario = fresh;
  std::string_view text = traces::fuzz_bytes(data, size);
  for (int i = 0; i < 8 && !text.empty(); ++i) {
    const size_t end = text.find("\n----\n");
    const auto patch = sim::parse_patch(text.substr(0, end), "fuzz");
    if (patch) {
      const auto applied = sim::apply(scenario, *patch);
      if (!applied && applied.error().what.empty()) __builtin_trap();
    } else if (patch.error().what.empty() || patch.error().where.empty()) {
      __builtin_trap();
    }
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 6);
  }
  traces::Program program = *recorded;
  for (const pb::Patch& patch : scenario.transforms) {
    const auto done = sim::transform(program, patch);
    if (!done) {
      if (done.error().what.empty()) __builtin_trap();
      return 0;
    }
    check_program(program);
  }
  return 0;
}
