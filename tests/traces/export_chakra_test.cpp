// SPDX-License-Identifier: Apache-2.0
// Trace -> Chakra -> trace: every operation that Chakra can express comes back as it was.
#include <catch2/catch.hpp>
#include <set>

#include "base/atomic_file.hpp"
#include "tests/skip.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/traces/import_samples.hpp"
#include "tests/traces/same_operations.hpp"
#include "tests/traces/synth_sample.hpp"
#include "traces/export/chakra.hpp"
#include "traces/export/chakra_edges.hpp"
#include "traces/import/chakra/node.hpp"

namespace rehearse::export_chakra_test {
using namespace rehearse;
using namespace rehearse::traces;

namespace {

ChakraContext context_of(const Trace& trace) {
  return {trace.header, trace.communicators, trace.strings};
}

Imported through_chakra(const Trace& trace) {
  const samples::TempFolder folder;
  for (const RankTrace& rank : trace.ranks) {
    const auto written = write_chakra(rank, context_of(trace), folder.path(), Overwrite::kRefuse);
    if (!written) FAIL(written.error().message());
    CHECK(written->nodes + written->left_out == rank.ops.size());
    CHECK(written->left_out == samples::count_of(rank, OpKind::kMemory));
  }
  SilentReporter silent;
  auto back = import_files({folder.path()}, {.clocks = ClockAlignment::kAsRecorded}, silent);
  if (!back) FAIL(back.error().message());
  return std::move(*back);
}

// What Chakra has no node for is taken out before comparing.
void check_round_trip(Trace trace) {
  for (RankTrace& rank : trace.ranks) samples::drop_memory(rank.ops);
  const Imported back = through_chakra(trace);
  CHECK(samples::difference(trace, back.trace) == "");
  CHECK(back.trace.header.framework() == trace.header.framework());
  CHECK(back.trace.header.synthetic() == trace.header.synthetic());
  CHECK(back.findings.count("dependency-missing") == 0);
  CHECK(back.findings.count("inexact-node") == 0);
}

Trace generated(const std::string& model) {
  pb::Synth options = model == "gpt" ? synth::small_gpt() : synth::named(model);
  options.set_dp(model == "gpt" ? 2 : 4);
  if (model == "gpt") {
    options.set_tp(2);
    options.set_pp(2);
  } else if (model == "moe") {
    options.set_layers(2);
  }
  options.set_steps(2);
  auto trace = synth::synthesize(options, synth::sample_gpu());
  if (!trace) FAIL(trace.error().message());
  return std::move(*trace);
}

}  // namespace

TEST_CASE("generated traces come back from Chakra operation by operation", "[export][chakra]") {
  for (const std::string model : {"gpt", "moe", "resnet50", "dlrm"}) {
    INFO(model);
    check_round_trip(generated(model));
  }
}

TEST_CASE("real traces come back from Chakra operation by operation", "[export][chakra][real]") {
  const auto data = rehearse::tests::real_data();
  if (!data) return;
  SilentReporter silent;
  for (const char* file :
       {"chakra/chakra.0.schema_1.0.1.et", "chakra/chakra.0.schema_1.1.0.et",
        "chakra/chakra.0.json.gz", "chakra/small_chakra.0.json",
        "kineto/critical_path/alexnet_trace.json.gz", "kineto/dlrm_8rank_v100"}) {
    INFO(file);
    auto got = import_files({*data / file}, {}, silent);
    if (!got) FAIL(got.error().message());
    check_round_trip(std::move(got->trace));
  }
}

TEST_CASE("dependencies of nodes point back and host time is counted once", "[export][chakra]") {
  const Trace trace = generated("gpt");
  const RankTrace& rank = trace.ranks[0];
  const ChakraEdges edges = chakra_edges(rank);
  Nanos host = 0, covered = 0;
  for (uint32_t op = 0; op < rank.ops.size(); ++op) {
    for (uint32_t e = edges.begin[op]; e < edges.begin[op + 1]; ++e) REQUIRE(edges.on[e] < op);
    const OpKind kind = rank.ops.kind[op];
    if (kind == OpKind::kKernel) {
      REQUIRE(edges.parent[op] != kNoParent);
      CHECK(rank.ops.correlation[edges.parent[op]] == rank.ops.correlation[op]);
    }
    if (rank.ops.lane[op] != 0 || kind == OpKind::kAnnotation || kind == OpKind::kMemory) continue;
    host += edges.own[op];
    if (edges.parent[op] == kNoParent) covered += rank.ops.duration[op];
  }
  CHECK(host > 0);
  CHECK(host <= covered);  // less where calls waited
}

TEST_CASE("groups are numbered for ASTRA-sim", "[export][chakra]") {
  const std::vector<Communicator> groups = {{"world", "", {0, 1, 2, 3}, "nccl"},
                                            {"tp/0", "", {0, 2}, "nccl"}};
  CHECK(chakra_groups_json(groups) == "{\n  \"1\": [0, 1, 2, 3],\n  \"2\": [0, 2]\n}\n");
  CHECK(chakra_group_name(1) == "2");
}

TEST_CASE("a Chakra file says what Chakra's own readers look for", "[export][chakra]") {
  const Trace trace = generated("dlrm");
  const tests::TemporaryFolder folder;
  const auto written =
      write_chakra(trace.ranks[1], context_of(trace), folder.path, Overwrite::kRefuse);
  REQUIRE(written);
  const auto read = read_file(written->path.string(), 1u << 30);
  REQUIRE(read);
  const std::string& bytes = *read;
  std::string_view left = bytes;
  const auto take = [&] {
    uint64_t length = 0;
    size_t i = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(left[i++]);
      length |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    const std::string_view message = left.substr(i, length);
    left.remove_prefix(i + length);
    return message;
  };
  const auto metadata = chakra::parse_metadata(take());
  REQUIRE(metadata);
  CHECK(metadata->schema == "1.1.0-chakra.0.0.4");
  std::set<uint64_t> seen;
  size_t collectives = 0;
  while (!left.empty()) {
    chakra::Node node;
    REQUIRE(chakra::parse_node(take(), node));
    CHECK(seen.insert(node.id).second);
    for (const uint64_t on : node.data) CHECK(seen.contains(on));
    REQUIRE(node.number("is_cpu_op"));
    if (node.type != chakra::kCollective) continue;
    ++collectives;
    CHECK(node.number("comm_type"));
    CHECK(node.number("comm_size"));
    CHECK_FALSE(node.text("pg_name").empty());
  }
  CHECK(collectives == trace.ranks[1].ops.calls.size());
}

}  // namespace rehearse::export_chakra_test
