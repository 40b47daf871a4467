// SPDX-License-Identifier: Apache-2.0
#include "cli/capture_plan.hpp"

#include <catch2/catch.hpp>
#include <map>

namespace rehearse::capture_plan_test {
using namespace rehearse;
using namespace rehearse::cli;

namespace {

using Variables = std::map<std::string, std::string>;

CapturePlan plan_of(const std::vector<std::string>& command, const Variables& there = {},
                    const std::string& version = "", std::vector<std::string> with = {}) {
  const CaptureRequest request{"/lib/x.so", "/data/run", "3-5", std::move(with)};
  return plan_capture(
      request, command,
      [&](const std::string& name) {
        const auto found = there.find(name);
        return found == there.end() ? std::nullopt : std::optional(found->second);
      },
      [&](const std::string&) { return version; });
}

Variables set_by(const CapturePlan& plan) {
  return {plan.environment.begin(), plan.environment.end()};
}

}  // namespace

TEST_CASE("a plan opens every door and lets NCCL write what it sees", "[cli][capture]") {
  const CapturePlan plan = plan_of({"torchrun", "train.py"});
  const Variables set = set_by(plan);
  for (const char* door :
       {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "NCCL_PROFILER_PLUGIN"}) {
    CHECK(set.at(door) == "/lib/x.so");
  }
  CHECK(set.at("REHEARSE_CAPTURE_FOLDER") == "/data/run");
  CHECK(set.at("REHEARSE_CAPTURE_STEPS") == "3-5");
  CHECK(set.at("NCCL_DEBUG_FILE") == "/data/run/nccl.%h.%p.log");
  CHECK(set.count("NCCL_TOPO_DUMP_FILE") == 1);
  CHECK(set.count("NCCL_GRAPH_DUMP_FILE") == 1);
  CHECK(set.count("NCCL_TUNER_PLUGIN") == 0);
  CHECK(plan.command == std::vector<std::string>{"torchrun", "train.py"});
  CHECK(plan.notes.empty());
  CHECK(set_by(plan_of({"x"}, {}, "", {"tuner"})).at("NCCL_TUNER_PLUGIN") == "/lib/x.so");
}

TEST_CASE("what the user has set stays, and is told", "[cli][capture]") {
  const CapturePlan plan =
      plan_of({"python3"}, {{"NVTX_INJECTION64_PATH", "/nsys.so"}, {"NCCL_DEBUG", "WARN"}});
  const Variables set = set_by(plan);
  CHECK(set.count("NVTX_INJECTION64_PATH") == 0);
  CHECK(set.count("NCCL_DEBUG") == 0);
  CHECK(set.count("NCCL_DEBUG_FILE") == 0);
  CHECK(set.count("CUDA_INJECTION64_PATH") == 1);
  CHECK(plan.notes.size() == 2);
}

TEST_CASE("Open MPI is told which variables to hand on, other MPIs do by themselves",
          "[cli][capture]") {
  const CapturePlan open =
      plan_of({"/opt/bin/mpirun", "-np", "2", "a"}, {}, "mpirun (Open MPI) 4.1");
  REQUIRE(open.command.size() == 4 + 2 * open.environment.size());
  CHECK(open.command[1] == "-x");
  CHECK(open.command[2] == "CUDA_INJECTION64_PATH");
  CHECK(open.command[open.command.size() - 3] == "-np");
  const CapturePlan hydra = plan_of({"mpirun", "-n", "2", "a"}, {}, "HYDRA build details:");
  CHECK(hydra.command.size() == 4);
  CHECK(hydra.notes.empty());
  CHECK(plan_of({"mpirun", "a"}).notes.size() == 1);
}

TEST_CASE("srun's own list of variables is made longer", "[cli][capture]") {
  CHECK(plan_of({"srun", "-n2", "a"}).command.size() == 3);
  const auto listed = plan_of({"srun", "--export=PATH,HOME", "a"}).command;
  CHECK(listed[1].starts_with("--export=PATH,HOME,CUDA_INJECTION64_PATH,"));
  const auto none = plan_of({"srun", "--export", "NONE", "a"}).command;
  CHECK(none[2].starts_with("CUDA_INJECTION64_PATH,"));
  const auto behind_values =
      plan_of({"srun", "-N", "2", "-l", "--ntasks", "8", "--export=PATH", "a"}).command;
  CHECK(behind_values[6].starts_with("--export=PATH,CUDA_INJECTION64_PATH,"));
  // Options of the program are not srun's.
  CHECK(plan_of({"srun", "-n", "4", "a", "--export=NONE"}).command[4] == "--export=NONE");
  CHECK(plan_of({"srun", "--no-kill", "-u", "a", "--export", "b"}).command.back() == "b");
  CHECK(plan_of({"srun", "a", "--export=NONE"}).command[2] == "--export=NONE");
  const auto by_variable = plan_of({"srun", "a"}, {{"SLURM_EXPORT_ENV", "NONE"}}).command;
  CHECK(by_variable[1].starts_with("--export=CUDA_INJECTION64_PATH,"));
}

TEST_CASE("requests that make no sense are refused with what to write", "[cli][capture]") {
  CHECK(check_request({"/l", "/f", "", {}}));
  CHECK(check_request({"/l", "/f", "10s-20s", {"memory", "tuner"}}));
  const auto steps = check_request({"/l", "/f", "5-3", {}});
  REQUIRE_FALSE(steps);
  CHECK(steps.error().code == Code::kUsage);
  CHECK_FALSE(steps.error().fix.empty());
  const auto with = check_request({"/l", "/f", "", {"memori"}});
  REQUIRE_FALSE(with);
  CHECK(with.error().fix.find("memory") != std::string::npos);
}

}  // namespace rehearse::capture_plan_test
