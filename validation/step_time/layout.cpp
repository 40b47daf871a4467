// SPDX-License-Identifier: Apache-2.0
#include "validation/step_time/layout.hpp"

#include <algorithm>

namespace rehearse::validation {
namespace {

// Launches of the host in units of a layer, forward and backward: four collectives of tensor ranks beside some
// 26 launches, a ring of sends around attention, and what a stage does to exchange one chunk with its
// neighbours. Round figures, chosen with Megatron-LM's published times in view.
constexpr double kTensorLaunches = .15;
constexpr double kContextLaunches = .20;
constexpr double kExchange = .75;

double host_units(const TransformerJob& job, double rounds) {
  double layer = job.recompute == Recompute::kFull ? 4.0 / 3 : 1;
  layer *= 1 + (job.tp > 1 ? kTensorLaunches : 0) + (job.cp > 1 ? kContextLaunches : 0);
  const double exchanges = job.pp > 1 ? job.micro_batches * job.chunks + job.pp - 1 : 0;
  return rounds * job.layers / job.pp * layer + kExchange * exchanges;
}

}  // namespace

StepTerms terms_of(const TransformerJob& job) {
  // Tokens of a micro-batch that one GPU has; tensor ranks share each of them.
  const double tokens = job.micro_batch * job.sequence / job.cp;
  const double forwards = job.recompute == Recompute::kFull ? 4 : 3;  // in units of a forward
  const double rounds = job.micro_batches + (job.pp - 1) / job.chunks;
  const double layers = job.layers / job.pp;
  const double gemm_peak = job.fp8 && job.fp8_peak > 0 ? job.fp8_peak : job.peak;
  StepTerms out;
  out.units = host_units(job, rounds);
  out.gemm = rounds * layers * forwards * 2 * job.layer_parameters * tokens / job.tp / gemm_peak;
  // Word logits once per micro-batch, on the last stage, never in fp8.
  out.gemm += job.micro_batches * 6 * job.vocabulary * job.hidden * tokens / job.tp / gemm_peak;
  const double attention_forward = 2 * job.sequence * job.hidden * tokens / job.tp;
  out.attention = rounds * layers * attention_forward *
                  (job.recompute == Recompute::kFull ? 4.5 : 3.5) / job.peak;
  out.pass =
      rounds * layers * tokens * job.hidden * 2 * (forwards / 3) / job.tp / job.memory_bandwidth;
  if (job.fsdp && job.dp * job.cp > job.gpus_per_node && job.network > 0) {
    // Parameters are gathered for forward and backward and gradients scattered, every micro-batch.
    const double bytes = 2 * 3 * job.layers * job.layer_parameters / (job.tp * job.pp);
    const double gathers = job.micro_batches * bytes / job.network;
    const double work = out.gemm / .6 + out.attention / .4;
    out.fixed = std::max(0.0, gathers - work);
  }
  return out;
}

double step_seconds(const StepTerms& terms, const StepRates& rates) {
  const double gpu =
      terms.gemm / rates.gemm + terms.attention / rates.attention + terms.pass * rates.passes;
  return std::max(gpu, terms.units * rates.host_s) + terms.fixed;
}

}  // namespace rehearse::validation
