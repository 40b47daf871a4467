// SPDX-License-Identifier: Apache-2.0
#include "traces/synth/transformer.hpp"

namespace rehearse::synth {
namespace {

// Positions in dense_tensors().
enum Tensor : uint32_t {
  kNorm1Weight,
  kNorm1Bias,
  kQkvWeight,
  kQkvBias,
  kProjWeight,
  kProjBias,
  kNorm2Weight,
  kNorm2Bias,
  kFc1Weight,
  kFc1Bias,
  kFc2Weight,
  kFc2Bias,
};

// Elementwise kernel that touches `activations` times the hidden activation.
void pointwise(Framework& f, const char* name, const Shape& s, double activations) {
  f.kernel(name, f.costs().pointwise(activations * s.tokens() * s.hidden * s.element));
}

void attention(Framework& f, const char* name, const Shape& s, double factor) {
  const double flops = factor * 4 * s.tokens() * s.sequence * s.hidden / s.tp;
  f.kernel(name, f.costs().attention(flops, factor * 4 * s.tokens() * s.hidden * s.element / s.tp));
}

void norm_backward(Framework& f, const Shape& s) {
  pointwise(f, "layer_norm_bwd_input", s, 3);
  pointwise(f, "layer_norm_bwd_weight", s, 2);
}

}  // namespace

std::vector<Bytes> dense_tensors(const Shape& s) {
  const double h = s.hidden, t = s.tp, e = s.element;
  const auto bytes = [e](double elements) { return static_cast<Bytes>(elements * e); };
  std::vector<Bytes> tensors = {bytes(h),         bytes(h),         bytes(3 * h * h / t),
                                bytes(3 * h / t), bytes(h * h / t), bytes(h),
                                bytes(h),         bytes(h)};
  if (s.experts > 0) {
    tensors.push_back(bytes(h * s.experts));  // router
    return tensors;
  }
  for (double n : {4 * h * h / t, 4 * h / t, 4 * h * h / t, h}) tensors.push_back(bytes(n));
  return tensors;
}

std::vector<Bytes> expert_tensors(const Shape& s) {
  if (s.experts == 0) return {};
  const auto one =
      static_cast<Bytes>(4 * s.hidden * s.hidden / s.tp * s.experts / s.ep * s.element);
  return {one, one};
}

void gemm(Framework& f, const char* name, double m, double k, double n, double element) {
  f.kernel(name, f.costs().gemm(2 * m * k * n, element * (m * k + k * n + m * n)));
}

void tensor_all_reduce(Framework& f, const Shape& s) {
  f.run({Group::kTensor, traces::Collective::kAllReduce, s.hidden_bytes(), f.costs().dtype()});
}

void layer_forward(Framework& f, const Shape& s) {
  const double n = s.tokens(), h = s.hidden, t = s.tp, e = s.element;
  pointwise(f, "layer_norm_fwd", s, 2);
  gemm(f, "gemm_qkv_fwd", n, h, 3 * h / t, e);
  attention(f, "flash_attention_fwd", s, 1);
  gemm(f, "gemm_proj_fwd", n, h / t, h, e);
  tensor_all_reduce(f, s);
  pointwise(f, "bias_dropout_add_fwd", s, 3);
  pointwise(f, "layer_norm_fwd", s, 2);
  if (s.experts > 0) {
    experts_forward(f, s);
  } else {
    gemm(f, "gemm_fc1_fwd", n, h, 4 * h / t, e);
    pointwise(f, "bias_gelu_fwd", s, 8 / t);
    gemm(f, "gemm_fc2_fwd", n, 4 * h / t, h, e);
  }
  tensor_all_reduce(f, s);
  pointwise(f, "bias_dropout_add_fwd", s, 3);
}

void layer_backward(Framework& f, const Shape& s, const Ready& dense, const Ready& expert) {
  const double n = s.tokens(), h = s.hidden, t = s.tp, e = s.element;
  pointwise(f, "bias_dropout_add_bwd", s, 2);
  if (s.experts > 0) {
    experts_backward(f, s, dense, expert);
  } else {
    dense(kFc2Bias);
    gemm(f, "gemm_fc2_dgrad", n, h, 4 * h / t, e);
    gemm(f, "gemm_fc2_wgrad", 4 * h / t, n, h, e);
    dense(kFc2Weight);
    pointwise(f, "bias_gelu_bwd", s, 12 / t);
    dense(kFc1Bias);
    gemm(f, "gemm_fc1_dgrad", n, 4 * h / t, h, e);
    tensor_all_reduce(f, s);
    gemm(f, "gemm_fc1_wgrad", h, n, 4 * h / t, e);
    dense(kFc1Weight);
  }
  norm_backward(f, s);
  dense(kNorm2Bias);
  dense(kNorm2Weight);
  pointwise(f, "residual_add_bwd", s, 3);
  pointwise(f, "bias_dropout_add_bwd", s, 2);
  dense(kProjBias);
  gemm(f, "gemm_proj_dgrad", n, h, h / t, e);
  gemm(f, "gemm_proj_wgrad", h / t, n, h, e);
  dense(kProjWeight);
  pointwise(f, "flash_attention_bwd_dot_do_o", s, 2 / t);
  attention(f, "flash_attention_bwd", s, 2.5);
  dense(kQkvBias);
  gemm(f, "gemm_qkv_dgrad", n, 3 * h / t, h, e);
  tensor_all_reduce(f, s);
  gemm(f, "gemm_qkv_wgrad", h, n, 3 * h / t, e);
  dense(kQkvWeight);
  norm_backward(f, s);
  dense(kNorm1Bias);
  dense(kNorm1Weight);
}

}  // namespace rehearse::synth
