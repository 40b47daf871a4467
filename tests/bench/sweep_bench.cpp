// SPDX-License-Identifier: Apache-2.0
// How fast `rehearse sweep` computes points of a study on one and on two cores, what a point costs beside its
// simulation, and the memory of a long study. Prints figures with their targets and asserts none.
//
// The program itself is run, as a user would. Rates and costs are of processor time, of the program and all its
// children; what the clock on the wall says of two cores against one is the best of three runs of each, in turn, and means
// something on an idle machine only; what the machine itself gives is told by two programs on a core each that know nothing
// of each other, in the same turns. One job that may use both cores is not one core: the next child is forked beside
// the one at work. Its figure is printed too.
#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>

#include "sim/prepared.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/simulate.hpp"
#include "sim/worker.hpp"
#include "tests/temporary_folder.hpp"

using namespace rehearse;

namespace {

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "sweep_bench: %s\n", what.c_str());
  std::exit(1);
}

// One step of ResNet-50 on the 8 GPUs of one node.
const sim::Assignments kSmall = {{"platform", "{like: dgx-a100, scale: 1}"},
                                 {"trace.synth.dp", "8"},
                                 {"trace.synth.steps", "1"}};

std::filesystem::path write_study(const std::filesystem::path& folder, int points) {
  std::string text = "base: ddp-16\naxes:\n";
  for (const auto& [path, value] : kSmall) {
    text += fmt::format("  - {{written: {}, values: [\"{}\"]}}\n", path, value);
  }
  text += "  - seed: [1";
  for (int seed = 2; seed <= points; ++seed) text += fmt::format(", {}", seed);
  text += "]\n";
  const std::filesystem::path file = folder / fmt::format("{}-points.yaml", points);
  if (!(std::ofstream(file) << text)) die("cannot write " + file.string());
  return file;
}

struct Spent {
  double wall = 0, processor = 0;  // seconds
  double memory = 0;               // MB of its largest process
};

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

constexpr int kAnyCore = -1;

// The nth of the cores that this program may use.
void stay_on_core(int nth) {
  cpu_set_t allowed, one;
  CPU_ZERO(&one);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) die("sched_getaffinity");
  int core = 0;
  for (int seen = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed) && seen++ == nth) break;
  }
  CPU_SET(core, &one);
  if (::sched_setaffinity(0, sizeof one, &one) != 0) die("sched_setaffinity");
}

pid_t start_sweep(const std::filesystem::path& study, const std::filesystem::path& folder, int jobs,
                  int core) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  if (core != kAnyCore) stay_on_core(core);
  if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(127);
  if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(127);
  const std::string count = std::to_string(jobs);
  ::execl(REHEARSE_PROGRAM, "rehearse", "sweep", study.c_str(), "-o", folder.c_str(), "--jobs",
          count.c_str(), nullptr);
  _exit(127);
}

Spent swept(const std::filesystem::path& study, const std::filesystem::path& folder, int jobs,
            int core = kAnyCore) {
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = start_sweep(study, folder, jobs, core);
  int status = 0;
  rusage usage{};
  if (::wait4(child, &status, 0, &usage) != child || status != 0) die("rehearse sweep failed");
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  return {wall.count(), seconds(usage.ru_utime) + seconds(usage.ru_stime),
          static_cast<double>(usage.ru_maxrss) / 1024};
}

// Seconds until two programs have ended that share nothing but the machine, each on a core of its own.
double swept_apart(const std::filesystem::path& study, const std::filesystem::path& first,
                   const std::filesystem::path& second) {
  const auto begin = std::chrono::steady_clock::now();
  const pid_t one = start_sweep(study, first, 1, 0), two = start_sweep(study, second, 1, 1);
  for (const pid_t child : {one, two}) {
    int status = 0;
    if (::waitpid(child, &status, 0) != child || status != 0) die("rehearse sweep failed");
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Processor time of one simulation alone: the mean of some, each in a fresh child as in a study.
double simulation_seconds() {
  constexpr int kRuns = 200;
  SilentReporter silent;
  auto scenario = sim::load_scenario("ddp-16", kSmall, silent);
  if (!scenario) die(scenario.error().message());
  sim::prepare(*scenario);
  double sum = 0;
  for (int i = 0; i < kRuns; ++i) {
    const auto took = sim::in_child(
        [&](Reporter&) -> Result<std::string> {
          const double begin = processor_seconds();
          RH_TRY(const pb::Outcome outcome,
                 sim::simulate_here(*scenario, sim::Detail::kFigures, silent));
          return fmt::format("{}", processor_seconds() - begin);
        },
        silent);
    if (!took) die(took.error().message());
    sum += std::stod(*took);
  }
  return sum / kRuns;
}

void row(const std::string& what, double figure, const std::string& unit, bool met,
         const std::string& target) {
  fmt::print("{:<58}{:>9.2f} {:<9} target {:<12} {}\n", what, figure, unit, target,
             met ? "met" : "not met");
  std::fflush(stdout);
}

}  // namespace

int main() {
  const tests::TemporaryFolder folder;
  constexpr int kFew = 100, kSome = 1000, kMany = 10'000;
  const auto few = write_study(folder.path, kFew), some = write_study(folder.path, kSome),
             many = write_study(folder.path, kMany);
  int round = 0;
  const auto fresh = [&] { return folder.path / fmt::format("out-{}", round++); };

  // The same work once more with fewer points: what the start costs is taken out of what a point costs.
  const Spent start = swept(few, fresh(), 1);
  Spent one = swept(some, fresh(), 1), two = swept(some, fresh(), 2);
  const double point = (one.processor - start.processor) / (kSome - kFew);
  const double point_of_two = two.processor / kSome;
  double one_core = swept(some, fresh(), 1, 0).wall, apart = swept_apart(some, fresh(), fresh());
  for (int again = 0; again < 2; ++again) {
    one.wall = std::min(one.wall, swept(some, fresh(), 1).wall);
    one_core = std::min(one_core, swept(some, fresh(), 1, 0).wall);
    apart = std::min(apart, swept_apart(some, fresh(), fresh()));
    two.wall = std::min(two.wall, swept(some, fresh(), 2).wall);
  }
  row("points/s on 2 cores, by processor time", 2 / point_of_two, "points/s",
      2 / point_of_two >= 300, ">= 300");
  fmt::print(
      "  by the clock: {:.0f} points/s on 1 core, {:.0f} with 1 job on 2, {:.0f} with 2 jobs\n",
      kSome / one_core, kSome / one.wall, kSome / two.wall);
  const double grown = one.processor / two.processor;
  const auto efficiency = [&](const std::string& what, double of_one) {
    const double clock = of_one / two.wall / 2;
    row(what, 100 * clock, "%", clock >= 0.85, ">= 85 %");
  };
  efficiency("efficiency from 1 to 2 cores, by the clock", one_core);
  efficiency("efficiency from 1 to 2 jobs, both on 2 cores", one.wall);
  fmt::print("  of the machine, by the clock (two programs that share nothing): {:.0f} %\n",
             100 * one_core / apart);
  fmt::print("  by processor time (what two jobs add to the work): {:.0f} %\n", 100 * grown);
  std::fflush(stdout);  // or children print it again
  const double overhead = 1e3 * (point - simulation_seconds());
  row("a point beside its simulation", overhead, "ms", overhead <= 3, "<= 3 ms");
  fmt::print("  of {:.2f} ms for a point\n", 1e3 * point);
  const Spent long_study = swept(many, fresh(), 2);
  // The program and two children, as if they shared nothing.
  const double memory = 3 * long_study.memory / 1024;
  row(fmt::format("{} points: memory of 3 processes, at most", kMany), memory, "GB", memory <= 1.5,
      "<= 1.5 GB");
  fmt::print("  in {:.1f} s, {:.1f} s of processor time\n", long_study.wall, long_study.processor);
  return 0;
}
