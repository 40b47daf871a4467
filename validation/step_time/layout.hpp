// SPDX-License-Identifier: Apache-2.0
// Step time of a transformer from its shape and parallel layout, without a trace: what it predicts
// is the time of one optimizer step in the steady state. With b sequences of s tokens per
// micro-batch, hidden size h, L layers, m micro-batches, p stages of v chunks, t tensor ranks, c
// context ranks (Narayanan et al., SC 2021; Korthikanti et al., 2022):
//
//   unit = a layer's work for one micro-batch = GEMM / e_g + attention / e_a + h bytes k / bandwidth
//   step = (m + (p - 1) / v) L / p max(unit, host) + word logits + m exposed communication
//
// GEMMs are 2 flops per parameter and token forward, twice that backward, once more when everything
// is recomputed; attention is causal, 2 s h flops per token forward, 2.5 times that backward. e_g,
// e_a and k (passes over the hidden state per layer) are fitted per kind of GPU (fit.hpp). FSDP's
// gathers count where they take longer than the work they hide behind.
// Blind spots: tile quantisation, clocks, imbalance, the optimizer, dropped overlap of tensor
// parallelism. Validated by `rehearse validate --only steps`.
#pragma once

#include <cstdint>
#include <string>

namespace rehearse::validation {

enum class Recompute : uint8_t { kNone, kSelective, kFull };

struct TransformerJob {
  double layers = 0, hidden = 0, vocabulary = 0;
  double layer_parameters = 0;  // of one layer
  double sequence = 0;
  double micro_batch = 1;    // sequences
  double micro_batches = 1;  // per replica and step
  double tp = 1, pp = 1, cp = 1, dp = 1, chunks = 1;
  bool fsdp = false;
  Recompute recompute = Recompute::kNone;
  bool fp8 = false;
  // Of one GPU and what joins them.
  double peak = 0;              // flops per second, bf16
  double fp8_peak = 0;          // 0: none
  double memory_bandwidth = 0;  // bytes per second
  double network = 0;           // bytes per second and GPU between nodes
  uint32_t gpus_per_node = 8;
};

// What is fitted.
struct StepRates {
  double gemm = 0.60;  // share of the peak; the priors of traces/synth/costs.hpp
  double attention = 0.40;
  double passes = 100;   // over the hidden state, per layer, forward and backward
  double host_s = 2e-3;  // to issue a layer forward and backward
};

// Seconds of one step with every rate at 1: the terms that the rates divide or multiply.
struct StepTerms {
  double gemm = 0, attention = 0, pass = 0;  // of all units on the longest way
  double units = 0;                          // layers that the host issues on the longest way
  double fixed = 0;                          // communication that nothing hides
};
[[nodiscard]] StepTerms terms_of(const TransformerJob& job);
[[nodiscard]] double step_seconds(const StepTerms& terms, const StepRates& rates);

}  // namespace rehearse::validation
