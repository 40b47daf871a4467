// SPDX-License-Identifier: Apache-2.0
// How fast the engine replays, and in how much memory. Each row runs in a child of its own and gives
// the figure, the target and their ratio; the last line counts what is not met. Times are processor time, of
// the one thread there is and of the kernel for it: what the clock on the wall would show on an idle machine.
//   engine_bench [ROW...]   rows whose name contains one of the words; default: all
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>

#include "base/install.hpp"
#include "platforms/model/catalogue.hpp"
#include "platforms/model/links.hpp"
#include "sim/efficiency.hpp"
#include "sim/nccl/messages.hpp"
#include "sim/nccl/node_graphs.hpp"
#include "sim/nccl/traffic.hpp"
#include "sim/replay/replay.hpp"
#include "sim/worker.hpp"
#include "tests/sim/iteration.hpp"
#include "traces/program/program.hpp"
#include "traces/program/share.hpp"
#include "traces/synth/synth.hpp"

using namespace rehearse;
using namespace rehearse::sim;
using traces::Collective;

namespace {

struct Clock {
  using duration = std::chrono::nanoseconds;
  using time_point = std::chrono::time_point<Clock, duration>;
  static time_point now() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time_point(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
  }
};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Of this process, in MB: what it holds now, and the most it held.
double status_mb(const char* field) {
  std::ifstream in("/proc/self/status");
  std::string line;
  while (std::getline(in, line)) {
    if (line.starts_with(field)) return std::stod(line.substr(std::string(field).size())) / 1024;
  }
  return 0;
}

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "engine_bench: %s\n", what.c_str());
  std::exit(1);
}

template <typename T>
T take(Result<T> result) {
  if (!result) die(result.error().message());
  return std::move(*result);
}

platforms::PlatformCatalogue catalogue() {
  return platforms::PlatformCatalogue(take(shipped("platforms/catalogue")));
}

// A cluster with one rank per GPU.
struct Cluster {
  Cluster(const std::string& id, uint32_t nodes) : platform(take(catalogue().platform(id))) {
    platform.set_scale(nodes);
    if (auto done = platforms::expand(platform, "bench"); !done) die(done.error().message());
    launch.set_nccl_version("2.28.9");
    uint32_t rank = 0;
    for (int n = 0; n < platform.nodes_size(); ++n) {
      for (int g = 0; g < platform.nodes(n).gpus_size(); ++g) {
        pb::RankLaunch& entry = *launch.add_ranks();
        entry.set_rank(rank++);
        entry.set_node(static_cast<uint32_t>(n));
        entry.set_gpu(static_cast<uint32_t>(g));
      }
    }
    links.emplace(take(platforms::Links::build(platform)));
    cache = std::make_unique<NodeGraphCache>(platform);
    capacities = effective_capacities(platform, *links);
  }
  [[nodiscard]] ModelContext context() const { return {platform, *links, launch, cache.get()}; }

  pb::Platform platform;
  pb::Launch launch;
  std::optional<platforms::Links> links;
  std::unique_ptr<NodeGraphCache> cache;
  std::vector<BytesPerSec> capacities;
};

struct Timed {
  double models = 0, replay = 0;  // seconds
  double program = 0;             // MB of the program
  double memory = 0;              // MB beyond what was there before
  double simulated_ms = 0;
  bool completed = false;
  uint64_t operations = 0, meetings = 0, flows = 0, shared = 0, events = 0, visits = 0, lanes = 0;
};

enum class Engine { kSimGrid, kBare };
enum class Mode { kFluid, kStep };

Timed replay_on(const Cluster& cluster, const traces::Program& program, Engine engine, Mode mode) {
  Timed out;
  const double before = status_mb("VmRSS:");
  auto begin = Clock::now();
  const ModelContext context = cluster.context();
  std::vector<CommunicatorModel> models;
  for (const auto& communicator : program.communicators) {
    models.push_back(take(CommunicatorModel::create(context, communicator)));
  }
  out.models = seconds_since(begin);
  ReplayOptions options;
  options.traffic = [&](const traces::Call& call, uint32_t member) {
    auto traffic = models[call.communicator].traffic(call, member);
    if (traffic) add_hops(context, models[call.communicator], call, member, *traffic);
    return traffic;
  };
  if (mode == Mode::kStep) {
    options.messages = [&](const traces::Call& call, uint32_t member) {
      return message_plan(context, models[call.communicator], call, member);
    };
  }
  options.capacity = cluster.capacities;
  const pb::Gpu& gpu = cluster.platform.nodes(0).gpus(0);
  options.gpus.assign(program.ranks.size(), {gpu.sms(), gpu.memory_bandwidth()});
  SilentReporter silent;
  begin = Clock::now();
  const auto fabric = engine == Engine::kSimGrid ? make_simgrid_fabric(cluster.capacities)
                                                 : make_reference_fabric(cluster.capacities);
  const Replayed replayed = take(replay(program, options, *fabric, silent));
  out.replay = seconds_since(begin);
  out.memory = status_mb("VmHWM:") - before;
  out.simulated_ms = static_cast<double>(replayed.end_time) * 1e-6;
  out.completed = replayed.completed;
  out.meetings = replayed.meetings.size();
  out.operations = program.operations();
  out.flows = replayed.counters.flows;
  out.shared = replayed.counters.shared;
  out.events = replayed.events;
  out.visits = replayed.counters.visits;
  out.lanes = replayed.lane_visits;
  return out;
}

// In a child, because SimGrid has one engine per process and so that memory starts afresh.
Timed in_own_process(const std::function<Timed()>& work) {
  std::fflush(stdout);  // or the child prints it again
  SilentReporter silent;
  const std::string bytes = take(in_child(
      [&](Reporter&) -> Result<std::string> {
        const Timed timed = work();
        return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {}", timed.models, timed.replay,
                           timed.program, timed.memory, timed.simulated_ms, timed.completed ? 1 : 0,
                           timed.operations, timed.meetings, timed.flows, timed.shared,
                           timed.events, timed.visits, timed.lanes);
      },
      silent));
  Timed out;
  std::istringstream in(bytes);
  in >> out.models >> out.replay >> out.program >> out.memory >> out.simulated_ms >>
      out.completed >> out.operations >> out.meetings >> out.flows >> out.shared >> out.events >>
      out.visits >> out.lanes;
  return out;
}

std::vector<std::string> not_met;

void row(const std::string& what, double figure, double target, const std::string& unit) {
  fmt::print("{:<66}{:>10.3f} {:<3} target {:>8.3f}  ratio {:.2f}\n", what, figure, unit, target,
             figure / target);
  if (figure > target) not_met.push_back(what);
  std::fflush(stdout);
}

// The program is made in the child, so that its memory counts; the trace it comes from is gone by then.
Timed replay_iteration(uint32_t ranks, int rounds, Engine engine,
                       const char* platform = "dgx-h100") {
  return in_own_process([&] {
    const double before = status_mb("VmRSS:");
    const traces::Program program = take(tests::iteration(ranks, rounds));
    const double program_mb = status_mb("VmRSS:") - before;
    const Cluster cluster(platform, ranks / 8);
    Timed out = replay_on(cluster, program, engine, Mode::kFluid);
    out.program = program_mb;
    out.memory = status_mb("VmHWM:") - before;
    return out;
  });
}

void big_iteration() {
  const Timed simgrid = replay_iteration(1024, 200, Engine::kSimGrid);
  const Timed bare = replay_iteration(1024, 200, Engine::kBare);
  fmt::print("1,024 ranks, {} operations, {} collectives, {:.3f} ms simulated (bare {:.3f} ms)\n",
             simgrid.operations, simgrid.meetings, simgrid.simulated_ms, bare.simulated_ms);
  row("  iteration, models and replay", simgrid.models + simgrid.replay, 0.6, "s");
  fmt::print(
      "    of which models of 136 communicators {:.3f} s, replay {:.3f} s (bare {:.3f} s); {} of "
      "{} "
      "flows had to share\n",
      simgrid.models, simgrid.replay, bare.replay, simgrid.shared, simgrid.flows);
  row("  iteration, memory: program, platform, models and replay", simgrid.memory, 300, "MB");
  fmt::print("    of which the program {:.0f} MB\n", simgrid.program);
  row("  iteration, replay against that on a bare max-min solver", simgrid.replay / bare.replay, 4,
      "x");
  // There no two groups share a link, so neither solver had work. Here pairs of them share cards.
  const Timed shared = replay_iteration(1024, 200, Engine::kSimGrid, "dgx1-v100");
  const Timed bare_shared = replay_iteration(1024, 200, Engine::kBare, "dgx1-v100");
  row("  the same with 4 cards for 8 GPUs, models and replay", shared.models + shared.replay, 0.6,
      "s");
  row("  the same, replay against that on a bare max-min solver",
      shared.replay / bare_shared.replay, 4, "x");
}

// Counts, not times, so the same on any machine.
void growth() {
  const auto work = [](const Timed& t) {
    return static_cast<double>(t.lanes + t.events + t.visits);
  };
  const Timed base = replay_iteration(256, 50, Engine::kBare);
  const Timed longer = replay_iteration(256, 200, Engine::kBare);
  const Timed wider = replay_iteration(1024, 50, Engine::kBare);
  row("growth: visits of lanes, events and solver, 4x the operations", work(longer) / work(base),
      4.4, "x");
  row("growth: the same, 4x the ranks (n log n)", work(wider) / work(base),
      4.0 * std::log2(1024) / std::log2(256), "x");
}

// One 64 MiB all-reduce over all GPUs, forced to rings.
void one_ring(uint32_t nodes, double target_ms) {
  Cluster cluster("dgx-h100", nodes);
  (*cluster.launch.mutable_env())["NCCL_ALGO"] = "Ring";
  for (auto& rank : *cluster.launch.mutable_ranks()) (*rank.mutable_env())["NCCL_ALGO"] = "Ring";
  traces::Communicator all{"all", "all", std::vector<uint32_t>(nodes * 8), "nccl"};
  std::iota(all.members.begin(), all.members.end(), 0u);
  const CommunicatorModel model = take(CommunicatorModel::create(cluster.context(), all));
  traces::Call call;
  call.bytes_in = call.bytes_out = 64 << 20;
  call.dtype = traces::DType::kFp32;
  auto begin = Clock::now();
  const CallTraffic traffic = take(model.traffic(call, 0));
  const double plan = seconds_since(begin) * 1e3;
  struct Starter final : FabricListener {
    explicit Starter(Fabric& f) : fabric(f) {}
    void on_timer(uint64_t) override {
      began = Clock::now();
      for (const auto& [route, bytes] : flows) fabric.start(route, bytes, 0);
    }
    void on_flow_end(uint64_t) override { took = seconds_since(began); }
    Fabric& fabric;
    std::vector<std::pair<RouteId, double>> flows;
    Clock::time_point began;
    double took = 0;
  };
  for (Engine engine : {Engine::kSimGrid, Engine::kBare}) {
    const Timed timed = in_own_process([&] {
      Timed out;
      const auto start = Clock::now();
      const auto fabric = engine == Engine::kSimGrid ? make_simgrid_fabric(cluster.capacities)
                                                     : make_reference_fabric(cluster.capacities);
      Starter starter(*fabric);
      for (const FlowLoad& flow : traffic.flows) {
        starter.flows.emplace_back(fabric->add_route(flow.links, {flow.cap, 0}), flow.bytes);
      }
      fabric->timer(traffic.latency, 0);
      if (auto done = fabric->run(starter); !done) die(done.error().message());
      out.replay = starter.took;
      out.models = seconds_since(start) - starter.took;
      out.simulated_ms = static_cast<double>(fabric->now()) * 1e-6;
      out.flows = fabric->counters().route_entries;
      return out;
    });
    const char* name = engine == Engine::kSimGrid ? "SimGrid" : "bare solver";
    row(fmt::format("64 MiB {} over {} GPUs, {} ({:.3f} ms simulated)", traffic.algorithm,
                    nodes * 8, name, timed.simulated_ms),
        timed.replay * 1e3, target_ms, "ms");
    fmt::print(
        "  before it: which links {:.3f} ms, folding and platform {:.3f} ms, {} entries "
        "after folding\n",
        plan, timed.models * 1e3, timed.flows);
  }
}

traces::Program synthetic(pb::Synth synth) {
  synth.set_seed(1);
  const pb::Synth options = take(synth::complete(synth));
  const pb::Gpu gpu = take(catalogue().gpu(options.gpu()));
  const auto generator = take(synth::Generator::create(options, gpu));
  traces::Program program;
  program.communicators = generator.communicators();
  program.steps = options.steps();
  traces::SharedColumns columns;
  for (uint32_t r = 0; r < generator.ranks(); ++r) {
    program.ranks.push_back(
        take(traces::build_rank_program(generator.rank(r), program.steps, program.findings)));
    columns.share(program.ranks.back());
  }
  return program;
}

traces::Program resnet_program(uint32_t ranks) {
  pb::Synth synth;
  synth.set_model("resnet50");
  synth.set_dp(ranks);
  synth.set_steps(1);
  synth.set_gpus_per_node(8);
  synth.set_gpu("a100-sxm4-80gb");
  return synthetic(synth);
}

void resnet(uint32_t ranks, double target_ms) {
  const traces::Program program = resnet_program(ranks);
  const Cluster cluster("dgx-a100", ranks / 8);
  const Timed fluid =
      in_own_process([&] { return replay_on(cluster, program, Engine::kSimGrid, Mode::kFluid); });
  row(fmt::format("ResNet-50 data parallel, {} GPUs, {} operations, with SM contention", ranks,
                  program.operations()),
      (fluid.replay + fluid.models) * 1e3, target_ms, "ms");
  fmt::print("    of which NCCL's search of rings and trees {:.1f} ms, replay {:.1f} ms\n",
             fluid.models * 1e3, fluid.replay * 1e3);
}

// Like for like: every message of every step. What ASTRA-sim took stands in for a target.
void resnet_step(uint32_t ranks, double astra_ms, Engine engine) {
  const traces::Program program = resnet_program(ranks);
  const Cluster cluster("dgx-a100", ranks / 8);
  const Timed step =
      in_own_process([&] { return replay_on(cluster, program, engine, Mode::kStep); });
  row(fmt::format("--fidelity step, {} GPUs, {} messages, {} (ASTRA-sim)", ranks, step.flows,
                  engine == Engine::kSimGrid ? "SimGrid" : "bare solver"),
      (step.replay + step.models) * 1e3, astra_ms, "ms");
}

void large_gpt() {
  std::ifstream in("/proc/meminfo");
  std::string line;
  double available = 0;
  while (std::getline(in, line)) {
    if (line.starts_with("MemAvailable:")) available = std::stod(line.substr(13)) / 1024 / 1024;
  }
  if (available < 10) {
    fmt::print("16,384 ranks: skipped, {:.1f} GB of memory are free and 10 are needed\n",
               available);
    return;
  }
  pb::Synth synth;
  synth.set_model("gpt");
  synth.set_layers(32);
  synth.set_micro_batches(13);
  synth.set_tp(8);
  synth.set_pp(8);
  synth.set_dp(256);
  synth.set_steps(1);
  synth.set_gpus_per_node(8);
  synth.set_gpu("h100-sxm5");
  const Timed timed = in_own_process([&] {
    auto begin = Clock::now();
    const traces::Program program = synthetic(synth);
    fmt::print("16,384 ranks: {} operations made in {:.1f} s\n", program.operations(),
               seconds_since(begin));
    std::fflush(stdout);
    const Cluster cluster("dgx-h100", 2048);
    Timed out = replay_on(cluster, program, Engine::kSimGrid, Mode::kFluid);
    out.memory = status_mb("VmHWM:");
    return out;
  });
  row(fmt::format("  16,384 ranks, replay ({:.1f} ms simulated)", timed.simulated_ms),
      timed.replay + timed.models, 15, "s");
  fmt::print("    of which models {:.1f} s; {} of {} flows had to share\n", timed.models,
             timed.shared, timed.flows);
  row("  16,384 ranks, memory with the program", timed.memory / 1024, 8, "GB");
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::pair<std::string, std::function<void()>>> rows = {
      {"iteration", big_iteration},
      {"ring-1024", [] { one_ring(128, 0.5); }},
      {"ring-4096", [] { one_ring(512, 2); }},
      {"resnet-64", [] { resnet(64, 20); }},
      {"resnet-256", [] { resnet(256, 80); }},
      {"step-64", [] { resnet_step(64, 2700, Engine::kSimGrid); }},
      {"step-64", [] { resnet_step(64, 2700, Engine::kBare); }},
      {"step-256", [] { resnet_step(256, 48000, Engine::kBare); }},
      {"growth", growth},
      {"gpt-16384", large_gpt}};
  for (const auto& [name, work] : rows) {
    bool wanted = argc < 2;
    for (int i = 1; i < argc; ++i) wanted |= name.find(argv[i]) != std::string::npos;
    if (wanted) work();
  }
  fmt::print("{} not met{}\n", not_met.empty() ? "no target" : std::to_string(not_met.size()),
             not_met.empty() ? " (all are)" : ":");
  for (const std::string& what : not_met) fmt::print("  {}\n", what);
  return 0;
}
