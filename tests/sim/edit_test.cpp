// SPDX-License-Identifier: Apache-2.0
// Transforms of what ranks call and how long they work.
#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "sim/scenario/scenario.hpp"
#include "sim/scenario/transform.hpp"
#include "tests/project.hpp"
#include "tests/sim/small_trace.hpp"

namespace rehearse::edit_test {
using namespace rehearse;
using namespace rehearse::sim;
using traces::RankProgram;

namespace {

constexpr Nanos kMs = 1'000'000;

// Three steps of two ranks: a kernel, an all-reduce of both, one of rank 0 and 1 under another name, a kernel.
traces::Program job() {
  tests::SmallTrace trace(3);
  for (int step = 0; step < 3; ++step) {
    for (uint32_t r = 0; r < 3; ++r) trace.kernel(r, kMs);
    trace.all_reduce({0, 1, 2}, 1000);
    trace.all_reduce({0, 1}, 4000);
    for (uint32_t r = 0; r < 3; ++r) trace.kernel(r, 2 * kMs);
    trace.end_step();
  }
  auto program = traces::build_program(trace.trace());
  REQUIRE(program);
  REQUIRE(program->steps == 3);
  return *program;
}

Result<void> edit(traces::Program& program, const std::string& yaml) {
  const auto patch = parse_patch(yaml, "test");
  if (!patch) return tl::unexpected(patch.error());
  return transform(program, *patch);
}

Nanos gpu_time(const RankProgram& rank) {
  Nanos sum = 0;
  for (size_t op = 0; op < rank.size(); ++op) {
    if (rank.kind[op] == traces::OpKind::kKernel) sum += rank.duration[op];
  }
  return sum;
}

// Every index points where it should.
void check_whole(const RankProgram& rank) {
  REQUIRE(rank.calls.size() == rank.call_op.size());
  for (size_t c = 0; c < rank.calls.size(); ++c) CHECK(rank.call[rank.call_op[c]] == c);
  CHECK(rank.edge_begin.size() == rank.size() + 1);
  CHECK(rank.edge_begin.back() == rank.edges.size());
  CHECK(rank.lane_begin.back() == rank.size());
  for (traces::OpId op = 0; op < rank.size(); ++op) {
    for (traces::OpId from : rank.predecessors(op)) CHECK(from < rank.size());
  }
}

}  // namespace

TEST_CASE("assignments come in the order of their paths", "[sim][edit]") {
  pb::Patch patch;
  for (char c = 'z'; c >= 'a'; --c) (*patch.mutable_set())[std::string(1, c)] = "1";
  const Assignments sorted = sorted_assignments(patch.set());
  CHECK(sorted.size() == 26);
  CHECK(std::is_sorted(sorted.begin(), sorted.end()));
}

TEST_CASE("a rank with fewer steps makes the calls of those and no more", "[sim][edit]") {
  traces::Program program = job();
  REQUIRE(edit(program, "end-early: {rank: 1, steps: 2}"));
  CHECK(program.ranks[0].calls.size() == 6);
  CHECK(program.ranks[1].calls.size() == 4);
  CHECK(gpu_time(program.ranks[1]) == 6 * kMs);
  CHECK(program.findings.count("uneven-steps") == 1);
  check_whole(program.ranks[1]);
  CHECK_FALSE(edit(program, "end-early: {rank: 1, steps: 3}"));
  CHECK_FALSE(edit(program, "end-early: {rank: 9, steps: 1}"));
}

TEST_CASE("an extra collective moves the later ones of its communicator", "[sim][edit]") {
  traces::Program program = job();
  const std::vector<traces::Call> before = program.ranks[0].calls;
  REQUIRE(edit(program, "extra-collective: {rank: 0, nth: 2}"));
  const RankProgram& rank = program.ranks[0];
  REQUIRE(rank.calls.size() == before.size() + 1);
  CHECK(rank.calls[2].sequence == before[2].sequence);
  CHECK(rank.calls[3].sequence == before[2].sequence + 1);
  for (size_t c = 4; c < rank.calls.size(); ++c) {
    const bool same = rank.calls[c].communicator == before[2].communicator;
    CHECK(rank.calls[c].sequence == before[c - 1].sequence + (same ? 1 : 0));
  }
  check_whole(rank);
  CHECK_FALSE(edit(program, "extra-collective: {rank: 0, nth: 99}"));
}

TEST_CASE("sizes of one collective and of all reductions change", "[sim][edit]") {
  traces::Program program = job();
  REQUIRE(edit(program, "resize-collective: {rank: 1, nth: 1, factor: 0.5}"));
  CHECK(program.ranks[1].calls[1].bytes_in == 2000);
  CHECK(program.ranks[0].calls[1].bytes_in == 4000);
  REQUIRE(edit(program, "scale-collectives: 3"));
  // The largest group that reduces has three members.
  CHECK(program.ranks[0].calls[0].bytes_in == 3000);
  CHECK(program.ranks[0].calls[1].bytes_in == 4000);
}

TEST_CASE("a rank makes two calls of different communicators in the other order", "[sim][edit]") {
  traces::Program program = job();
  const traces::Program before = job();
  REQUIRE(edit(program, "swap-collectives: {rank: 0}"));
  const RankProgram &swapped = program.ranks[0], &was = before.ranks[0];
  CHECK(swapped.call_op == was.call_op);
  for (const size_t c : {0, 1}) {
    CHECK(swapped.calls[c].communicator == was.calls[1 - c].communicator);
    CHECK(swapped.calls[c].bytes_in == was.calls[1 - c].bytes_in);
    CHECK(swapped.name[was.call_op[c]] == was.name[was.call_op[1 - c]]);
  }
  // One of the two has the GPU: on every rank that makes both the second waits.
  for (const uint32_t r : {0, 1}) {
    const std::vector<traces::OpId>& ops = before.ranks[r].call_op;
    const auto causes = program.ranks[r].predecessors(ops[1]);
    CHECK(std::find(causes.begin(), causes.end(), ops[0]) != causes.end());
  }
  CHECK(program.ranks[1].calls[0].communicator == before.ranks[1].calls[0].communicator);
  CHECK(program.ranks[2].edges == before.ranks[2].edges);
  for (const RankProgram& rank : program.ranks) check_whole(rank);
  CHECK_FALSE(edit(program, "swap-collectives: {rank: 2}"));
}

TEST_CASE("host, copies, calls and steps take longer where asked", "[sim][edit]") {
  traces::Program program = job();
  const RankProgram before = program.ranks[0];
  REQUIRE(edit(program, "slow-host: {rank: 0, slowdown: 3}"));
  for (traces::LaneId l = 0; l < before.lanes.size(); ++l) {
    for (traces::OpId op = before.lane_begin[l]; op < before.lane_begin[l + 1]; ++op) {
      const Nanos factor = before.on_gpu(l) ? 1 : 3;
      CHECK(program.ranks[0].duration[op] == factor * before.duration[op]);
    }
  }
  REQUIRE(edit(program, "delay-calls: {rank: 0, delay: 5ms}"));
  for (traces::OpId op : before.call_op)
    CHECK(program.ranks[0].gap[op] == before.gap[op] + 5 * kMs);
  traces::Program varied = job(), again = job();
  REQUIRE(edit(varied, "vary-steps: {spread: 0.5, seed: 7}"));
  REQUIRE(edit(again, "vary-steps: {spread: 0.5, seed: 7}"));
  for (size_t r = 0; r < 3; ++r) {
    CHECK(gpu_time(varied.ranks[r]) > gpu_time(before));
    CHECK(gpu_time(varied.ranks[r]) <= gpu_time(before) * 3 / 2);
    CHECK(varied.ranks[r].duration == again.ranks[r].duration);
  }
  CHECK(gpu_time(varied.ranks[0]) != gpu_time(varied.ranks[1]));
}

TEST_CASE("without overlap what follows the cause of a call waits for it", "[sim][edit]") {
  traces::Program program = job();
  const size_t edges = program.ranks[0].edges.size();
  REQUIRE(edit(program, "no-overlap: {}"));
  CHECK(program.ranks[0].edges.size() > edges);
  for (const RankProgram& rank : program.ranks) check_whole(rank);
}

// Steps that are repeated share what is written of them (traces/program/repeat.hpp); these wrote past its end.
TEST_CASE("calls of repeated steps are edited as if every step were written down", "[sim][edit]") {
  for (const char* patch :
       {"extra-collective: {rank: 1, nth: 0}", "extra-collective: {rank: 1, nth: 7}",
        "swap-collectives: {rank: 0, nth: 3}", "no-overlap: {}"}) {
    INFO(patch);
    traces::Program program = job();
    REQUIRE(edit(program, "steps: 4"));
    const size_t operations = program.ranks[1].size();
    REQUIRE(edit(program, patch));
    const bool extra = std::string_view(patch).starts_with("extra");
    CHECK(program.ranks[1].size() == operations + (extra ? 1 : 0));
    for (const RankProgram& rank : program.ranks) {
      if (rank.repeat == nullptr) check_whole(rank);
    }
    check_whole(program.ranks[1]);
  }
}

TEST_CASE("copies stay where they are when a collective comes before them", "[sim][edit]") {
  tests::SmallTrace trace(2);
  trace.all_reduce({0, 1}, 1000);
  for (uint32_t r = 0; r < 2; ++r) trace.copy(r, traces::CopyDirection::kHostToDevice, 4096, kMs);
  trace.end_step();
  auto program = traces::build_program(trace.trace());
  REQUIRE(program);
  REQUIRE(edit(*program, "extra-collective: {rank: 0, nth: 0}"));
  for (const RankProgram& rank : program->ranks) {
    REQUIRE(rank.transfers.size() == 1);
    CHECK(rank.kind[rank.transfers[0].op] == traces::OpKind::kCopy);
  }
}

TEST_CASE("several ranks are slowed by ranges; those that are not there are left out",
          "[sim][edit]") {
  traces::Program program = job();
  REQUIRE(edit(program, "slow-rank: {ranks: \"1-2,7\", slowdown: 2}"));
  CHECK(gpu_time(program.ranks[0]) == 9 * kMs);
  CHECK(gpu_time(program.ranks[1]) == 18 * kMs);
  CHECK(gpu_time(program.ranks[2]) == 18 * kMs);
  for (const char* bad : {"3-1", "x", "1-", ",", "1,,2"}) {
    INFO(bad);
    CHECK_FALSE(edit(program, std::string("slow-rank: {ranks: \"") + bad + "\", slowdown: 2}"));
  }
}

TEST_CASE("every transform stands in the table of the documentation", "[sim][transform]") {
  std::ifstream file(tests::project() / "docs/what-happens-in-a-run.md");
  std::stringstream text;
  text << file.rdbuf();
  const auto* transforms = pb::Patch::descriptor()->FindOneofByName("transform");
  REQUIRE(transforms != nullptr);
  for (int i = 0; i < transforms->field_count(); ++i) {
    std::string name = transforms->field(i)->name();
    std::replace(name.begin(), name.end(), '_', '-');
    INFO(name);
    CHECK(text.str().find("`" + name + ": ") != std::string::npos);
  }
}

}  // namespace rehearse::edit_test
