// SPDX-License-Identifier: Apache-2.0
// What processes are told and what their libraries are, by framework and version.
#include <catch2/catch.hpp>

#include "tests/sim/starts.hpp"

namespace rehearse::told_test {
using namespace rehearse;
using namespace rehearse::sim;
using namespace rehearse::tests;

TEST_CASE("TensorFlow reads TF_CONFIG and not the variables of other launchers", "[bringup]") {
  CHECK_FALSE(start("tf-8", {"launch.env.WORLD_SIZE=1", "launch.env.RANK=0"}).failed);
  const auto more = start("tf-8", {"launch.world_size=12"});
  REQUIRE(more.failed);
  CHECK(more.outcome.verdict() == pb::HANG);
  CHECK(more.outcome.first_failure().time_ns() == 3600 * kSecond);
  CHECK_THAT(first_text(more.outcome), Catch::Contains("/job:worker/replica:0/task:2"));
  const auto fewer = start("tf-8", {"launch.world_size=4"});
  REQUIRE(fewer.failed);
  CHECK(fewer.outcome.verdict() == pb::CRASH);
  CHECK(fewer.outcome.first_failure().rank() == 4);
  CHECK_THAT(first_text(fewer.outcome), Catch::Contains("Task worker:1 is not in the cluster"));
  CHECK_FALSE(start("tf-8", {"launch.world_size=8"}).failed);
}

TEST_CASE("a library is missed by the newest function that the framework calls", "[bringup]") {
  const auto text = [](const std::string& name, const std::string& version) {
    const auto up = start(name, {"platform.nodes[0].versions.nccl=" + version});
    REQUIRE(up.failed);
    return first_text(up.outcome);
  };
  CHECK_THAT(text("ddp-16", "2.18.5"),
             Catch::EndsWith("libtorch_cuda.so: undefined symbol: ncclCommRegister"));
  CHECK_THAT(text("dlrm-8", "2.4.8"),
             Catch::EndsWith("undefined symbol: ncclRedOpCreatePreMulSum"));
  CHECK_THAT(text("tf-8", "2.4.8"), Catch::EndsWith("undefined symbol: ncclSend"));
}

TEST_CASE("nodes with different libraries are refused by NCCL, as far as versions are written",
          "[bringup]") {
  const auto older = start("horovod-16", {"platform.nodes[1].versions.nccl=2.10.3"});
  REQUIRE(older.failed);
  CHECK(older.outcome.error_text_size() == 16);
  CHECK_THAT(first_text(older.outcome),
             Catch::Contains("rank 8 version 21003 rank 0 version 21403"));
  REQUIRE(older.outcome.culprits_size() == 1);
  CHECK(older.outcome.culprits(0).node() == 1);
  CHECK(start("ddp-16", {"platform.nodes[1].versions.nccl=2.22.3"}).failed);
  CHECK_FALSE(start("ddp-16", {"platform.nodes[1].versions.nccl=2.21"}).failed);
  CHECK_FALSE(start("ddp-16", {"platform.nodes[*].versions.nccl=2.20.5"}).failed);
}

TEST_CASE("an address that nobody wrote is no finding", "[bringup]") {
  CHECK(start("horovod-16", {}).outcome.findings().empty());
  CHECK_FALSE(start("horovod-16", {"launch.master_addr=10.9.9.9"}).outcome.findings().empty());
}

}  // namespace rehearse::told_test
