// SPDX-License-Identifier: Apache-2.0
// Logs whose lines lost NCCL's host:pid:thread [device], as collectors of logs make them.
#include "tests/traces/evidence_samples.hpp"
#include "traces/import/nccl_log/log_line.hpp"

namespace rehearse::evidence_unplaced_test {
using namespace rehearse;
using namespace rehearse::traces;
using samples::log_of;
using samples::must_read;

namespace {

// Two ranks of one communicator; `lead` is what stands before NCCL INFO for each.
std::string log_with(const std::string& first, const std::string& second) {
  std::string text = "NCCL version 2.21.5+cuda12.4\n";
  for (int rank = 0; rank < 2; ++rank) {
    const std::string lead = (rank == 0 ? first : second) + "NCCL INFO ";
    const std::string comm = "comm 0x5" + std::to_string(rank) + " rank " + std::to_string(rank) +
                             " nranks 2 cudaDev 0 nvmlDev 0 busId 18000 commId 0x9 - Init ";
    text += lead + comm + "START\n";
    text += lead + "Channel 00/01 :    0   1\n";
    text += lead + "Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0\n";
    text += lead + comm + "COMPLETE\n";
  }
  return text;
}

}  // namespace

TEST_CASE("messages that do not tell their process are read all the same", "[evidence][nccl-log]") {
  const std::vector<std::pair<std::string, std::string>> leads = {
      {"", ""},
      {"[0] ", "[0] "},
      {"[2025-02-20 12:00:00] ", "[2025-02-20 12:00:01] "},
      {"12:00:00.123 ", "12:00:01.123 "},
      {"2025-02-20T12:00:00.5Z ", "2025-02-20T12:00:00.6Z "}};
  for (const auto& [first, second] : leads) {
    INFO(first);
    const auto read = must_read(log_with(first, second), "nccl.log");
    const auto log = log_of(read);
    CHECK(log.processes_size() == 1);
    CHECK(log.nccl_lines() == 8);
    REQUIRE(log.communicators_size() == 1);
    CHECK(log.communicators(0).ranks_size() == 2);
    CHECK(log.communicators(0).ranks(1).init_complete());
    CHECK(log.communicators(0).rings_size() == 1);
    CHECK(log.communicators(0).connections_size() == 1);
    CHECK(log.communicators(0).nccl_version() == "2.21.5");
    CHECK(read.findings.count("nccl-process-not-told") == 8);
  }
}

TEST_CASE("the label of a launcher stands for the process that is not told",
          "[evidence][nccl-log]") {
  struct Case {
    std::string first, second, host;
  };
  const std::vector<Case> cases = {{"0: ", "1: ", "1"},
                                   {" 0: ", " 1: ", "1"},
                                   {"[1,0]<stdout>:", "[1,1]<stdout>:", "1,1"},
                                   {"node1: ", "node2: ", "node2"},
                                   {"[rank0]: ", "[rank1]: ", "rank1"},
                                   {"2025-02-20 12:00:00 a: ", "2025-02-20 12:00:00 b: ", "b"}};
  for (const Case& c : cases) {
    INFO(c.first);
    const auto log = log_of(must_read(log_with(c.first, c.second), "nccl.log"));
    REQUIRE(log.processes_size() == 2);
    CHECK(log.processes(1).host() == c.host);
    REQUIRE(log.communicators_size() == 1);
    CHECK(log.communicators(0).ranks_size() == 2);
  }
}

TEST_CASE("a torn message between whole ones is no process of its own", "[evidence][nccl-log]") {
  const auto read = must_read(log_with("n:1:2 [0] ", "n:3:4 [1] ") + "NCCL INFO torn\n");
  CHECK(log_of(read).processes_size() == 2);
  CHECK(read.findings.count("nccl-process-not-told") == 0);
}

TEST_CASE("sentences that mention NCCL's levels are no messages", "[evidence][nccl-log]") {
  CHECK_FALSE(nccl_log::unplaced_message("set the level so that NCCL INFO lines appear"));
  CHECK_FALSE(nccl_log::unplaced_message(R"({"name": "NCCL INFO x"})"));
  CHECK_FALSE(nccl_log::unplaced_message("x,y,NCCL INFO z"));
  CHECK(nccl_log::unplaced_message("[1] init.cc:12 NCCL WARN x")->place == "init.cc:12");
  CHECK(nccl_log::unplaced_message("[1] init.cc:12 NCCL WARN x")->device == 1);
}

}  // namespace rehearse::evidence_unplaced_test
