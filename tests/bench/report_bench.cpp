// SPDX-License-Identifier: Apache-2.0
// How long a report and a Perfetto trace of a large run take, from what the replay leaves behind to the file. Prints
// figures with their targets and asserts none.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/document.hpp"
#include "base/install.hpp"
#include "cli/report/documents.hpp"
#include "cli/report/report.hpp"
#include "platforms/model/catalogue.hpp"
#include "platforms/model/links.hpp"
#include "sim/efficiency.hpp"
#include "sim/export/export.hpp"
#include "sim/nccl/node_graphs.hpp"
#include "sim/outcome/outcome.hpp"
#include "sim/outcome/pictures.hpp"
#include "sim/replay/replay.hpp"
#include "tests/sim/iteration.hpp"
#include "tests/temporary_folder.hpp"

using namespace rehearse;

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "report_bench: %s\n", what.c_str());
  std::exit(1);
}

template <typename T>
T take(Result<T> result) {
  if (!result) die(result.error().message());
  return std::move(*result);
}

template <typename Work>
double seconds(const Work& work) {
  const auto begin = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void row(const std::string& what, double figure, double target, const char* unit) {
  fmt::print("{:<66}{:>10.3f} {:<3} target {:>8.3f}  ratio {:.2f}\n", what, figure, unit, target,
             figure / target);
  std::fflush(stdout);
}

// A cluster of H100 with one rank per GPU, and a job without recorded memory.
sim::Scenario scenario_of(uint32_t nodes) {
  sim::Scenario out;
  const platforms::PlatformCatalogue catalogue(take(shipped("platforms/catalogue")));
  pb::Platform platform = take(catalogue.platform("dgx-h100"));
  platform.set_scale(nodes);
  if (auto done = platforms::expand(platform, "bench"); !done) die(done.error().message());
  out.document.set_name("iteration");
  pb::Launch& launch = *out.document.mutable_launch();
  launch.set_nccl_version("2.28.9");
  auto trace = std::make_shared<traces::Trace>();
  for (int n = 0; n < platform.nodes_size(); ++n) {
    for (int g = 0; g < platform.nodes(n).gpus_size(); ++g) {
      pb::RankLaunch& entry = *launch.add_ranks();
      entry.set_rank(static_cast<uint32_t>(trace->ranks.size()));
      entry.set_node(static_cast<uint32_t>(n));
      entry.set_gpu(static_cast<uint32_t>(g));
      trace->ranks.emplace_back().rank = entry.rank();
    }
  }
  *out.document.mutable_platform() = std::move(platform);
  out.trace = std::move(trace);
  return out;
}

// Replays and hands what came out to `look`.
template <typename Look>
void replayed(const sim::Scenario& scenario, int rounds, const Look& look) {
  const traces::Program program =
      take(tests::iteration(static_cast<uint32_t>(scenario.trace->ranks.size()), rounds));
  const platforms::Links links = take(platforms::Links::build(scenario.document.platform()));
  sim::NodeGraphCache cache(scenario.document.platform());
  const sim::ModelContext context{scenario.document.platform(), links, scenario.document.launch(),
                                  &cache};
  std::vector<sim::CommunicatorModel> models;
  for (const auto& communicator : program.communicators) {
    models.push_back(take(sim::CommunicatorModel::create(context, communicator)));
  }
  sim::ReplayOptions options;
  options.traffic = [&](const traces::Call& call, uint32_t member) {
    return models[call.communicator].traffic(call, member);
  };
  const std::vector<BytesPerSec> capacities =
      sim::effective_capacities(scenario.document.platform(), links);
  options.capacity = capacities;
  SilentReporter silent;
  const auto fabric = sim::make_reference_fabric(capacities);
  const sim::Replayed result = take(sim::replay(program, options, *fabric, silent));
  const sim::Schedule schedule;
  look(sim::Evidence{program, scenario.trace->strings, result, models, links, options, schedule});
}

void report() {
  const sim::Scenario scenario = scenario_of(128);
  replayed(scenario, 200, [&](const sim::Evidence& evidence) {
    pb::Outcome outcome = sim::make_outcome(scenario, evidence);
    fmt::print("1,024 ranks, {} operations, {} collectives\n", evidence.program.operations(),
               evidence.replayed.meetings.size());
    const double pictures = seconds([&] {
      outcome.set_pictures(sim::packed(sim::make_pictures(scenario, evidence, outcome)));
    });
    const tests::TemporaryFolder folder;
    const auto document = folder.path / "outcome.json";
    const double written = seconds([&] {
      const std::string text = to_json(outcome).dump(2);
      if (auto done = write_file(document, text, Overwrite::kReplace); !done) die("write");
    });
    cli::Report report;
    const double read = seconds([&] { report = take(cli::read_report({document.string()})); });
    std::string page;
    const double made = seconds([&] {
      page = cli::report_html(report);
      if (auto done = write_file(folder.path / "r.html", page, Overwrite::kReplace); !done)
        die("write");
    });
    row("report: pictures, outcome and page", pictures + written + read + made, 5, "s");
    fmt::print("    pictures {:.3f} s, outcome written {:.3f} s and read {:.3f} s, page {:.3f} s\n",
               pictures, written, read, made);
    row("report: size of the outcome",
        static_cast<double>(std::filesystem::file_size(document)) * 1e-6, 16, "MB");
    row("report: size of the page", static_cast<double>(page.size()) / (1 << 20), 3, "MiB");
  });
}

void perfetto() {
  const sim::Scenario scenario = scenario_of(128);
  replayed(scenario, 446, [&](const sim::Evidence& evidence) {
    pb::Outcome outcome;
    outcome.set_end_ns(evidence.replayed.end_time);
    const double filled =
        seconds([&] { sim::fill_timeline(evidence, 0, *outcome.mutable_timeline()); });
    const tests::TemporaryFolder folder;
    const auto path = folder.path / "t.pftrace";
    const double written = seconds([&] {
      AtomicFile file = take(AtomicFile::create(path, Overwrite::kReplace));
      if (auto done = sim::write_perfetto(outcome.timeline(), outcome, {}, file); !done)
        die("write");
      if (auto done = file.commit(); !done) die("commit");
    });
    fmt::print("1,024 ranks, {} operations\n", evidence.program.operations());
    row("perfetto: timeline and file", filled + written, 10, "s");
    fmt::print("    timeline {:.3f} s, file of {:.0f} MB {:.3f} s\n", filled,
               static_cast<double>(std::filesystem::file_size(path)) * 1e-6, written);
  });
}

}  // namespace

int main() {
  report();
  perfetto();
}
