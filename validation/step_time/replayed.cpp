// SPDX-License-Identifier: Apache-2.0
#include "validation/step_time/replayed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "base/install.hpp"
#include "platforms/model/catalogue.hpp"
#include "sim/pool.hpp"
#include "sim/simulate.hpp"
#include "traces/synth/costs.hpp"
#include "traces/synth/synth.hpp"

namespace rehearse::validation {
namespace {

// What the generator's host needs for a layer forward and backward: some 38 launches of 6.5 us.
constexpr double kGeneratedHost = .25e-3;
// Launches that the ring of context ranks adds (layout.cpp).
constexpr double kContextHost = 1.2;
// Passes over the hidden state in the generator's layer (traces/synth/transformer.cpp): those that tensor ranks repeat
// and those that they share.
constexpr double kRepeatedPasses = 27, kSharedPasses = 22;

uint32_t whole(double value) { return static_cast<uint32_t>(std::lround(value)); }

// Replicas to generate: as few as fill whole nodes, and a divisor of all.
uint32_t generated_replicas(const TransformerJob& job) {
  const uint32_t all = whole(job.dp * job.cp), each = whole(job.tp * job.pp);
  for (uint32_t n = 1; n < all; ++n) {
    if (all % n == 0 && n * each % job.gpus_per_node == 0) return n;
  }
  return all;
}

pb::Synth options_of(const TransformerJob& job, const std::string& gpu, uint32_t micro_batches) {
  pb::Synth out;
  out.set_model("gpt");
  // Stages of equal size; what all layers do is spread over them.
  const double pieces = job.pp * (job.pp > 2 ? job.chunks : 1);
  out.set_layers(whole(std::ceil(job.layers / pieces) * pieces));
  out.set_hidden(whole(job.hidden));
  out.set_heads(std::max(whole(job.tp), whole(job.hidden / 128)));
  out.set_vocabulary(std::max(128U, whole(job.vocabulary)));
  out.set_sequence(std::max(1U, whole(job.sequence / job.cp)));
  out.set_micro_batch(whole(job.micro_batch));
  out.set_micro_batches(micro_batches);
  out.set_steps(1);
  out.set_dp(generated_replicas(job));
  out.set_tp(whole(job.tp));
  out.set_pp(whole(job.pp));
  // Two stages have no interleaved order that the generator knows.
  out.set_interleave(job.pp > 2 ? whole(job.chunks) : 1);
  out.set_zero(job.fsdp ? 3 : 0);
  out.set_gpu(gpu);
  out.set_dtype(job.fp8 ? "fp8" : "bf16");
  out.set_gpus_per_node(job.gpus_per_node);
  out.set_jitter(0);
  return out;
}

// Shares at which all GEMMs, attention and passes of the generated job take what its terms say.
synth::Efficiencies efficiencies_of(const TransformerJob& job, const StepRates& rates) {
  // Of one token: what the generator counts against what the job does.
  TransformerJob plain = job;
  plain.layers = options_of(job, "", 1).layers();
  plain.layer_parameters = 12 * job.hidden * job.hidden;
  plain.recompute = Recompute::kNone;
  const StepTerms generated = terms_of(plain), stated = terms_of(job);
  synth::Efficiencies out;
  out.gemm = rates.gemm * generated.gemm / stated.gemm;
  // The generator's attention has no mask and sees the tokens of one context rank.
  const double peak = job.fp8 && job.fp8_peak > 0 ? job.fp8_peak : job.peak;  // that it counts with
  const double span = 2 / job.cp * job.peak / peak;
  out.attention = rates.attention * span * generated.attention / stated.attention;
  const double passes = kRepeatedPasses + kSharedPasses / job.tp;
  out.pointwise = passes * job.tp / rates.passes * generated.pass / stated.pass;
  return out;
}

// Activations that the generator keeps and a job that computes them again does not: of every layer of the micro-batches in
// flight but the one at work, all but its input.
double recomputed_bytes(const TransformerJob& job, uint32_t micro_batches) {
  if (job.recompute != Recompute::kFull) return 0;
  const double layer = job.micro_batch * job.sequence / job.cp * job.hidden * (8 + 24 / job.tp);
  const double in_flight = std::min(static_cast<double>(micro_batches), job.pp);
  return layer * std::max(0.0, job.layers / job.pp * in_flight - 1);
}

// Of a rank's peak what its framework allocated.
double allocated(const pb::RankMemory& rank) {
  int64_t bytes = rank.peak();
  for (const pb::MemoryPart& part : rank.parts()) {
    const bool beside = part.name() == "NCCL buffers" || part.name() == "CUDA context" ||
                        part.name() == "contexts of other ranks";
    if (beside) bytes -= part.bytes();
  }
  return static_cast<double>(bytes);
}

// One run of a job with some of its micro-batches.
struct StepRun {
  size_t job = 0;
  uint32_t micro_batches = 1;
};

Result<ReplayedStep> run_here(const ReplayedJob& stated, uint32_t micro_batches) {
  const TransformerJob& job = stated.job;
  SilentReporter silent;
  RH_TRY(const auto folder, shipped("platforms/catalogue"));
  RH_TRY(const pb::Gpu gpu, platforms::PlatformCatalogue(folder).gpu(stated.gpu));
  const pb::Synth options = options_of(job, stated.gpu, micro_batches);
  RH_TRY(traces::Trace trace, synth::synthesize(options, gpu, efficiencies_of(job, stated.rates)));
  RH_TRY(sim::Scenario scenario,
         sim::scenario_of(std::make_shared<const traces::Trace>(std::move(trace)), "stated"));
  // Whether it fits is not the question here: the generator keeps every activation.
  std::vector<std::string> patches = {"set: {\"platform.nodes[*].gpus[*].memory\": 1000TiB}"};
  if (job.network > 0) {
    patches.push_back(fmt::format("set: {{\"platform.nodes[*].nics[*].bandwidth\": {:.0f}Gbps}}",
                                  job.network * 8 / 1e9));
  }
  const double host = stated.rates.host_s / kGeneratedHost * (job.cp > 1 ? kContextHost : 1);
  patches.push_back(fmt::format("slow-host: {{slowdown: {:.3f}}}", host));
  const uint32_t factor = whole(job.dp * job.cp) / options.dp();
  if (factor > 1) patches.push_back(fmt::format("grow-data-parallel: {}", factor));
  for (const std::string& text : patches) {
    RH_TRY(const pb::Patch patch, sim::parse_patch(text, "stated layout"));
    if (auto done = sim::apply(scenario, patch); !done) return tl::unexpected(done.error());
  }
  RH_TRY(const pb::Outcome outcome, sim::simulate_here(scenario, sim::Detail::kFigures, silent));
  ReplayedStep out;
  out.seconds = static_cast<double>(outcome.step_time_ns().mean()) * 1e-9;
  for (const pb::RankMemory& rank : outcome.memory().ranks()) {
    out.memory = std::max(out.memory, allocated(rank));
  }
  // Replicas that were not generated have shards of their own.
  out.memory = factor > 1 ? 0 : out.memory - recomputed_bytes(job, micro_batches);
  if (out.seconds <= 0) {
    return fail(Code::kBadInput, "the generated job has no whole step", "stated layout", "");
  }
  return out;
}

// Fewest micro-batches whose time says what one more costs: two steady ones, a multiple of the stages where chunks are
// interleaved.
std::pair<uint32_t, uint32_t> few_and_more(const TransformerJob& job) {
  const uint32_t all = whole(job.micro_batches), stages = whole(job.pp);
  const uint32_t few = std::min(all, stages), more = std::min(all, 2 * stages);
  return {few, more};
}

}  // namespace

Result<std::vector<Result<ReplayedStep>>> replayed_steps(const std::vector<ReplayedJob>& jobs,
                                                         Reporter& reporter) {
  std::vector<StepRun> runs;
  std::vector<std::pair<size_t, size_t>> of(jobs.size());  // runs with few and with more
  for (size_t j = 0; j < jobs.size(); ++j) {
    const auto [few, more] = few_and_more(jobs[j].job);
    of[j].first = runs.size();
    runs.push_back({j, few});
    if (more > few) runs.push_back({j, more});
    of[j].second = runs.size() - 1;
  }
  const auto piece = [&](size_t k) -> Result<std::string> {
    RH_TRY(const ReplayedStep step, run_here(jobs[runs[k].job], runs[k].micro_batches));
    return std::string(reinterpret_cast<const char*>(&step), sizeof step);
  };
  RH_TRY(const auto answers, sim::in_children(runs.size(), sim::cores(), piece, reporter));
  const auto step_of = [&](size_t run) -> Result<ReplayedStep> {
    if (!answers[run]) return tl::unexpected(answers[run].error());
    ReplayedStep step;
    if (answers[run]->size() != sizeof step) return fail(Code::kInternal, "no step came back");
    std::memcpy(&step, answers[run]->data(), sizeof step);
    return step;
  };
  std::vector<Result<ReplayedStep>> out;
  for (size_t j = 0; j < jobs.size(); ++j) {
    const Result<ReplayedStep> few = step_of(of[j].first), more = step_of(of[j].second);
    if (!few || !more) {
      out.push_back(few ? more : few);
      continue;
    }
    ReplayedStep step = *more;
    const uint32_t a = runs[of[j].first].micro_batches, b = runs[of[j].second].micro_batches;
    if (b > a) {
      const double each = (more->seconds - few->seconds) / (b - a);
      step.seconds += each * (jobs[j].job.micro_batches - b);
    }
    out.push_back(step);
  }
  return out;
}

std::string synth_command(const ReplayedJob& stated) {
  const TransformerJob& job = stated.job;
  const pb::Synth o = options_of(job, stated.gpu, whole(job.micro_batches));
  return fmt::format(
      "rehearse synth gpt --layers {} --hidden {} --sequence {} --micro-batch {} --micro-batches "
      "{} "
      "--dp {} --tp {} --pp {} --zero {} --gpu {}",
      o.layers(), o.hidden(), o.sequence(), o.micro_batch(), o.micro_batches(),
      whole(job.dp * job.cp), o.tp(), o.pp(), o.zero(), o.gpu());
}

}  // namespace rehearse::validation
