// SPDX-License-Identifier: Apache-2.0
#include "validation/calibrate/evidence_rows.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <map>

#include "tests/temporary_folder.hpp"
#include "tests/traces/synth_sample.hpp"
#include "traces/export/kineto.hpp"

namespace rehearse::validation::evidence_rows_test {
namespace {

namespace fs = std::filesystem;

// Files of a job of two ranks, as the PyTorch profiler writes them: one each.
std::vector<fs::path> two_ranks(const fs::path& folder) {
  pb::Synth options = synth::small_gpt();
  options.set_dp(2);
  const auto trace = synth::synthesize(options, synth::sample_gpu());
  if (!trace) FAIL(trace.error().what << " " << trace.error().where);
  std::vector<fs::path> out;
  for (const traces::RankTrace& rank : trace->ranks) {
    const auto file =
        traces::write_kineto(rank, {trace->header, trace->communicators, trace->strings}, folder,
                             traces::Compression::kNone, Overwrite::kRefuse);
    REQUIRE(file);
    out.push_back(*file);
  }
  return out;
}

}  // namespace

TEST_CASE("ranks of a job given file by file tell what their folder tells",
          "[validation][calibrate]") {
  const tests::TemporaryFolder temporary;
  const std::vector<fs::path> files = two_ranks(temporary.path);
  SilentReporter silent;
  const auto one_by_one = read_measured(files, "", silent);
  const auto together = read_measured({temporary.path}, "", silent);
  REQUIRE(one_by_one);
  REQUIRE(together);
  REQUIRE_FALSE(together->rows.empty());
  REQUIRE(one_by_one->rows.size() == together->rows.size());
  for (size_t i = 0; i < together->rows.size(); ++i) {
    CHECK(one_by_one->rows[i].time_us == together->rows[i].time_us);
    CHECK(one_by_one->rows[i].bytes == together->rows[i].bytes);
  }
  CHECK(one_by_one->files == std::vector<std::string>{"rank0.json", "rank1.json"});
  const auto alone = read_measured({files.front()}, "", silent);
  REQUIRE_FALSE(alone);
  CHECK(alone.error().code == Code::kBadInput);
}

TEST_CASE("a time is fitted to what NCCL logged that it ran", "[validation][calibrate]") {
  const tests::TemporaryFolder temporary;
  const fs::path file = temporary.path / "all_reduce.csv";
  std::ofstream(file) << "collective,hardware,nodes,gpus,bytes,time_us_oop,algo_forced,algo_used,"
                         "proto_used\n"
                         "all_reduce,H100,2,16,1048576,40,,NVLS_TREE,SIMPLE\n"
                         "all_reduce,H100,2,16,2097152,50,Tree,RING,LL\n"
                         "all_reduce,H100,2,16,4194304,60,,,\n";
  SilentReporter silent;
  const auto read = read_measured({file}, "", silent);
  REQUIRE(read);
  REQUIRE(read->rows.size() == 3);
  std::map<Bytes, std::string> algorithm;
  for (const NcclTestRow& row : read->rows) algorithm[row.bytes] = row.algorithm;
  CHECK(algorithm[1 << 20] == "NVLSTree");
  CHECK(algorithm[2 << 20] == "Tree");
  CHECK(algorithm[4 << 20].empty());
}

TEST_CASE("records of NCCL Inspector count what one rank gives to an all-gather",
          "[validation][calibrate]") {
  pb::InspectorRecords records;
  records.set_ranks_total(4);
  records.set_nodes(1);
  records.add_sources("kernel_gpu");
  for (const char* collective : {"all_reduce", "all_gather", "reduce_scatter"}) {
    records.add_collective(static_cast<uint32_t>(records.collectives_size()));
    records.add_collectives(collective);
    records.add_bytes(uint64_t{1} << 30);
    records.add_time_us(1000);
  }
  const auto rows = inspector_rows(records, "records");
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].bytes == Bytes{1} << 30);
  CHECK(rows[1].bytes == Bytes{4} << 30);
  CHECK(rows[2].bytes == Bytes{4} << 30);
  CHECK(rows[0].graph);
  // The host's clock waits for launches too; sizes that nobody has are left out.
  records.add_sources("collective_cpu");
  records.set_bytes(1, UINT64_MAX / 2);
  const auto others = inspector_rows(records, "records");
  REQUIRE(others.size() == 2);
  CHECK_FALSE(others[0].graph);
}

}  // namespace rehearse::validation::evidence_rows_test
