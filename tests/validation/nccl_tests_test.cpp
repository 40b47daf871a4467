// SPDX-License-Identifier: Apache-2.0
#include "validation/nccl_tests.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "base/install.hpp"
#include "tests/skip.hpp"
#include "tests/temporary_folder.hpp"
#include "validation/accuracy.hpp"
#include "validation/hardware.hpp"
#include "validation/test_machines.hpp"

namespace rehearse::nccl_tests_test {
using namespace rehearse;
using namespace rehearse::validation;

namespace {

std::filesystem::path sample() {
  const auto file = shipped("tests/golden/nccl_tests/all_reduce.txt");
  REQUIRE(file);
  return *file;
}

}  // namespace

TEST_CASE("a printed table gives its collective, GPUs, version and times", "[validation]") {
  const auto table = read_nccl_tests(sample(), "");
  REQUIRE(table);
  REQUIRE(table->rows.size() == 6);
  const NcclTestRow& row = table->rows[2];
  CHECK(row.collective == "all_reduce");
  CHECK(row.hardware == "NVIDIA H100 80GB HBM3");
  CHECK(row.gpus == 4);
  CHECK(row.nodes == 1);
  CHECK_FALSE(row.nccl_version.empty());
  CHECK(row.bytes == 16777216);
  CHECK(row.time_us == Approx(105));
  CHECK(row.reduction == "sum");
  CHECK_THAT(row.where, Catch::Contains("all_reduce.txt") && Catch::Contains("16777216 bytes"));
}

TEST_CASE("rows of a collection without a time are findings, files without rows are refused",
          "[validation][refusal]") {
  const tests::TemporaryFolder folder;
  const auto read = [&](const char* name, const std::string& text) {
    std::ofstream(folder.path / name) << text;
    return read_nccl_tests(folder.path / name, "all_reduce");
  };
  const auto collected = read("c.csv",
                              "bytes,time_us_oop,collective\n8,1.5,\n99999999999999999999,2,\n"
                              "16\n16,-1,\n32,nan,\n64,0,\n");
  REQUIRE(collected);
  REQUIRE(collected->rows.size() == 1);
  CHECK(collected->rows[0].collective == "all_reduce");
  CHECK(collected->findings.count("nccl-tests-row-incomplete") == 4);
  CHECK(collected->findings.count("row-without-time") == 1);
  CHECK_FALSE(read("d.csv", "bytes,what\n1,2\n"));
  CHECK_FALSE(read("empty", ""));
  CHECK(read_nccl_tests("no/such/file", "").error().code == Code::kMissingInput);
}

TEST_CASE("hardware is found by the mapping, else by the nearest name", "[validation]") {
  auto map = HardwareMap::shipped_table();
  REQUIRE(map);
  NcclTestRow row;
  row.hardware = "nvidia h800";
  CHECK(map->find(row, 8)->id == "hgx-h800");
  row.hardware = "NVIDIA H100 80GB HBM3";
  row.nodes = 2;
  CHECK(map->find(row, 8)->id == "dgx-h100");
  row.nodes = 1;
  CHECK(map->find(row, 8)->id == "hgx-h100");
  row.source = "any-other-name#1";
  CHECK(map->find(row, 8)->id == "hgx-h100");
  for (const auto& [label, gpu] :
       std::vector<std::pair<const char*, const char*>>{{"Tesla V100-SXM2-32GB", "V100"},
                                                        {"NVIDIA A100-SXM4-80GB", "A100"},
                                                        {"NVIDIA H200", "H200"},
                                                        {"NVIDIA GeForce RTX 4090", "4090"},
                                                        {"NVIDIA A40", "A40"}}) {
    row.hardware = label;
    row.source = "";
    const auto found = map->find(row, 4);
    INFO(label);
    REQUIRE(found);
    CHECK_THAT(found->platform.nodes(0).gpus(0).model(), Catch::Contains(gpu));
    CHECK_FALSE(found->assumptions.empty());
  }
  row.hardware = "Quantum 9";
  CHECK_FALSE(map->find(row, 8));
  row.hardware = "";
  CHECK_FALSE(map->find(row, 8));
}

TEST_CASE("every row is predicted and errors are summed up by hardware", "[validation]") {
  const auto table = read_nccl_tests(sample(), "");
  REQUIRE(table);
  const auto report = check_nccl_tests(table->rows, {});
  REQUIRE(report);
  CHECK(report->predictions.size() == 6);
  CHECK(report->unpredicted == 0);
  REQUIRE(report->hardware.size() == 1);
  CHECK(report->hardware[0].judged.rows == 6);
  for (const NcclTestPrediction& p : report->predictions) {
    CHECK(p.predicted_us > 0);
    CHECK(p.error == Approx((p.predicted_us - p.row.time_us) / p.row.time_us));
  }
  const ErrorSummary summary = summarise({-.1, .2, -.3});
  CHECK(summary.median == Approx(.2));
  CHECK(summary.bias == Approx(-.1));
  CHECK(summarise({}).rows == 0);
}

TEST_CASE("a thread that launches on several GPUs in turn sets the pace of small calls",
          "[validation]") {
  const tests::TemporaryFolder folder;
  std::ofstream(folder.path / "all_reduce.csv")
      << "collective,hardware,nodes,gpus,gpus_per_thread,bytes,time_us_oop,algbw_oop\n"
         "all_reduce,NVIDIA H100 80GB HBM3,1,8,8,8,40,0\n"
         "all_reduce,NVIDIA H100 80GB HBM3,1,8,8,1073741824,5000,200\n"
         "all_reduce,NVIDIA H100 80GB HBM3,1,8,1,8,40,0\n"
         "all_reduce,NVIDIA H100 80GB HBM3,1,8,1,1073741824,5000,200\n";
  const auto table = read_nccl_tests(folder.path / "all_reduce.csv", "");
  REQUIRE(table);
  REQUIRE(table->rows.size() == 4);
  CHECK(table->rows[0].gpus_per_thread == 8);
  const auto report = check_nccl_tests(table->rows, {});
  REQUIRE(report);
  REQUIRE(report->predictions.size() == 4);
  const auto us = [&](size_t row) { return report->predictions[row].predicted_us; };
  CHECK(us(0) == Approx(8 * 5.0));  // eight launches; the call itself is shorter
  CHECK(us(2) < us(0));
  CHECK(us(1) == us(3));
}

TEST_CASE("types and operations of nccl-tests and rccl-tests are known by their names there",
          "[validation]") {
  auto table = read_nccl_tests(sample(), "");
  REQUIRE(table);
  const char* types[] = {"f8e4m3", "f8e5m2", "fp8_e4m3", "fp8_e5m2", "bfloat16", "half"};
  for (size_t i = 0; i < table->rows.size(); ++i) table->rows[i].type = types[i % std::size(types)];
  table->rows[0].reduction = "mulsum";
  const auto report = check_nccl_tests(table->rows, {});
  REQUIRE(report);
  CHECK(report->unpredicted == 0);
}

TEST_CASE("a row that is of no collective between GPUs is refused at its place",
          "[validation][refusal]") {
  auto table = read_nccl_tests(sample(), "");
  REQUIRE(table);
  auto machines = TestMachines::create({});
  REQUIRE(machines);
  NcclTestRow row = table->rows[0];
  row.gpus = 1;
  CHECK_THAT(machines->place(row).error().what, Catch::Contains("alone"));
  row = table->rows[0];
  row.collective = "";
  CHECK_THAT(machines->place(row).error().fix, Catch::Contains("--collective"));
  row.collective = "hypercube";
  CHECK(machines->place(row).error().where == row.where);
}

TEST_CASE("rows that cannot be predicted are counted, not dropped", "[validation]") {
  auto table = read_nccl_tests(sample(), "");
  REQUIRE(table);
  table->rows[0].collective = "hypercube";
  table->rows[1].hardware = "Quantum 9";
  const auto report = check_nccl_tests(table->rows, {});
  REQUIRE(report);
  CHECK(report->unpredicted == 2);
  CHECK(report->findings.count("row-not-predicted") == 2);
}

TEST_CASE("published tables are met within the target before any calibration", "[validation]") {
  const auto file = rehearse::tests::real_data("nccl/nccl_tests.csv");
  if (!file) return;
  const auto table = read_nccl_tests(*file, "");
  REQUIRE(table);
  const auto report = check_nccl_tests(table->rows, {});
  REQUIRE(report);
  CHECK(report->unpredicted == 0);
  CHECK(report->judged.rows > 2000);
  CHECK(report->judged.median <= NcclTestReport::kTarget);
  for (const HardwareReport& hardware : report->hardware) {
    INFO(hardware.hardware << " " << hardware.from_nodes);
    CHECK(hardware.judged.median <= 0.4);
  }
}

TEST_CASE("a platform with measured calls has a band", "[validation]") {
  const auto measured = accuracy_of("dgx-h100", Bytes{64} << 20);
  REQUIRE(measured);
  REQUIRE(*measured);
  CHECK((*measured)->low < (*measured)->high);
  CHECK((*measured)->rows >= 20);
  CHECK_FALSE(*accuracy_of("no-such-machine", 1 << 20));
}

TEST_CASE("most published calls lie in the shipped band of their platform", "[validation]") {
  const auto file = rehearse::tests::real_data("nccl/nccl_tests.csv");
  if (!file) return;
  const auto report = check_nccl_tests(read_nccl_tests(*file, "")->rows, {});
  REQUIRE(report);
  size_t inside = 0, all = 0;
  for (const NcclTestPrediction& p : report->predictions) {
    const auto band = accuracy_of(p.platform, p.row.bytes);
    REQUIRE(band);
    if (!*band || p.row.bytes < (1 << 20) || all >= 500) continue;
    ++all;
    const double ratio = p.row.time_us / p.predicted_us;
    if (ratio >= (*band)->low * .95 && ratio <= (*band)->high * 1.05) ++inside;
  }
  REQUIRE(all > 100);
  CHECK(inside >= all * 7 / 10);
}

}  // namespace rehearse::nccl_tests_test
