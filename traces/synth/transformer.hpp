// SPDX-License-Identifier: Apache-2.0
// One transformer layer under tensor parallelism: its kernels, all-reduces, gradients and
// activations. b sequences of s tokens, hidden size h, tensor degree t, V words. Forward FLOPs
// (Narayanan et al. SC 2021; Korthikanti et al. 2022, "Reducing Activation Recomputation in Large
// Transformer Models"):
//
//   query, key, value  6 b s h^2 / t        attention (fused)    4 b s^2 h / t
//   projection         2 b s h^2 / t        two-layer MLP of 4h  16 b s h^2 / t
//   word logits        2 b s h V / t
//
// Backward: each GEMM twice (data, weight gradient); fused attention 2.5 times, as it recomputes
// the scores. Activations kept for backward: s b h (10 + 24 / t) bytes at 16 bits (same paper,
// without score matrices).
#pragma once

#include <functional>
#include <vector>

#include "traces/synth/framework.hpp"

namespace rehearse::synth {

struct Shape {
  double batch = 0, sequence = 0, hidden = 0, tp = 1;
  double element = 2;  // bytes
  // Mixture of experts; experts 0: a dense MLP.
  double experts = 0, ep = 1, top_k = 1;

  [[nodiscard]] double tokens() const { return batch * sequence; }
  // Bytes of one activation of the hidden size.
  [[nodiscard]] Bytes hidden_bytes() const {
    return static_cast<Bytes>(tokens() * hidden * element);
  }
  [[nodiscard]] Bytes activation_bytes() const {
    return static_cast<Bytes>(tokens() * hidden * (10 + 24 / tp) * element / 2);
  }
};

// Gradient bytes of each tensor of a layer in the order of registration; experts have their own
// list since they are reduced over another group.
[[nodiscard]] std::vector<Bytes> dense_tensors(const Shape& shape);
[[nodiscard]] std::vector<Bytes> expert_tensors(const Shape& shape);

// Called with the index of a tensor in the lists above when its gradient has been launched.
using Ready = std::function<void(uint32_t)>;

void layer_forward(Framework& framework, const Shape& shape);
void layer_backward(Framework& framework, const Shape& shape, const Ready& dense,
                    const Ready& expert);

// The MLP of a mixture of experts (experts.cpp): route, all-to-all, experts, all-to-all back.
void experts_forward(Framework& framework, const Shape& shape);
void experts_backward(Framework& framework, const Shape& shape, const Ready& dense,
                      const Ready& expert);

// A GEMM of m x k by k x n, and the all-reduce of one activation over the tensor group.
void gemm(Framework& framework, const char* name, double m, double k, double n, double element);
void tensor_all_reduce(Framework& framework, const Shape& shape);

}  // namespace rehearse::synth
