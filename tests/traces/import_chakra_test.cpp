// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "tests/traces/chakra_sample.hpp"
#include "tests/traces/damage.hpp"
#include "tests/traces/import_samples.hpp"
#include "traces/import/chakra/builder.hpp"
#include "traces/import/chakra/chakra.hpp"
#include "traces/import/chakra/schedule.hpp"
#include "traces/program/program.hpp"

namespace rehearse::import_chakra_test {
using namespace rehearse;
using namespace rehearse::traces;
using samples::ChakraFile;
using samples::ChakraNode;
using samples::find_op;
using samples::import_text;

namespace {

Imported imported(const std::string& bytes, const std::string& name = "job.0.et") {
  auto got = import_text(bytes, {}, name);
  if (!got) FAIL(got.error().message());
  return std::move(*got);
}

Nanos start_of(const Imported& got, const std::string& name) {
  const auto op = find_op(got, name);
  REQUIRE(op);
  return got.trace.ranks[0].ops.start[*op];
}

}  // namespace

TEST_CASE("nodes without times start when what they depend on has ended", "[import][chakra]") {
  ChakraFile file;
  file.add({.id = 1, .name = "forward", .micros = 10, .cpu = false, .stream = 7});
  file.add({.id = 2,
            .name = "sum",
            .type = 7,
            .micros = 5,
            .data = {1},
            .cpu = false,
            .stream = 9,
            .comm_type = 0,
            .comm_size = 4096,
            .group = "0"});
  file.add({.id = 3, .name = "backward", .micros = 20, .data = {1}, .cpu = false, .stream = 7});
  file.add({.id = 4, .name = "step", .micros = 1, .data = {2, 3}, .cpu = false, .stream = 7});
  const Imported got = imported(file.bytes());
  CHECK(start_of(got, "forward") == 0);
  CHECK(start_of(got, "sum") == 10'000);
  CHECK(start_of(got, "backward") == 10'000);
  CHECK(start_of(got, "step") == 30'000);
  CHECK(got.findings.count("times-computed") == 1);
  const Operations& ops = got.trace.ranks[0].ops;
  REQUIRE(ops.calls.size() == 1);
  CHECK(ops.calls[0].collective == Collective::kAllReduce);
  CHECK(ops.calls[0].bytes_in == 4096);
  CHECK(got.trace.communicators.at(ops.calls[0].communicator).id == "0");

  // The order between streams survives: it is an edge of the program.
  const auto program = build_program(got.trace);
  REQUIRE(program);
  size_t edges = 0;
  for (OpId op = 0; op < program->ranks[0].size(); ++op) {
    edges += program->ranks[0].predecessors(op).size();
  }
  CHECK(edges == 2);
}

TEST_CASE("the host node a GPU node depends on is its launch", "[import][chakra]") {
  ChakraFile file;
  file.add({.id = 1, .name = "aten::mm", .micros = 10, .cpu = true, .tid = 1});
  file.add({.id = 2, .name = "aten::add", .micros = 10, .data = {1}, .cpu = true, .tid = 1});
  file.add({.id = 3, .name = "gemm", .micros = 50, .data = {1, 2}, .cpu = false, .tid = 7});
  const Imported got = imported(file.bytes());
  const Operations& ops = got.trace.ranks[0].ops;
  const size_t launch = *find_op(got, "aten::add"), kernel = *find_op(got, "gemm");
  CHECK(ops.kind[launch] == OpKind::kLaunch);
  CHECK(ops.kind[*find_op(got, "aten::mm")] == OpKind::kHost);
  CHECK(ops.correlation[launch] != 0);
  CHECK(ops.correlation[launch] == ops.correlation[kernel]);
  CHECK(ops.start[kernel] == 20'000);
}

TEST_CASE("recorded start times are believed", "[import][chakra]") {
  ChakraFile file;
  file.add({.id = 1, .name = "a", .micros = 10, .start = 1'700'000'000'000'000, .cpu = false});
  file.add({.id = 2,
            .name = "b",
            .micros = 10,
            .start = 1'700'000'000'000'100,
            .data = {1},
            .cpu = false});
  const Imported got = imported(file.bytes());
  CHECK(start_of(got, "b") - start_of(got, "a") == 100'000);
  CHECK(start_of(got, "a") == 1'700'000'000'000'000'000);
  CHECK(got.findings.count("times-computed") == 0);
}

TEST_CASE("a cycle of dependencies is a finding and no node is lost", "[import][chakra]") {
  ChakraFile file;
  file.add({.id = 1, .name = "a", .micros = 10, .data = {3}, .cpu = false});
  file.add({.id = 2, .name = "b", .micros = 10, .data = {1}, .cpu = false});
  file.add({.id = 3, .name = "c", .micros = 10, .data = {2}, .cpu = false});
  file.add({.id = 4, .name = "d", .micros = 10, .data = {4, 99}, .cpu = false});
  const Imported got = imported(file.bytes());
  CHECK(got.trace.operations() == 4);
  CHECK(got.findings.count("dependency-cycle") == 1);
  CHECK(got.findings.count("dependency-on-itself") == 1);
  CHECK(got.findings.count("dependency-missing") == 1);
}

TEST_CASE("odd nodes are kept and said", "[import][chakra]") {
  ChakraFile file;
  file.add({.id = 1, .name = "a", .micros = UINT64_MAX - 4, .cpu = false});
  file.add({.id = 1, .name = "b", .micros = 10, .cpu = false});
  file.add({.id = 3, .name = "c", .type = 77, .micros = 10, .cpu = false});
  file.add({.id = 4,
            .name = "something",
            .type = 7,
            .micros = 10,
            .cpu = false,
            .comm_type = 55,
            .comm_size = 8});
  file.add({.id = 5, .name = "load", .type = 2, .micros = 10, .cpu = false, .tensor_size = 64});
  const Imported got = imported(file.bytes());
  CHECK(got.trace.operations() == 5);
  CHECK(got.findings.count("negative-duration") == 1);
  CHECK(got.findings.count("duplicate-node-id") == 1);
  CHECK(got.findings.count("node-of-unknown-type") == 1);
  CHECK(got.findings.count("collective-unknown") == 1);
  CHECK(got.findings.count("collective-type-unknown") == 1);
  const Operations& ops = got.trace.ranks[0].ops;
  CHECK(ops.copies.at(0).direction == CopyDirection::kHostToDevice);
  CHECK(ops.copies.at(0).bytes == 64);
}

TEST_CASE("ranks, groups and peers of several files fit together", "[import][chakra]") {
  const samples::TempFolder folder;
  std::vector<std::filesystem::path> files;
  for (int rank = 0; rank < 4; ++rank) {
    ChakraFile file;
    file.groups(R"([{"pg_name": "1", "pg_desc": "stage", "pg_size": 2, "ranks": [)" +
                std::string(rank < 2 ? "0, 1" : "2, 3") + "]}]");
    file.add({.id = 1,
              .name = "sum",
              .type = 7,
              .micros = 5,
              .cpu = false,
              .comm_type = 2,
              .comm_size = 100,
              .group = "1"});
    if (rank == 1) {
      file.add({.id = 2,
                .name = "send",
                .type = 5,
                .micros = 5,
                .cpu = false,
                .comm_size = 8,
                .comm_dst = 3});
    }
    if (rank == 3) {
      file.add({.id = 2,
                .name = "recv",
                .type = 6,
                .micros = 5,
                .cpu = false,
                .comm_size = 8,
                .comm_src = 1});
    }
    files.push_back(folder.write("job." + std::to_string(rank) + ".et", file.bytes()));
  }
  SilentReporter silent;
  const auto got = import_files(files, {}, silent);
  if (!got) FAIL(got.error().message());
  REQUIRE(got->trace.ranks.size() == 4);
  CHECK(got->trace.header.world_size() == 4);
  const Call& gather = got->trace.ranks[2].ops.calls.at(0);
  CHECK(got->trace.communicators[gather.communicator].members == std::vector<RankId>{2, 3});
  CHECK(gather.bytes_out == 200);
  const Call& send = got->trace.ranks[1].ops.calls.at(1);
  CHECK(send.collective == Collective::kSend);
  CHECK(send.peer == 3);
  CHECK(got->trace.ranks[3].ops.calls.at(1).peer == 1);

  // A size that no buffer has stays within its limit.
  ChakraFile huge;
  huge.groups(R"([{"pg_name": "1", "pg_desc": "stage", "pg_size": 2, "ranks": [0, 1]}])");
  huge.add({.id = 1,
            .name = "sum",
            .type = 7,
            .micros = 5,
            .cpu = false,
            .comm_type = 2,
            .comm_size = INT64_MAX,
            .group = "1"});
  const auto bounded = import_files({folder.write("huge.0.et", huge.bytes())}, {}, silent);
  REQUIRE(bounded);
  CHECK(bounded->trace.ranks[0].ops.calls.at(0).bytes_out == Bytes{1} << 50);

  // One of them alone: its peer makes the job larger than its files.
  const auto one = import_files({files[1]}, {}, silent);
  REQUIRE(one);
  CHECK(one->trace.header.world_size() == 4);
}

TEST_CASE("groups that nobody lists are the ranks that call on them", "[import][chakra]") {
  const samples::TempFolder folder;
  std::vector<std::filesystem::path> files;
  for (int rank = 0; rank < 4; ++rank) {
    ChakraFile file;
    file.add({.id = 1,
              .name = "sum",
              .type = 7,
              .micros = 5,
              .cpu = false,
              .comm_type = 0,
              .comm_size = 100,
              .group = rank % 2 == 0 ? "7" : "8"});
    file.add({.id = 2,
              .name = "all",
              .type = 7,
              .micros = 5,
              .cpu = false,
              .comm_type = 0,
              .comm_size = 4});
    files.push_back(folder.write("job." + std::to_string(rank) + ".et", file.bytes()));
  }
  SilentReporter silent;
  const auto got = import_files(files, {}, silent);
  if (!got) FAIL(got.error().message());
  REQUIRE(got->trace.communicators.size() == 3);
  for (const Communicator& c : got->trace.communicators) {
    if (c.id == "7") CHECK(c.members == std::vector<RankId>{0, 2});
    if (c.id == "8") CHECK(c.members == std::vector<RankId>{1, 3});
    if (c.id == "default") CHECK(c.members.size() == 4);
  }
  CHECK(got->findings.count("members-from-calls") == 2);
  const auto part = import_files({files[0], files[1]}, {}, silent);
  REQUIRE(part);
  CHECK(part->trace.ranks.size() == 2);
}

TEST_CASE("JSON with a workload graph and what the jsonizer prints are read", "[import][chakra]") {
  const std::string graph = R"json({"workload_graph": [
    {"Id": 5, "Name": "aten::mm", "NodeType": 4, "data_deps": [], "runtime": 12, "is_cpu_op": true},
    {"Id": 6, "Name": "ncclKernel_AllReduce_RING_LL_Sum_float(x)", "NodeType": 7, "ctrlDeps": [3],
     "data_deps": [5], "runtime": 28, "is_cpu_op": false}], "workload_name": "small", "ngpus": 4})json";
  const Imported got = imported(graph, "chakra.2.json");
  CHECK(got.trace.ranks[0].rank == 2);
  CHECK(got.trace.header.world_size() == 4);
  CHECK(got.trace.header.job() == "small");
  CHECK(got.trace.operations() == 2);
  CHECK(got.trace.ranks[0].ops.calls.size() == 1);
  CHECK(got.findings.count("collective-without-size") == 1);

  const std::string printed = R"({ "version": "0.0.4" }{
    "id": "1", "name": "a", "type": "COMP_NODE", "durationMicros": "10",
    "attr": [{"name": "is_cpu_op", "boolVal": false}]
  }{
    "id": "2", "name": "b", "type": "COMM_COLL_NODE", "dataDeps": ["1"], "durationMicros": "7",
    "attr": [{"name": "is_cpu_op", "boolVal": false}, {"name": "comm_type", "int64Val": "7"},
             {"name": "comm_size", "int64Val": "4096"}, {"name": "pg_name", "stringVal": "3"}]})";
  const Imported second = imported(printed, "x.json");
  CHECK(second.trace.operations() == 2);
  const Call& call = second.trace.ranks[0].ops.calls.at(0);
  CHECK(call.collective == Collective::kReduceScatter);
  CHECK(call.bytes_in == 4096);
  CHECK(start_of(second, "b") == 10'000);
}

TEST_CASE("the name of a Chakra file tells its rank", "[import][chakra]") {
  using chakra::rank_of_chakra_name;
  CHECK(rank_of_chakra_name("/a.7/job.3.et") == 3u);
  CHECK(rank_of_chakra_name("chakra.0.schema_1.0.1.et") == 0u);
  CHECK(rank_of_chakra_name("job.12.json.gz") == 12u);
  CHECK_FALSE(rank_of_chakra_name("job.et"));
  CHECK_FALSE(rank_of_chakra_name("7"));
}

TEST_CASE("the earliest starts respect lanes, dependencies and the latest time",
          "[import][chakra]") {
  const std::vector<uint16_t> lane = {0, 0, 1, 1};
  const std::vector<Nanos> duration = {5, 7, 3, Nanos{1} << 61};
  const std::vector<Dependency> dependencies = {{2, 1}, {3, 0}};
  const auto got = chakra::earliest_starts(lane, duration, dependencies, 1'000);
  CHECK(got.start == std::vector<Nanos>{0, 5, 1'000, 5});
  CHECK(got.cycles == 0);
}

TEST_CASE("dependencies on nodes that take no time are kept", "[import][chakra]") {
  // As generators write jobs to be simulated: communication has a size and no duration. The lanes of
  // collectives, sends and receives come before and behind each other.
  samples::ChakraFile file;
  file.add({.id = 0, .name = "compute", .micros = 100, .cpu = false});
  file.add({.id = 1, .name = "reduce", .type = 7, .data = {0}, .comm_type = 0, .comm_size = 64});
  file.add({.id = 2,
            .name = "send",
            .type = 5,
            .data = {1},
            .comm_size = 8,
            .comm_src = 0,
            .comm_dst = 1});
  file.add({.id = 3, .name = "exchange", .type = 7, .data = {2}, .comm_type = 6, .comm_size = 64});
  file.add({.id = 4, .name = "update", .data = {3}, .cpu = false});
  const auto got = samples::import_text(file.bytes(), {}, "job.0.et");
  REQUIRE(got);
  CHECK(got->findings.count("dependency-contradicts-times") == 0);
  const Operations& ops = got->trace.ranks[0].ops;
  CHECK(ops.dependencies.size() == 4);
  for (const Dependency& d : ops.dependencies) CHECK(d.on < d.op);
}

TEST_CASE("computation without a duration is said", "[import][chakra]") {
  samples::ChakraFile file;
  file.add({.id = 0, .name = "compute", .cpu = false, .operations = 1'000'000});
  file.add(
      {.id = 1, .name = "timed", .micros = 5, .data = {0}, .cpu = false, .operations = 1'000'000});
  const auto got = samples::import_text(file.bytes(), {}, "job.0.et");
  REQUIRE(got);
  CHECK(got->findings.count("computation-without-duration") == 1);
}

TEST_CASE("a cut Chakra file is refused or read up to its last whole node", "[import][chakra]") {
  ChakraFile file;
  for (uint64_t i = 0; i < 200; ++i) {
    file.add({.id = i + 1,
              .name = "kernel " + std::to_string(i),
              .micros = 10,
              .data = {i},
              .cpu = false});
  }
  const std::string whole = file.bytes();
  samples::check_cuts(whole, "job.0.et");
  samples::check_cuts(samples::gzip(whole), "job.0.et");
}

TEST_CASE("flipped bits in a Chakra file never do more than a finding or a refusal",
          "[import][chakra]") {
  ChakraFile file;
  file.groups(R"([{"pg_name": "1", "ranks": [0, 1]}])");
  for (uint64_t i = 0; i < 20; ++i) {
    file.add({.id = i + 1,
              .name = "k",
              .type = i % 3 == 0 ? 7u : 4u,
              .micros = 10,
              .data = {i},
              .cpu = false,
              .stream = static_cast<int64_t>(i % 2),
              .comm_type = 0,
              .comm_size = 4,
              .group = "1"});
  }
  samples::check_flips(file.bytes(), "job.0.et");
}

TEST_CASE("more nodes than may be held at once are refused with a limit", "[import][chakra]") {
  ChakraFile file;
  for (uint64_t id = 1; id <= 100; ++id) file.add({.id = id, .name = "n", .micros = 1});
  ImportOptions options;
  options.most_held = 100 * 40;
  CHECK(import_text(file.bytes(), options, "job.0.et"));
  options.most_held = 99 * 40;
  const auto refused = import_text(file.bytes(), options, "job.0.et");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::kLimit);
  CHECK_THAT(refused.error().where, Catch::Contains("node 99"));
  CHECK_FALSE(refused.error().fix.empty());
}

}  // namespace rehearse::import_chakra_test
