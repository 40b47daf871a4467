// SPDX-License-Identifier: Apache-2.0
#include "validation/nccl_tests.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/install.hpp"
#include "validation/accuracy.hpp"
#include "validation/hardware.hpp"

using namespace rehearse;
using namespace rehearse::validation;

namespace {

std::string sample() {
  const auto file = shipped("tests/golden/nccl_tests/all_reduce.txt");
  REQUIRE(file);
  std::ifstream in(*file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::filesystem::path data(const char* path) {
  const char* root = std::getenv("REHEARSE_DATA");
  return std::filesystem::path(root != nullptr ? root : "../shared/data") / path;
}

}  // namespace

TEST_CASE("a printed table gives its collective, GPUs, version and times", "[validation]") {
  const auto table = parse_nccl_tests(sample(), "all_reduce.txt", "");
  REQUIRE(table);
  REQUIRE(table->rows.size() == 6);
  const NcclTestRow& row = table->rows[2];
  CHECK(row.collective == "all_reduce");
  CHECK(row.hardware == "NVIDIA H100 80GB HBM3");
  CHECK(row.gpus == 4);
  CHECK(row.nodes == 1);
  CHECK(row.nccl_version == "22809");
  CHECK(row.bytes == 16777216);
  CHECK(row.time_us == Approx(105));
  CHECK(row.reduction == "sum");
  CHECK(row.where == "all_reduce.txt:17");
}

TEST_CASE("rows are read with and without redop, root, in-place half and launcher prefixes",
          "[validation]") {
  struct Line {
    const char* text;
    double time;
  };
  for (const Line& line :
       {Line{"  1048576  262144  float  sum  -1  28.0  37.45  56.17  0  28.1  37.4  56.1  0", 28.0},
        Line{"  1048576  262144  float  sum  46.99  22.31  33.47  N/A", 46.99},
        Line{"  1048576  262144  float  sum  46.99  22.31  33.47  1e-06", 46.99},
        Line{"  1048576  262144  float  3  46.99  22.31  33.47", 46.99},
        Line{"[1,0]<stdout>:  1048576  262144  float  none  -1  28.0  37.45  32.8  0  28.1  37.4  "
             "32.7 0",
             28.0},
        Line{"0:  1048576  262144  half  sum  -1  28.0  37.45  56.17  N/A  28.1  37.4  56.1  N/A",
             28.0}}) {
    INFO(line.text);
    const auto table = parse_nccl_tests(line.text, "x", "all_reduce");
    REQUIRE(table);
    REQUIRE(table->rows.size() == 1);
    CHECK(table->rows[0].time_us == Approx(line.time));
    CHECK(table->rows[0].bytes == 1048576);
  }
}

TEST_CASE("the name of a file says the collective where the text does not", "[validation]") {
  const std::string line = "  1048576  262144  float  3  46.99  22.31  33.47";
  for (const auto& [name, collective] : std::vector<std::pair<std::string, std::string>>{
           {"a/nccl_reduce_scatter3.txt", "reduce_scatter"},
           {"nccl_allgather.log", "all_gather"},
           {"reduce.txt", "reduce"},
           {"alltoall_perf.out", "alltoall"}}) {
    CHECK(parse_nccl_tests(line, name, "")->rows[0].collective == collective);
  }
}

TEST_CASE("a table cut or damaged anywhere is read or refused, never more",
          "[validation][refusal]") {
  const std::string text = sample();
  for (size_t cut = 0; cut < text.size(); cut += 7) {
    const auto table = parse_nccl_tests(text.substr(0, cut), "cut", "");
    if (!table) CHECK(table.error().code == Code::kBadInput);
  }
  for (size_t at = 0; at < text.size(); at += 3) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    const auto table = parse_nccl_tests(damaged, "damaged", "");
    if (table) CHECK(table->rows.size() <= 6);
  }
  const std::string csv =
      "collective,bytes,time_us_oop\nall_reduce,8,1.5\nall_reduce,99999999999999999999,2\n"
      "all_reduce,16\nall_reduce,16,-1\nall_reduce,32,nan\n";
  const auto collected = parse_nccl_tests(csv, "c.csv", "");
  REQUIRE(collected);
  CHECK(collected->rows.size() == 1);
  CHECK(collected->findings.rows().size() == 2);
  CHECK_FALSE(parse_nccl_tests("bytes,what\n1,2\n", "c.csv", ""));
  CHECK_FALSE(parse_nccl_tests("", "empty", ""));
  CHECK(read_nccl_tests("no/such/file", "").error().code == Code::kMissingInput);
}

TEST_CASE("hardware is found by the mapping, else by the nearest name", "[validation]") {
  auto map = HardwareMap::shipped_table();
  REQUIRE(map);
  NcclTestRow row;
  row.hardware = "nvidia h800";
  CHECK(map->find(row, 8)->id == "hgx-h800");
  row.hardware = "NVIDIA H100 80GB HBM3";
  row.source = "tests/xxrjun_h100/x";
  CHECK(map->find(row, 8)->id == "dgx-h100");
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
  const auto table = parse_nccl_tests(sample(), "all_reduce.txt", "");
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

TEST_CASE("rows that cannot be predicted are counted, not dropped", "[validation]") {
  auto table = parse_nccl_tests(sample(), "all_reduce.txt", "");
  REQUIRE(table);
  table->rows[0].collective = "hypercube";
  table->rows[1].hardware = "Quantum 9";
  const auto report = check_nccl_tests(table->rows, {});
  REQUIRE(report);
  CHECK(report->unpredicted == 2);
  CHECK(report->findings.count("row-not-predicted") == 2);
}

TEST_CASE("published tables are met within the target before any calibration", "[validation]") {
  const auto file = data("nccl/nccl_tests.csv");
  if (!std::filesystem::exists(file)) {
    WARN("skipped: " << file << " is not there");
    return;
  }
  const auto table = read_nccl_tests(file, "");
  REQUIRE(table);
  const auto report = check_nccl_tests(table->rows, {});
  REQUIRE(report);
  CHECK(report->unpredicted == 0);
  CHECK(report->judged.rows > 2000);
  CHECK(report->judged.median <= NcclTestReport::kTarget);
  for (const HardwareReport& hardware : report->hardware) {
    INFO(hardware.hardware << " " << hardware.source);
    CHECK(hardware.judged.median <= 0.4);
  }
}

TEST_CASE("the shipped band of a platform holds most of its measured calls", "[validation]") {
  const auto measured = accuracy_of("dgx-h100", Bytes{64} << 20);
  REQUIRE(measured);
  REQUIRE(*measured);
  CHECK((*measured)->low < (*measured)->high);
  CHECK((*measured)->rows >= 20);
  CHECK_FALSE(*accuracy_of("no-such-machine", 1 << 20));
  const auto file = data("nccl/nccl_tests.csv");
  if (!std::filesystem::exists(file)) {
    WARN("skipped: " << file << " is not there");
    return;
  }
  const auto report = check_nccl_tests(read_nccl_tests(file, "")->rows, {});
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
