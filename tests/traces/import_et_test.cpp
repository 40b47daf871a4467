// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "tests/traces/import_samples.hpp"

namespace rehearse::import_et_test {
using namespace rehearse;
using namespace rehearse::traces;
using samples::TempFolder;

namespace {

const char* const kFlat =
    R"js({"schema": "1.0.1", "pid": 1, "nodes": [
  {"name": "record_param_comms", "id": 9, "inputs": [141, 0, 1, "wait", [], []], "input_shapes": [[]], "input_types": ["Int"], "outputs": []},
  {"name": "record_param_comms", "id": 12, "inputs": [[[5, 6, 0, 100, 4, "cuda:1"]], 3, 94398426290464, 1, "allreduce", [], []],
   "input_types": ["GenericList[Tensor(float)]", "Int"], "outputs": [[[5, 6, 0, 100, 4, "cuda:1"]]]},
  {"name": "record_param_comms", "id": 7, "inputs": [[1, 2, 0, 24, 8, "cuda:1"], 2, 94398426290464, 1, "all_to_allv", [12, 12], [20, 20]],
   "input_types": ["Tensor(long int)", "Int"], "outputs": [[3, 4, 0, 40, 8, "cuda:1"]]
},
  {"name": "aten::add", "id": 1, "inputs": [], "outputs": []}], "finish_ts": 5
})js";

const char* const kNested =
    R"js({"schema": "1.0.2-chakra.0.0.4", "nodes": [
  {"id": 30, "name": "record_param_comms", "ctrl_deps": 24, "inputs": {"values": [[[14, 15, 0, 1, 4, "cuda:0"]], 12, 82149104, 1, "all_gather", [], [], 2],
   "shapes": [], "types": ["GenericList[Tensor(float)]"]}, "outputs": {"values": [[[[19, 20, 0, 1, 4, "cuda:0"], [5, 23, 0, 1, 4, "cuda:0"]]]]}, "attrs": []}]})js";

const char* const kAttributes =
    R"js({"schema": "1.1.1-chakra.0.0.4", "nodes": [
  {"id": 437, "name": "record_param_comms", "inputs": {"values": [[[434, 435, 0, 1, 4, "cuda:0"]], 47, ["7", "default_pg"], 1, "broadcast", [], []],
   "types": ["GenericList[Tensor(float)]"]}, "outputs": {"values": []}, "attrs": [{"name": "collective_name", "type": "string", "value": "broadcast"},
   {"name": "dtype", "type": "string", "value": "BFloat16"}, {"name": "in_msg_nelems", "type": "uint64", "value": 53120},
   {"name": "out_msg_nelems", "type": "uint64", "value": 53120}]}]})js";

std::string profile(const std::vector<std::string>& kernels) {
  std::string events;
  for (size_t i = 0; i < kernels.size(); ++i) {
    events += fmt::format(
        R"js({}{{"ph": "X", "cat": "kernel", "name": "{}", "pid": 0, "tid": 4, "ts": {}, "dur": 9, "args": {{"device": 0, "stream": 4, "correlation": {}}}}})js",
        i > 0 ? "," : "", kernels[i], i * 10, i + 1);
  }
  return samples::document(events, 1, 2);
}

const std::string kSendRecv = "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(x)";
const std::string kAllReduce = "ncclKernel_AllReduce_RING_LL_Sum_float(x)";

}  // namespace

TEST_CASE("an execution trace gives the collectives of the same rank their sizes", "[import][et]") {
  const TempFolder folder;
  folder.write("p.json", profile({kSendRecv, kAllReduce}));
  folder.write("et.json", kFlat);
  SilentReporter silent;
  const auto got = import_files({folder.path()}, {}, silent);
  REQUIRE(got);
  REQUIRE(got->trace.ranks.size() == 1);
  const std::vector<Call>& calls = got->trace.ranks[0].ops.calls;
  REQUIRE(calls.size() == 2);
  CHECK(calls[0].collective == Collective::kAllToAll);
  CHECK(calls[0].bytes_in == 192);
  CHECK(calls[0].bytes_out == 320);
  CHECK(calls[0].dtype == DType::kInt64);
  CHECK(calls[1].bytes_in == 400);
  CHECK(calls[1].sequence == 1);
  CHECK(got->findings.count("collective-without-size") == 0);
}

TEST_CASE("an execution trace that tells of other steps is not believed", "[import][et]") {
  const TempFolder folder;
  folder.write("p.json", profile({kAllReduce, kAllReduce, kAllReduce}));
  folder.write("et.json", kFlat);
  SilentReporter silent;
  const auto got = import_files({folder.path()}, {}, silent);
  REQUIRE(got);
  CHECK(got->findings.count("execution-trace-mismatch") == 1);
  CHECK(got->findings.count("collective-without-size") == 3);
}

TEST_CASE("all shapes of execution traces are read, alone without times", "[import][et]") {
  const auto flat = samples::import_text(kFlat);
  REQUIRE(flat);
  CHECK(flat->trace.ranks[0].rank == 1);
  CHECK(flat->trace.ranks[0].ops.calls.size() == 2);
  CHECK(flat->findings.count("no-times") == 1);

  const auto nested = samples::import_text(kNested);
  REQUIRE(nested);
  REQUIRE(nested->trace.ranks[0].ops.calls.size() == 1);
  CHECK(nested->trace.ranks[0].ops.calls[0].bytes_in == 4);
  CHECK(nested->trace.ranks[0].ops.calls[0].bytes_out == 8);

  const auto attributes = samples::import_text(kAttributes);
  REQUIRE(attributes);
  REQUIRE(attributes->trace.ranks[0].ops.calls.size() == 1);
  CHECK(attributes->trace.ranks[0].ops.calls[0].bytes_in == 53120 * 2);
  CHECK(attributes->trace.communicators.at(0).id == "7");
}

// Groups of a job of four ranks: all, and two of two ranks each. `call` names the group of the one collective.
std::string grouped(const std::string& group, const std::string& behind) {
  return R"js({"schema": "1.1.0-chakra.0.0.4", "nodes": [
  {"id": 3, "name": "## process_group:init ##", "inputs": {"values": ["[{\"pg_name\": \"0\", \"pg_desc\": \"default_pg\", \"backend_config\": \"cuda:nccl\", \"ranks\": [], \"group_size\": 4, \"group_count\": 2}, {\"pg_name\": \"5\", \"backend_id\": 7788, \"pg_desc\": \"mesh_tp\", \"ranks\": [1, 3], \"group_size\": 2}]"]}, "outputs": {"values": []}},
  {"id": 9, "name": "record_param_comms", "inputs": {"values": [[[1, 2, 0, 16, 4, "cuda:1"]], 12, )js" +
         group + R"js(, 0, "allreduce", [], [])js" + behind +
         R"js(], "types": ["GenericList[Tensor(float)]"]}, "outputs": {"values": []}, "attrs": []}]})js";
}

TEST_CASE("an execution trace tells the groups of its job", "[import][et]") {
  for (const char* const group : {R"(["5", "mesh_tp"])", "7788"}) {
    INFO(group);
    const auto got = samples::import_text(grouped(group, ", 1, 2, 2"));
    REQUIRE(got);
    CHECK(got->trace.header.world_size() == 4);
    REQUIRE(got->trace.communicators.size() == 1);
    CHECK(got->trace.communicators[0].id == "5");
    CHECK(got->trace.communicators[0].description == "mesh_tp");
    CHECK(got->trace.communicators[0].members == std::vector<RankId>{1, 3});
    CHECK(got->findings.count("ranks-missing") == 3);
  }
  const auto everyone = samples::import_text(grouped(R"(["0", "default_pg"])", ", 0, 1, 4"));
  REQUIRE(everyone);
  CHECK(everyone->trace.communicators.at(0).members == std::vector<RankId>{0, 1, 2, 3});
  // Groups that the job did not list: the ranks stand behind the call.
  const auto unlisted = samples::import_text(grouped(R"(["8", ""])", ", 1, 2, 2"));
  REQUIRE(unlisted);
  CHECK(unlisted->trace.communicators.at(0).members == std::vector<RankId>{1, 3});
  const auto hostile = samples::import_text(
      grouped(R"(["8", ""])", ", 9223372036854775807, 9223372036854775807, 2"));
  REQUIRE(hostile);
  CHECK(hostile->trace.communicators.at(0).members.size() == 4);
}

TEST_CASE("the size of the job is that of its largest group of all ranks", "[import][et]") {
  for (const char* const second :
       {R"({\"pg_name\": \"5\", \"ranks\": [], \"group_size\": 2})",
        R"({\"pg_name\": \"5\", \"ranks\": [1, -7], \"group_size\": 9})"}) {
    INFO(second);
    std::string text = grouped(R"(["0", "default_pg"])", "");
    const size_t begin = text.find(R"({\"pg_name\": \"5\")"), end = text.find("]\"", begin);
    REQUIRE(end != std::string::npos);
    text.replace(begin, end - begin, second);
    const auto got = samples::import_text(text);
    REQUIRE(got);
    CHECK(got->trace.header.world_size() == 4);
  }
}

TEST_CASE("collectives whose profile tells no group get that of the execution trace",
          "[import][et]") {
  const TempFolder folder;
  folder.write("p.json", profile({kAllReduce}));
  folder.write("et.json", grouped(R"(["5", "mesh_tp"])", ", 1, 2, 2"));
  SilentReporter silent;
  const auto got = import_files({folder.path()}, {}, silent);
  REQUIRE(got);
  const Call& call = got->trace.ranks.at(0).ops.calls.at(0);
  CHECK(call.bytes_in == 64);
  CHECK(got->trace.communicators.at(call.communicator).members == std::vector<RankId>{1, 3});
  // What the profile tells stays.
  folder.write(
      "p.json",
      samples::document(
          R"js({"ph": "X", "cat": "kernel", "name": "ncclKernel_AllReduce_RING_LL_Sum_float(x)", "pid": 0, "tid": 4, "ts": 1, "dur": 9,
          "args": {"device": 0, "stream": 4, "correlation": 3, "Process Group Name": "9", "Process Group Ranks": "[0, 1]"}})js",
          1, 4));
  const auto kept = import_files({folder.path()}, {}, silent);
  REQUIRE(kept);
  const Call& same = kept->trace.ranks.at(0).ops.calls.at(0);
  CHECK(kept->trace.communicators.at(same.communicator).members == std::vector<RankId>{0, 1});
}

TEST_CASE("roots and other ends of messages are not the rank of an execution trace",
          "[import][et]") {
  const auto node = [](int id, const std::string& group, int place, const std::string& what,
                       const std::string& behind) {
    return fmt::format(
        R"({{"id": {}, "name": "record_param_comms", "inputs": {{"values": [[[1, 2, 0, 16, 4, "cuda:1"]], 12, {}, {}, "{}", [], []{}],
         "types": ["GenericList[Tensor(float)]"]}}, "outputs": {{"values": []}}, "attrs": []}})",
        id, group, place, what, behind);
  };
  const std::string all = R"(["0", "default_pg"])", pair = R"(["5", "mesh_tp"])";
  const std::string wait = node(90, R"(["", ""])", 1, "wait", ", -1, -1, 1");
  const auto import_nodes = [](const std::string& nodes) {
    return samples::import_text(R"({"schema": "1.1.0-chakra.0.0.4", "nodes": [)" + nodes + "]}");
  };
  // Rank 6 of 8: third of its group of 4.
  const auto got = import_nodes(node(1, all, 3, "broadcast", ", 0, 1, 8") + "," +
                                node(2, pair, 2, "allreduce", ", 4, 1, 4") + "," +
                                node(3, pair, 1, "send", ", 4, 1, 4") + "," +
                                node(4, all, 6, "allreduce", ", 0, 1, 8") + "," + wait);
  REQUIRE(got);
  CHECK(got->findings.count("rank-contradiction") == 0);
  const RankTrace& rank = got->trace.ranks.at(0);
  CHECK(rank.rank == 6);
  REQUIRE(rank.ops.calls.size() == 4);
  CHECK(rank.ops.calls[0].peer == 3);
  CHECK(rank.ops.calls[1].peer == -1);
  CHECK(rank.ops.calls[2].peer == 1);
  // Where only messages are recorded, waits tell.
  const auto waits = import_nodes(node(3, all, 1, "recv", ", 0, 1, 2") + "," +
                                  node(90, R"(["", ""])", 0, "wait", ", -1, -1, 1"));
  REQUIRE(waits);
  CHECK(waits->trace.ranks.at(0).rank == 0);
  const auto contradictory = import_nodes(node(1, all, 1, "allreduce", ", 0, 1, 2") + "," +
                                          node(2, all, 0, "allreduce", ", 0, 1, 2"));
  REQUIRE(contradictory);
  CHECK(contradictory->findings.count("rank-contradiction") == 1);
}

TEST_CASE("a profile without a rank is that of the execution trace beside it", "[import][et]") {
  const TempFolder folder;
  const std::string told = profile({kSendRecv, kAllReduce});
  folder.write("p.json", "{" + told.substr(told.find("\"traceEvents\"")));
  folder.write("et.json", kFlat);
  SilentReporter silent;
  const auto got = import_files({folder.path()}, {}, silent);
  REQUIRE(got);
  REQUIRE(got->trace.ranks.size() == 1);
  CHECK(got->trace.ranks[0].rank == 1);
  CHECK(got->trace.ranks[0].ops.calls.at(0).bytes_in == 192);
  CHECK(got->findings.count("rank-assumed") == 0);
  CHECK(got->findings.count("rank-from-execution-trace") == 1);
}

TEST_CASE("an execution trace whose schema stands far behind is known by its nodes",
          "[import][et]") {
  std::string text = kFlat;
  const std::string schema = R"("schema": "1.0.1", "pid": 1, )";
  REQUIRE(text.find(schema) == 1);
  text.erase(1, schema.size());
  const std::string node =
      R"({"name": "aten::add", "id": 2, "rf_id": 1, "fw_parent": 0, "inputs": [], "outputs": []}, )";
  std::string more;
  while (more.size() < 300'000) more += node;
  text.insert(text.find('[') + 1, more);
  text.insert(text.rfind('}'), R"(, "schema": "1.0.1")");
  const auto got = samples::import_text(text);
  REQUIRE(got);
  CHECK(got->trace.ranks[0].ops.calls.size() == 2);
}

TEST_CASE("execution traces that are cut, empty or odd are refused or told", "[import][et]") {
  const std::string text = kFlat;
  for (size_t keep = 30; keep < text.size() - 2; keep += 17) {
    const auto cut = samples::import_text(text.substr(0, keep));
    REQUIRE_FALSE(cut);
    CHECK(cut.error().code == Code::kBadInput);
  }
  CHECK_FALSE(samples::import_text(R"js({"schema": "1.0.1", "nodes": []})js"));
  const auto odd = samples::import_text(
      R"js({"schema": "1.0.1", "nodes": [{"name": "record_param_comms", "id": "x", "inputs": 5},
      {"name": "record_param_comms", "id": 3, "inputs": [[1, 2, 0, 24, 8, "cuda:1"], 1, 2, 1, "conga", []]},
      {"name": "record_param_comms", "id": 4, "inputs": [[1, 2, 0, -24, 8, "cuda:1"], 1, 2, 1, "allreduce", []]}]})js");
  REQUIRE(odd);
  CHECK(odd->findings.count("node-unreadable") == 1);
  CHECK(odd->findings.count("collective-unknown") == 1);
  CHECK(odd->trace.ranks[0].ops.calls.size() == 1);
  CHECK(odd->trace.ranks[0].ops.calls[0].bytes_in == 0);
}

}  // namespace rehearse::import_et_test
