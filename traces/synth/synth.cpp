// SPDX-License-Identifier: Apache-2.0
#include "traces/synth/synth.hpp"

#include <fmt/format.h>

#include <utility>

#include "traces/synth/models.hpp"
#include "traces/synth/recorder.hpp"
#include "traces/synth/timeline.hpp"

namespace rehearse::synth {

struct Generator::Impl {
  Impl(const pb::Synth& o, const pb::Gpu& g, const Costs& c)
      : options(o), gpu(g), costs(c), layout(o) {}

  pb::Synth options;
  pb::Gpu gpu;
  Costs costs;
  Layout layout;
  traces::Strings strings;
  CommonNames names;
  std::vector<Script> scripts;
  std::vector<uint32_t> script_of;  // by rank
  std::unique_ptr<Timeline> timeline;
};

Generator::Generator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Generator::Generator(Generator&&) noexcept = default;
Generator& Generator::operator=(Generator&&) noexcept = default;
Generator::~Generator() = default;

Result<Generator> Generator::create(const pb::Synth& options, const pb::Gpu& gpu) {
  return create(options, gpu, Efficiencies{});
}

Result<Generator> Generator::create(const pb::Synth& options, const pb::Gpu& gpu,
                                    const Efficiencies& efficiencies) {
  RH_TRY(const Costs costs, Costs::create(gpu, options.dtype(), efficiencies));
  auto impl = std::make_unique<Impl>(options, gpu, costs);
  Impl& i = *impl;
  const Workshop workshop{i.options, i.layout, i.costs, i.strings};
  if (options.model() == "resnet50") {
    i.scripts.push_back(resnet50_script(workshop));
  } else if (options.model() == "dlrm") {
    i.scripts.push_back(dlrm_script(workshop));
  } else {
    for (uint32_t stage = 0; stage < options.pp(); ++stage)
      i.scripts.push_back(gpt_script(workshop, stage));
  }
  for (RankId r = 0; r < i.layout.ranks(); ++r)
    i.script_of.push_back(i.scripts.size() == 1 ? 0 : i.layout.at(r).pp);
  i.names.launch = i.strings.intern("cudaLaunchKernel");
  i.names.launch_nccl = i.strings.intern("cudaLaunchKernelExC");
  i.names.copy = i.strings.intern("cudaMemcpyAsync");
  i.names.memset = i.strings.intern("cudaMemsetAsync");
  for (uint32_t s = 0; s < options.steps(); ++s)
    i.names.steps.push_back(i.strings.intern(fmt::format("ProfilerStep#{}", s)));
  RH_TRY(auto timeline, Timeline::create(i.layout, i.options, i.scripts, i.script_of));
  i.timeline = std::make_unique<Timeline>(std::move(timeline));
  return Generator(std::move(impl));
}

uint32_t Generator::ranks() const { return impl_->layout.ranks(); }
const std::vector<traces::Communicator>& Generator::communicators() const {
  return impl_->layout.communicators();
}
const traces::Strings& Generator::strings() const { return impl_->strings; }

pb::TraceHeader Generator::header() const {
  const pb::Synth& o = impl_->options;
  pb::TraceHeader header;
  header.set_job(fmt::format("{} dp {} tp {} pp {}", o.model(), o.dp(), o.tp(), o.pp()));
  header.set_producer("rehearse synth " + o.model());
  header.set_synthetic(true);
  header.set_framework(o.framework());
  header.set_world_size(ranks());
  *header.mutable_synth() = o;
  return header;
}

namespace {

std::map<std::string, std::string> environment(const pb::Synth& o, const Layout& layout,
                                               RankId rank) {
  const std::string world = std::to_string(layout.ranks());
  const std::string local = std::to_string(layout.device(rank));
  if (o.framework() == "horovod")
    return {{"HOROVOD_RANK", std::to_string(rank)},
            {"HOROVOD_SIZE", world},
            {"HOROVOD_LOCAL_RANK", local},
            {"HOROVOD_FUSION_THRESHOLD", std::to_string(o.fusion())},
            {"HOROVOD_CYCLE_TIME", fmt::format("{}", double(o.cycle()) / 1e6)}};
  if (o.framework() == "tensorflow") return {};
  return {{"RANK", std::to_string(rank)}, {"WORLD_SIZE", world},
          {"LOCAL_RANK", local},          {"MASTER_ADDR", "node0"},
          {"MASTER_PORT", "29500"},       {"LOCAL_WORLD_SIZE", std::to_string(o.gpus_per_node())}};
}

}  // namespace

traces::RankTrace Generator::rank(traces::RankId rank) const {
  const Impl& i = *impl_;
  const Script& script = i.scripts[i.script_of[rank]];
  traces::RankTrace trace;
  trace.rank = rank;
  trace.host = fmt::format("node{}", i.layout.node(rank));
  trace.gpu = i.layout.device(rank);
  trace.gpu_model = i.gpu.model();
  trace.gpu_memory = i.gpu.memory();
  trace.env = environment(i.options, i.layout, rank);
  Recorder recorder(script, i.layout, i.names, trace);
  Player<const Timeline, Recorder> player(script, i.options, rank);
  player.play(*i.timeline, recorder);
  trace.ops.sort();
  return trace;
}

Result<traces::Trace> synthesize(const pb::Synth& options, const pb::Gpu& gpu) {
  return synthesize(options, gpu, Efficiencies{});
}

Result<traces::Trace> synthesize(const pb::Synth& options, const pb::Gpu& gpu,
                                 const Efficiencies& efficiencies) {
  RH_TRY(const pb::Synth full, complete(options));
  RH_TRY(const Generator generator, Generator::create(full, gpu, efficiencies));
  traces::Trace trace;
  trace.header = generator.header();
  trace.communicators = generator.communicators();
  for (RankId r = 0; r < generator.ranks(); ++r) trace.ranks.push_back(generator.rank(r));
  trace.strings = generator.strings();
  return trace;
}

}  // namespace rehearse::synth
