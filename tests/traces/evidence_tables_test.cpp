// SPDX-License-Identifier: Apache-2.0
// nccl-tests tables and their quirks.
#include "tests/traces/evidence_samples.hpp"

namespace rehearse::evidence_tables_test {
using namespace rehearse;
using namespace rehearse::traces;
using samples::must_read;
using samples::tables_of;

namespace {

pb::MeasuredTable only_table(const std::string& text, const std::string& name = "run.txt") {
  const auto tables = tables_of(must_read(text, name));
  REQUIRE(tables.tables_size() == 1);
  return tables.tables(0);
}

}  // namespace

TEST_CASE("a table of today's nccl-tests is read with its conditions", "[evidence][nccl-tests]") {
  const pb::MeasuredTable t = only_table(samples::kTable);
  CHECK(t.collective() == "all_reduce");
  CHECK(t.collective_from() == "said");
  CHECK(t.hardware() == "NVIDIA H100 80GB HBM3");
  CHECK(t.gpus() == 2);
  CHECK(t.nodes() == 1);
  CHECK(t.nccl_version() == "2.29.2");
  CHECK(t.nccl_tests_version() == "2.17.8");
  CHECK(t.iterations() == 20);
  CHECK(t.warmup() == 5);
  CHECK(t.graph() == 0);
  REQUIRE(t.rows_size() == 2);
  CHECK(t.rows(1).bytes() == 16);
  CHECK(t.rows(1).redop() == "sum");
  CHECK(t.rows(1).root() == -1);
  CHECK(t.rows(1).out_of_place().time_us() == 24.11);
  CHECK(t.rows(1).in_place().wrong() == "N/A");
}

TEST_CASE("AMD's copy of the program says its versions", "[evidence][nccl-tests]") {
  const pb::MeasuredTable t = only_table(
      "# rccl-tests version 2.17.9-develop:f2208 rccl-headers=22803 rccl-library=22803\n"
      "# Collective test starting: all_reduce_perf\n"
      "#  Rank  0 Group  0 Pid 135 on node-a device  0 [0000:c4:00] AMD Instinct MI300X\n"
      "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
      "     1048576        262144     float     sum      -1    120.1    8.73    8.73      0\n");
  CHECK(t.nccl_version() == "2.28.3");
  CHECK(t.nccl_tests_version() == "2.17.9-develop:f2208");
  CHECK(t.collective() == "all_reduce");
}

TEST_CASE("the first version printed milliseconds", "[evidence][nccl-tests]") {
  const pb::MeasuredTable t = only_table(
      "nThread 1 nGpus 2 minBytes 1048576 maxBytes 1048576 step: 2(factor) warmup iters: 5\n"
      "#   Rank  0 on       node-a device  0 [0x06] Tesla P100-SXM2-16GB\n"
      "#   Rank  1 on       node-a device  1 [0x07] Tesla P100-SXM2-16GB\n"
      "\n"
      "#                                                 out-of-place                    in-place\n"
      "#      bytes             N    type      op     time  algbw  busbw      res     time  algbw  "
      "busbw      res\n"
      "     1048576        262144   float     sum    0.113   9.28   9.28    1e-07    0.110   9.53  "
      " "
      "9.53    1e-07\n",
      "all-reduce.txt");
  CHECK(t.collective() == "all_reduce");
  CHECK(t.gpus() == 2);
  REQUIRE(t.rows_size() == 1);
  CHECK(t.rows(0).out_of_place().time_us() == Approx(113));
  CHECK(t.rows(0).in_place().time_us() == Approx(110));
  CHECK(t.rows(0).in_place().wrong() == "1e-07");
}

TEST_CASE("timestamps that containers put before each line are passed over",
          "[evidence][nccl-tests]") {
  const pb::MeasuredTable t = only_table(
      "2024-05-01T12:00:00.123456789Z #  size  count  type  redop  root  time  algbw  busbw "
      "#wrong\n"
      "2024-05-01T12:00:01.5+02:00   1048576  262144  float  sum  -1  38.14  27.49  51.54  0\n",
      "all_reduce.txt");
  REQUIRE(t.rows_size() == 1);
  CHECK(t.rows(0).bytes() == 1048576);
  CHECK(t.rows(0).out_of_place().time_us() == 38.14);
}

TEST_CASE("a row whose halves are on several lines between log lines is one row",
          "[evidence][nccl-tests]") {
  const pb::MeasuredTable t = only_table(
      "# nThread 1 nGpus 1 minBytes 64 maxBytes 64 step: 2(factor) warmup iters: 0 iters: 1\n"
      "#   Rank  0 Pid 43 on node-27 device  0 [0x0f] NVIDIA GeForce RTX 3090\n"
      "#       size         count      type   redop     time   algbw   busbw  error     time   "
      "algbw"
      "   busbw  error\n"
      "          64            16     float     sumnode-27:43:43 [0] NCCL INFO AllReduce: opCount "
      "0 "
      "sendbuff 0x7 recvbuff 0x8 count 16 datatype 7 op 0 root 0 comm 0x1 [nranks=1] stream 0x9\n"
      "node-27:43:43 [0] NCCL INFO 64 Bytes -> Algo 0 proto 0 time 49.5\n"
      "    413.6    0.00    0.00  2e-07node-27:43:43 [0] NCCL INFO Created 1 queue info\n"
      "    336.0    0.00    0.00  2e-07\n");
  CHECK(t.collective() == "all_reduce");
  CHECK(t.collective_from() == "log");
  REQUIRE(t.rows_size() == 1);
  CHECK(t.rows(0).out_of_place().time_us() == 413.6);
  CHECK(t.rows(0).out_of_place().wrong() == "2e-07");
  CHECK(t.rows(0).in_place().time_us() == 336.0);
  CHECK(t.rows(0).algorithm() == "Tree");
  CHECK(t.rows(0).protocol() == "LL");
  CHECK(t.rows(0).predicted_us() == 49.5);
}

TEST_CASE("tables without redop, root or in-place half are read", "[evidence][nccl-tests]") {
  const pb::MeasuredTable t = only_table(
      "#       size         count      type     time   algbw   busbw  error     time   algbw   "
      "busbw"
      "  error\n"
      "          64             2     float   158724    0.00    0.00    N/A\n",
      "nccl_all_gather0.txt");
  CHECK(t.collective() == "all_gather");
  CHECK(t.collective_from() == "file name");
  REQUIRE(t.rows_size() == 1);
  CHECK(t.rows(0).out_of_place().time_us() == 158724);
  CHECK_FALSE(t.rows(0).has_in_place());
  CHECK(t.rows(0).redop().empty());
}

TEST_CASE("a table whose header lost its marks is read with its conditions",
          "[evidence][nccl-tests]") {
  const std::string marked =
      "# nThread 1 nGpus 1 minBytes 32 maxBytes 64 step: 2(factor) warmup iters: 5 iters: 20\n"
      "# Using devices\n"
      "#   Rank  0 Pid 1821213 on node1 device  0 [0x00] NVIDIA A100-SXM4-40GB\n"
      "#   Rank  1 Pid 1821214 on node1 device  1 [0x00] NVIDIA A100-SXM4-40GB\n"
      "#       size         count    type   redop     time   algbw   busbw  error     time   algbw "
      "  "
      "busbw  error\n"
      "          32             8   float     sum    25.15    0.00    0.00  0e+00    24.15    0.00 "
      "  "
      " 0.00  0e+00\n"
      "# Avg bus bandwidth    : 0.5\n";
  std::string bare = marked;
  bare.erase(std::remove(bare.begin(), bare.end(), '#'), bare.end());
  const pb::MeasuredTable t = only_table(bare, "all_reduce.txt");
  CHECK(t.gpus() == 2);
  CHECK(t.iterations() == 20);
  CHECK(t.average_busbw() == 0.5);
  CHECK(t.SerializeAsString() == only_table(marked, "all_reduce.txt").SerializeAsString());
}

TEST_CASE("a blank redop and a root are told apart", "[evidence][nccl-tests]") {
  const pb::MeasuredTable t = only_table(
      "#  size  count  type  redop  root  time  algbw  busbw  #wrong\n"
      "   64  16  float    3   12.5  1.0  1.0  0\n",
      "nccl_broadcast.txt");
  REQUIRE(t.rows_size() == 1);
  CHECK(t.rows(0).root() == 3);
  CHECK(t.rows(0).redop().empty());
  CHECK(t.rows(0).out_of_place().time_us() == 12.5);
}

TEST_CASE("prefixes of launchers inside rows are taken out", "[evidence][nccl-tests]") {
  const std::string rows =
      "[1,0]<stdout>:#  size  count  type  redop  root  time  algbw  busbw  #wrong\n"
      "[1,0]<stdout>:   64  16  float sum -1[1,0]<stdout>:   12.5  1.0  1.0  0\n";
  CHECK(only_table(rows, "all_reduce.log").rows_size() == 1);
  const std::string slurm =
      "0: #  size  count  type  redop  root  time  algbw  busbw  #wrong\n"
      "0:   64  16  float sum -1   12.5  1.0  1.0  0\n";
  CHECK(only_table(slurm, "all_reduce.log").rows_size() == 1);
}

TEST_CASE("markers of a script are conditions; the collective follows from the columns",
          "[evidence][nccl-tests]") {
  const auto tables = tables_of(must_read(
      "### ALGO=Ring size=268435456\n"
      " 268435456 67108864 float sum -1 1187.29 226.09 339.14 0 1182.80 226.95 340.42 0\n"
      "### ALGO=Ring size=1073741824\n"
      " 1073741824 268435456 float sum -1 4528.41 237.11 355.67 0 4521.11 237.50 356.24 0\n"
      "### ALGO=Tree size=268435456\n"
      " 268435456 67108864 float sum -1 1706.78 157.28 235.91 0 1709.14 157.06 235.59 0\n",
      "sweep.txt"));
  REQUIRE(tables.tables_size() == 2);
  CHECK(tables.tables(0).forced_algorithm() == "Ring");
  CHECK(tables.tables(0).rows_size() == 2);
  CHECK(tables.tables(0).runs() == 2);
  CHECK(tables.tables(0).collective() == "all_reduce");
  CHECK(tables.tables(0).collective_from() == "columns");
  CHECK(tables.tables(0).gpus() == 4);
  CHECK(tables.tables(0).gpus_inferred());
  CHECK(tables.tables(1).forced_algorithm() == "Tree");
}

TEST_CASE("a row that was cut is a finding, not a number", "[evidence][nccl-tests]") {
  const auto read = must_read(
      "#  size  count  type  redop  root  time  algbw  busbw  #wrong\n"
      "   64  16  float sum -1   12.5  1.0  1.0  0\n"
      "   128  32  float sum -1   12.\n",
      "all_reduce.txt");
  CHECK(tables_of(read).tables(0).rows_size() == 1);
  CHECK(read.findings.count("nccl-tests-row-incomplete") == 1);
}

TEST_CASE("halves on lines of their own are found behind prefixes", "[evidence][nccl-tests]") {
  for (const std::string prefix : {"[0] ", "node-1: ", "[rank0]:"}) {
    std::string text;
    for (const char* line :
         {"#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong",
          "   64  16  float sum -1", "a-1:7:7 [0] NCCL INFO 64 Bytes -> Algo 0 proto 1 time 54.7",
          "   12.5  1.0  1.0  0", "a-1:7:7 [0] NCCL INFO 64 Bytes -> Algo 0 proto 1 time 54.7",
          "   13.5  0.9  0.9  0"}) {
      text += prefix + line + "\n";
    }
    INFO(prefix);
    const pb::MeasuredTable t = only_table(text, "all_reduce.txt");
    REQUIRE(t.rows_size() == 1);
    CHECK(t.rows(0).out_of_place().time_us() == 12.5);
    CHECK(t.rows(0).in_place().time_us() == 13.5);
  }
  const pb::MeasuredTable glued = only_table(
      "[0] #  size  count  type  redop  root  time  algbw  busbw #wrong\n"
      "[0]    64  16  float sum -1[0] a-1:7:7 [0] NCCL INFO 64 Bytes -> Algo 0 proto 1 time 54.7\n"
      "[0]    12.5  1.0  1.0  0\n",
      "all_reduce.txt");
  REQUIRE(glued.rows_size() == 1);
  CHECK(glued.rows(0).out_of_place().time_us() == 12.5);
}

TEST_CASE("halves are found behind times per iteration", "[evidence][nccl-tests]") {
  const pb::MeasuredTable t = only_table(
      "# size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv% time algbw "
      "busbw "
      "#wrong i_min i_max i_p99 i_cv%  timestamp\n"
      " 1048576 131072 float none -1 20.10 52.17 26.08 0 19.80 21.90 21.90 2.51 19.90 52.69 26.35 "
      "0 "
      "19.70 20.90 20.90 1.20 2026-01-02 03:04:05\n",
      "all_gather.txt");
  REQUIRE(t.rows_size() == 1);
  CHECK(t.rows(0).out_of_place().time_us() == 20.10);
  CHECK(t.rows(0).in_place().time_us() == 19.90);
  CHECK(t.rows(0).in_place().busbw() == 26.35);
}

TEST_CASE("a half below the second time is the one in place", "[evidence][nccl-tests]") {
  const pb::MeasuredTable t = only_table(
      "#    size   count    type   redop    root     time   algbw   busbw #wrong     time   algbw  "
      " "
      "busbw #wrong\n"
      "  1048576  262144   float     sum      -1                                     27.49   38.15 "
      "  "
      "66.76      0\n",
      "run.txt");
  REQUIRE(t.rows_size() == 1);
  CHECK_FALSE(t.rows(0).has_out_of_place());
  CHECK(t.rows(0).in_place().time_us() == 27.49);
  CHECK(t.collective() == "all_reduce");
  CHECK(t.gpus() == 8);
}

TEST_CASE("processes that do not know of each other are not one measurement",
          "[evidence][nccl-tests]") {
  const auto read = must_read(
      "$ mpirun -np 2 build/all_reduce_perf_mpi -g 1\n"
      "# nThread 1 nGpus 1 minBytes 64 maxBytes 64 step: 2(factor) warmup iters: 5 iters: 20\n"
      "# Using devices\n"
      "# nThread 1 nGpus 1 minBytes 64 maxBytes 64 step: 2(factor) warmup iters: 5 iters: 20\n"
      "# Using devices\n"
      "#   Rank  0 Pid   1320 on node-b device  0 [0x00] Tesla V100-SXM2-16GB\n"
      "#   Rank  0 Pid   2066 on node-a device  0 [0x00] Tesla V100-SXM2-16GB\n"
      "#  size  count  type  redop  time  algbw  busbw  error\n"
      "     64     16  float   sum   3.3   0.02   0.00  0e+00\n"
      "     64     16  float   sum   3.4   0.02   0.00  0e+00\n",
      "run.txt");
  const auto tables = tables_of(read);
  REQUIRE(tables.tables_size() == 1);
  CHECK(tables.tables(0).collective() == "all_reduce");
  CHECK(tables.tables(0).gpus() == 1);
  CHECK(tables.tables(0).rows_size() == 2);
  CHECK(read.findings.count("nccl-tests-not-joined") == 1);
}

TEST_CASE("devices that were listed before NCCL 2 count", "[evidence][nccl-tests]") {
  const pb::MeasuredTable t = only_table(
      "# Using devices\n"
      "#   Rank  0 uses device  0 [0x04] GeForce GTX 1080\n"
      "#   Rank  1 uses device  1 [0x05] GeForce GTX 1080\n"
      "#      bytes             N    type      op     time  algbw  busbw      res     time  algbw  "
      "busbw      res\n"
      "      100000        100000    char     sum    0.150   0.67   0.67    0e+00    0.140   0.71  "
      " "
      "0.71    0e+00\n",
      "all_reduce.txt");
  CHECK(t.gpus() == 2);
  CHECK(t.hardware() == "GeForce GTX 1080");
  CHECK(t.rows(0).out_of_place().time_us() == 150);
}

TEST_CASE("runs of unnamed collectives are one table only with the same columns",
          "[evidence][nccl-tests]") {
  const std::string head =
      "# nThread 1 nGpus 2 minBytes 64 maxBytes 64 step: 2(factor) warmup iters: 5 iters: 20\n"
      "#   Rank  0 Pid   1320 on node-a device  0 [0x00] Tesla V100-SXM2-16GB\n"
      "#   Rank  1 Pid   1320 on node-a device  1 [0x01] Tesla V100-SXM2-16GB\n"
      "#  size  count  type  redop  root  time  algbw  busbw  #wrong\n";
  const std::string sum = head + "     64     16  float   sum  -1  3.3   0.02   0.02  0\n";
  const std::string none = head + "     64     16  float   none  -1  3.4   0.02   0.01  0\n";
  CHECK(tables_of(must_read(sum + none)).tables_size() == 2);
  CHECK(tables_of(must_read(sum + sum)).tables_size() == 1);
}

TEST_CASE("wrong results of a test are said", "[evidence][nccl-tests]") {
  const auto with = [](const std::string& wrong, const std::string& end) {
    return must_read(
        "#   Rank  0 Pid   1320 on node-a device  0 [0x00] Tesla V100-SXM2-16GB\n"
        "#  size  count  type  redop  root  time  algbw  busbw  #wrong\n"
        "     64     16  float   sum  -1  3.3   0.02   0.02  " +
        wrong + "\n# Out of bounds values : " + end + "\n");
  };
  CHECK(with("0", "0 OK").findings.count("nccl-tests-wrong-values") == 0);
  CHECK(with("N/A", "0 OK").findings.count("nccl-tests-wrong-values") == 0);
  CHECK(with("1e-06", "0 OK").findings.count("nccl-tests-wrong-values") == 0);
  CHECK(with("12", "1 FAILED").findings.count("nccl-tests-wrong-values") == 1);
  CHECK(with("3e+00", "1 FAILED").findings.count("nccl-tests-wrong-values") == 1);
}

TEST_CASE("a test that failed says so", "[evidence][nccl-tests]") {
  const std::string head =
      "#   Rank  0 Pid   1320 on node-a device  0 [0x00] Tesla V100-SXM2-16GB\n"
      "#  size  count  type  redop  root  time  algbw  busbw  #wrong\n";
  const std::string failure = "node-a: Test NCCL failure common.cu:958 'remote process exited'\n";
  const auto refused = samples::read_bytes(head + failure);
  REQUIRE(!refused);
  CHECK(refused.error().what.find("remote process exited") != std::string::npos);
  const auto read =
      must_read(head + "     64     16  float   sum  -1  3.3   0.02   0.02  0\n" + failure);
  CHECK(read.findings.count("nccl-tests-failed") == 1);
  CHECK(tables_of(read).tables(0).rows_size() == 1);
}

TEST_CASE("times of the host are said to be such", "[evidence][nccl-tests]") {
  std::string text = samples::kTable;
  CHECK(must_read(text).findings.count("nccl-tests-cpu-time") == 0);
  for (size_t at = text.find("   time"); at != std::string::npos; at = text.find("   time")) {
    text.replace(at, 7, "cputime");
  }
  const auto read = must_read(text);
  CHECK(read.findings.count("nccl-tests-cpu-time") == 1);
  CHECK(samples::tables_of(read).tables(0).rows_size() > 0);
}

TEST_CASE("the report of nccl-tests as JSON is a table", "[evidence][nccl-tests]") {
  const std::string text = R"({"version":2,"args":["build\/all_reduce_perf","-b","1M"],
"env":["NCCL_ALGO=Ring","SECRET=x"],"nccl_version":22809,"config":{"nthreads":1,"ngpus":1,
"warmup_iters":1,"iterations":20,"graph":0,"devices":[
{"rank":0,"group":0,"pid":313,"hostname":"a","device":0,"device_hex":"0000:18:00","device_info":"NVIDIA A40"},
{"rank":1,"group":0,"pid":314,"hostname":"b","device":0,"device_hex":"0000:2a:00","device_info":"NVIDIA A40"}]},
"results":[{"size":1048576,"count":262144,"type":"float","redop":"sum","root":"    -1",
"out_of_place":{"time":20.1,"alg_bw":52.17,"bus_bw":52.17,"nwrong":0.0},
"in_place":{"time":19.9,"alg_bw":52.69,"bus_bw":52.69,"nwrong":null}},
{"size":2097152,"count":524288,"type":"float","redop":"sum","root":"    -1","out_of_place":null,
"in_place":{"cpu_time":26.9,"alg_bw":77.96,"bus_bw":77.96,"nwrong":3.0}},
{"size":4194304,"count":1048576,"type":"float","redop":"sum","root":"    -1","out_of_place":null}],
"average_bus_bandwidth":{"bandwidth":60.9,"okay":"unchecked"},"errors":[]})";
  const auto read = must_read(text, "report.json");
  CHECK(read.format == "nccl-tests-json");
  const auto tables = tables_of(read);
  REQUIRE(tables.tables_size() == 1);
  const pb::MeasuredTable& t = tables.tables(0);
  CHECK(t.collective() == "all_reduce");
  CHECK(t.nccl_version() == "2.28.9");
  CHECK(t.forced_algorithm() == "Ring");
  CHECK(t.gpus() == 2);
  CHECK(t.nodes() == 2);
  CHECK(t.iterations() == 20);
  CHECK(t.average_busbw() == 60.9);
  REQUIRE(t.rows_size() == 2);
  CHECK(t.rows(0).root() == -1);
  CHECK(t.rows(0).out_of_place().wrong() == "0");
  CHECK(t.rows(0).in_place().wrong() == "N/A");
  CHECK_FALSE(t.rows(1).has_out_of_place());
  CHECK(t.rows(1).in_place().time_us() == 26.9);
  CHECK(t.rows(1).in_place().wrong() == "3");
  CHECK(read.findings.count("nccl-tests-row-incomplete") == 1);
  CHECK_FALSE(samples::read_bytes(text.substr(0, text.size() - 20), "report.json"));
}

TEST_CASE("figures as CSV are the same tables", "[evidence][nccl-tests]") {
  const auto read = must_read(
      "table_id,collective,hardware,nodes,gpus,bytes,time_us_oop,algbw_oop,busbw_oop,wrong_oop,"
      "options\n"
      "a#1,alltoall,\"H100, SXM\",2,16,1024,12.5,0.08,0.07,0,\n"
      "a#1,alltoall,\"H100, SXM\",2,16,2048,,0.08,0.07,0,\n"
      "b#1,all_reduce,H100,1,8,1024,10,0.1,0.17,0,quiet\n",
      "figures.csv");
  CHECK(read.format == "nccl-tests-csv");
  const auto tables = tables_of(read);
  REQUIRE(tables.tables_size() == 2);
  CHECK(tables.tables(0).collective() == "all_to_all");
  CHECK(tables.tables(0).hardware() == "H100, SXM");
  CHECK(tables.tables(0).rows_size() == 1);
  CHECK(tables.tables(1).options() == "quiet");
  CHECK(read.findings.count("nccl-tests-row-incomplete") == 1);
}

TEST_CASE("figures without names of tables are told apart by their conditions",
          "[evidence][nccl-tests]") {
  const auto tables =
      tables_of(must_read("collective,hardware,nodes,gpus,gpus_per_thread,bytes,time_us,algbw\n"
                          "all_reduce,H100,1,8,1,1024,10,0.1\n"
                          "all_gather,H100,1,8,1,1024,11,0.1\n"
                          "all_reduce,H100,1,8,1,2048,12,0.2\n"
                          "all_reduce,H100,1,8,8,1024,40,0.1\n",
                          "figures.csv"));
  REQUIRE(tables.tables_size() == 3);
  CHECK(tables.tables(0).rows_size() == 2);
  CHECK(tables.tables(1).collective() == "all_gather");
  CHECK(tables.tables(1).id() == "all_gather#2");
  CHECK(tables.tables(2).gpus_per_thread() == 8);
}

}  // namespace rehearse::evidence_tables_test
