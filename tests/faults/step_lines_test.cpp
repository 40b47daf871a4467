// SPDX-License-Identifier: Apache-2.0
// Steps in what training scripts print.
#include "faults/diagnose/step_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>

#include "base/reporter.hpp"

namespace rehearse::step_lines_test {
using namespace rehearse;
using namespace rehearse::faults;

namespace {

const StepLines& shipped() {
  const auto& loaded = StepLines::shipped();
  REQUIRE(loaded);
  return *loaded;
}

pb::StepLineTable one_row(const char* sign, const char* pattern, uint32_t step) {
  pb::StepLineTable table;
  pb::StepLine& row = *table.add_lines();
  row.set_name("own");
  row.set_sign(sign);
  row.set_pattern(pattern);
  row.set_step(step);
  return table;
}

}  // namespace

TEST_CASE("every shape of step lines reads its own example and no other's", "[faults][logs]") {
  for (const pb::StepLine& row : shipped().table().lines()) {
    INFO(row.name());
    REQUIRE_FALSE(row.example().empty());
    CHECK_FALSE(row.source().empty());
    const StepLines::Read read = shipped().read(row.example());
    REQUIRE(read.row);
    CHECK(read.row->name() == row.name());
    CHECK(read.step.has_value() == (row.step() > 0));
    CHECK(read.step.value_or(0) == row.example_step());
    if (row.time() > 0) CHECK(read.seconds.value_or(0) == Approx(row.example_seconds()));
    CHECK(read.seconds.has_value() == (row.time() > 0 || row.rate() > 0));
  }
}

TEST_CASE("lines of no known shape tell of no step, and NCCL's and errors do not",
          "[faults][logs]") {
  const ToldSteps told = told_steps(
      "node0:1000:1000 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\n"
      "\n"
      "Running benchmark...\n"
      "  0%|  | 0/10 [00:00<?, ?it/s]\r 10%|#  | 1/10 [00:02<00:18,  2.00s/it]\r 20%|## | 2/10 "
      "[00:04<00:16,  2.00s/it]\n"
      "iterations of my own: 12\n"
      "RuntimeError: CUDA error\n",
      shipped());
  CHECK(told.lines == 2);
  CHECK(told.seconds == std::vector<double>{2, 2});
  CHECK(told.began);
  CHECK(told.steps == 2u);
  const ToldSteps own = told_steps("loading\nschritt 1 fertig\n", shipped());
  CHECK(own.lines == 0);
  CHECK_FALSE(own.steps);
  CHECK_FALSE(told_steps("", shipped()).steps);
  // None is known where the script came to its training.
  std::string log = "=> creating model 'resnet50'\n";
  CHECK(told_steps(log, shipped()).steps == 0u);
  for (int step = 0; step < 20; ++step) log += "schritt " + std::to_string(step) + " fertig\n";
  CHECK_FALSE(told_steps(log, shipped()).steps);
}

TEST_CASE("steps are told by their numbers, however often a line is printed", "[faults][logs]") {
  const auto steps = [](const std::string& log) { return told_steps(log, shipped()).steps; };
  const std::string nanogpt = "iter {}: loss 5.4321, time 412.00ms, mfu 31.20%\n";
  std::string seldom, by_all;
  for (const int step : {100, 200, 300}) seldom += fmt::format(fmt::runtime(nanogpt), step);
  for (const int step : {0, 0, 1, 0, 1, 1, 2, 2})
    by_all += fmt::format(fmt::runtime(nanogpt), step);
  CHECK(steps(seldom) == 201u);  // at least
  CHECK(steps(by_all) == 3u);
  // A job that goes on from a checkpoint.
  CHECK(steps(fmt::format(fmt::runtime(nanogpt), 5000)) == 1u);
  // Bars of what is done before training, and short epochs: nothing is missing.
  CHECK_FALSE(steps("Loading checkpoint shards: 100%|##| 2/2 [00:02<00:00,  1.20it/s]\n"));
  CHECK_FALSE(steps(
      "4/5 - 1s 250ms/step - loss: 2.3\n5/5 - 1s 250ms/step - loss: 2.3\n1/5 - 0s 250ms/step\n"));
  // Every 500th step, and which one is not said.
  CHECK_FALSE(steps("{'loss': 2.1034, 'learning_rate': 4.9e-05, 'epoch': 0.12}\n"));
  CHECK(steps(fmt::format(fmt::runtime(nanogpt), 0) +
              fmt::format(fmt::runtime(nanogpt), UINT64_MAX)) == UINT32_MAX);
}

TEST_CASE("steps that take longer and longer are told by their times", "[faults][logs]") {
  ToldSteps told;
  told.seconds = {0.4, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8};
  CHECK_FALSE(growth(told));  // too few
  told.seconds.push_back(0.8);
  CHECK(growth(told).value_or(0) == Approx(2));
  std::fill(told.seconds.begin(), told.seconds.end(), 0.4);
  CHECK(growth(told).value_or(0) == Approx(1));
}

TEST_CASE("simulated jobs print steps that the reader counts", "[faults][logs]") {
  SilentReporter reporter;
  for (const char* name : {"ddp-16", "horovod-16", "tf-8"}) {
    INFO(name);
    const auto job = sim::load_scenario(name, reporter);
    REQUIRE(job);
    const ScriptOutput printed = script_output(*job, 3, shipped());
    CHECK(told_steps(printed.start, shipped()).lines == 0);
    CHECK(told_steps(printed.start, shipped()).steps == 0u);
    CHECK(told_steps(printed.steps, shipped()).lines == 3);
    CHECK(told_steps(printed.steps, shipped()).steps == 3u);
    CHECK(script_output(*job, 0, shipped()).steps.empty());
  }
}

TEST_CASE("a table of step lines is refused where it could not read anything", "[faults][logs]") {
  CHECK(StepLines::of(one_row("step", R"(step (\d+))", 1)));
  CHECK_FALSE(StepLines::of(one_row("", R"(step (\d+))", 1)));
  CHECK_FALSE(StepLines::of(one_row("step", "step (", 0)));
  const auto groups = StepLines::of(one_row("step", R"(step (\d+))", 2));
  REQUIRE_FALSE(groups);
  CHECK(groups.error().message().find("fewer groups") != std::string::npos);
}

}  // namespace rehearse::step_lines_test
