// SPDX-License-Identifier: Apache-2.0
// Mixture of experts with balanced routing: every rank sends tokens * top_k rows and gets as many
// back.
#include "traces/synth/transformer.hpp"

namespace rehearse::synth {
namespace {

constexpr uint32_t kRouter = 8;  // in dense_tensors() of a layer with experts
enum ExpertTensor : uint32_t { kFc1, kFc2 };

void exchange(Framework& f, const Shape& s) {
  const auto bytes = static_cast<Bytes>(s.tokens() * s.top_k * s.hidden * s.element);
  f.run({Group::kExpert, traces::Collective::kAllToAll, bytes, f.costs().dtype()});
}

void rows(Framework& f, const char* name, const Shape& s, double passes) {
  f.kernel(name, f.costs().gather(passes * s.tokens() * s.top_k * s.hidden * s.element));
}

}  // namespace

void experts_forward(Framework& f, const Shape& s) {
  const double n = s.tokens(), h = s.hidden, t = s.tp, e = s.element, routed = n * s.top_k;
  gemm(f, "gemm_router_fwd", n, h, s.experts, e);
  f.kernel("top_k_softmax_fwd", f.costs().stream(8 * n * s.experts));
  rows(f, "permute_tokens_fwd", s, 2);
  exchange(f, s);
  gemm(f, "grouped_gemm_fc1_fwd", routed, h, 4 * h / t, e);
  f.kernel("gelu_fwd", f.costs().stream(8 * routed * h / t * e));
  gemm(f, "grouped_gemm_fc2_fwd", routed, 4 * h / t, h, e);
  exchange(f, s);
  rows(f, "unpermute_tokens_fwd", s, 2);
}

void experts_backward(Framework& f, const Shape& s, const Ready& dense, const Ready& expert) {
  const double n = s.tokens(), h = s.hidden, t = s.tp, e = s.element, routed = n * s.top_k;
  rows(f, "unpermute_tokens_bwd", s, 2);
  exchange(f, s);
  gemm(f, "grouped_gemm_fc2_dgrad", routed, h, 4 * h / t, e);
  gemm(f, "grouped_gemm_fc2_wgrad", 4 * h / t, routed, h, e);
  expert(kFc2);
  f.kernel("gelu_bwd", f.costs().stream(12 * routed * h / t * e));
  gemm(f, "grouped_gemm_fc1_dgrad", routed, 4 * h / t, h, e);
  gemm(f, "grouped_gemm_fc1_wgrad", h, routed, 4 * h / t, e);
  expert(kFc1);
  exchange(f, s);
  rows(f, "permute_tokens_bwd", s, 2);
  f.kernel("top_k_softmax_bwd", f.costs().stream(8 * n * s.experts));
  gemm(f, "gemm_router_dgrad", n, s.experts, h, e);
  gemm(f, "gemm_router_wgrad", h, n, s.experts, e);
  dense(kRouter);
  tensor_all_reduce(f, s);
}

}  // namespace rehearse::synth
