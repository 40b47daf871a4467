// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/environment.hpp"

#include <catch2/catch.hpp>

namespace rehearse::environment_test {
using namespace rehearse;

TEST_CASE("a rank's variable wins over the job's and an empty one is unset", "[scenario]") {
  pb::Launch launch;
  (*launch.mutable_env())["NCCL_ALGO"] = "Ring";
  (*launch.mutable_env())["NCCL_PROTO"] = "LL";
  (*launch.mutable_env())["NCCL_DEBUG"] = "";
  pb::RankLaunch& rank = *launch.add_ranks();
  (*rank.mutable_env())["NCCL_ALGO"] = "Tree";
  (*rank.mutable_env())["NCCL_PROTO"] = "";
  (*rank.mutable_env())["NCCL_IB_DISABLE"] = "1";
  const std::map<std::string, std::string> expected = {{"NCCL_ALGO", "Tree"},
                                                       {"NCCL_IB_DISABLE", "1"}};
  CHECK(sim::environment_of(launch, rank) == expected);
}

}  // namespace rehearse::environment_test
