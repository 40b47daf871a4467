// SPDX-License-Identifier: Apache-2.0
// Scenarios made of several files, and patches that act without being shown.
#include <catch2/catch.hpp>
#include <fstream>

#include "sim/scenario/environment.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/sealed.hpp"
#include "tests/temporary_folder.hpp"

namespace rehearse::scenario_files_test {
using namespace rehearse;
using namespace rehearse::sim;

namespace {

void write(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

std::string variable(const Scenario& scenario, int rank, const std::string& name) {
  const pb::Launch& launch = scenario.document.launch();
  const auto environment = environment_of(launch, launch.ranks(rank));
  const auto at = environment.find(name);
  return at == environment.end() ? "" : at->second;
}

constexpr const char* kJob =
    "trace: ddp-16\n"
    "platform: cluster.yaml\n"
    "launch:\n"
    "  env: {A: job, B: job, C: job}\n"
    "  nodes:\n"
    "  - {node: 1, env_file: env/one.env, env: {C: entry}}\n"
    "  ranks:\n"
    "  - {rank: 9, node: 1, gpu: 1, env: {B: rank}}\n";

}  // namespace

TEST_CASE("platform and environments are files beside the scenario", "[sim][scenario]") {
  SilentReporter reporter;
  tests::TemporaryFolder folder;
  write(folder.path / "job.yaml", kJob);
  write(folder.path / "cluster.yaml", "like: dgx-a100\nscale: 2\n");
  write(folder.path / "env/one.env", "# a comment\nexport B=file\nC=file\nC='last'\nA=\n");
  const auto scenario = load_scenario((folder.path / "job.yaml").string(), reporter);
  if (!scenario) FAIL(scenario.error().message());
  CHECK(scenario->document.platform().nodes_size() == 2);
  CHECK(scenario->document.launch().nodes().empty());
  CHECK(variable(*scenario, 0, "B") == "job");
  CHECK(variable(*scenario, 8, "A").empty());  // the file unsets it
  CHECK(variable(*scenario, 8, "B") == "file");
  CHECK(variable(*scenario, 8, "C") == "entry");
  CHECK(variable(*scenario, 9, "B") == "rank");
}

TEST_CASE("files that variables name are read from the folder of the scenario only",
          "[sim][scenario]") {
  SilentReporter reporter;
  tests::TemporaryFolder folder;
  write(folder.path / "nccl/topo.xml", "<system/>");
  const auto loaded = [&](const std::string& files) {
    write(
        folder.path / "job.yaml",
        "trace: ddp-16\nplatform: {like: dgx-a100, scale: 2}\nlaunch:\n  files: [" + files + "]\n");
    return load_scenario((folder.path / "job.yaml").string(), reporter);
  };
  const auto good = loaded("{path: /etc/topo.xml, file: nccl/topo.xml}");
  if (!good) FAIL(good.error().message());
  REQUIRE(good->document.launch().files_size() == 1);
  CHECK(good->document.launch().files(0).text() == "<system/>");
  CHECK(good->document.launch().files(0).file().empty());
  CHECK(loaded("{path: /etc/topo.xml, text: <system/>}"));
  for (const char* away : {"/etc/passwd", "../job.yaml", "nccl/../../job.yaml"}) {
    const auto refused = loaded(std::string("{path: /etc/topo.xml, file: ") + away + "}");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Code::kBadInput);
    CHECK(refused.error().what.find("not below the folder") != std::string::npos);
  }
  CHECK_FALSE(loaded("{path: /etc/topo.xml}"));
  CHECK_FALSE(loaded("{file: nccl/topo.xml}"));
  CHECK(loaded("{path: /etc/topo.xml, file: other.xml}").error().code == Code::kMissingInput);
}

TEST_CASE("a file that the scenario names and that is not there is an error", "[sim][scenario]") {
  SilentReporter reporter;
  tests::TemporaryFolder folder;
  write(folder.path / "job.yaml", kJob);
  auto scenario = load_scenario((folder.path / "job.yaml").string(), reporter);
  REQUIRE_FALSE(scenario);
  CHECK(scenario.error().code == Code::kMissingInput);
  write(folder.path / "cluster.yaml", "like: dgx-a100\nscale: 2\n");
  scenario = load_scenario((folder.path / "job.yaml").string(), reporter);
  REQUIRE_FALSE(scenario);
  CHECK(scenario.error().code == Code::kMissingInput);
  CHECK(scenario.error().where.find("one.env") != std::string::npos);
  write(folder.path / "cluster.yaml", "like: dgx-a100\nscale: 2\nnodez: 3\n");
  scenario = load_scenario((folder.path / "job.yaml").string(), reporter);
  REQUIRE_FALSE(scenario);
  CHECK(scenario.error().where.find("cluster.yaml:3:1") != std::string::npos);
}

TEST_CASE("what is sealed acts and is not listed", "[sim][scenario]") {
  SilentReporter reporter;
  const auto slow = parse_patch("slow-rank: {rank: 3, slowdown: 2}", "test");
  const auto set = parse_patch("set: {launch.env.A: '1', launch.env.B: '2'}", "test");
  REQUIRE(slow);
  REQUIRE(set);
  const std::vector<pb::Patch> patches = {*slow, *set};
  const std::string word = seal(patches);
  CHECK(word == seal(patches));
  CHECK(word.find("slow") == std::string::npos);
  CHECK(seal({}).empty());
  auto written = pb::Scenario();
  written.mutable_trace()->set_file("ddp-16");
  written.set_sealed(word);
  const auto scenario = load_scenario(written, "job.yaml", reporter);
  if (!scenario) FAIL(scenario.error().message());
  CHECK(scenario->transforms.size() == 1);
  CHECK(variable(*scenario, 0, "B") == "2");
  CHECK(scenario->applied.empty());
  for (const std::string& bad : {word.substr(1), word + "zz", std::string("slow-rank")}) {
    const auto read = unseal(bad, "job.yaml");
    REQUIRE_FALSE(read);
    CHECK(read.error().where == "job.yaml: sealed");
  }
}

}  // namespace rehearse::scenario_files_test
