// SPDX-License-Identifier: Apache-2.0
// DLRM (Naumov et al. 2019): embedding tables spread over the ranks (as many on each), MLPs data
// parallel. Every table is looked up once per sample. Per step: all-to-all of the indices to the
// owners of the tables, all-to-all of the rows back, the reverse for their gradients, and DDP
// buckets for the MLPs. MLP sizes are those of the MLPerf benchmark.
#include <array>
#include <span>

#include "traces/synth/gradients.hpp"
#include "traces/synth/models.hpp"
#include "traces/synth/transformer.hpp"

namespace rehearse::synth {

using traces::Collective;

namespace {

constexpr int kDenseFeatures = 13;

class Dlrm {
 public:
  explicit Dlrm(const Workshop& w);
  Script script();

 private:
  void mlp_forward(const char* name, std::span<const double> widths);
  // `first`: index of the first tensor of this MLP.
  void mlp_backward(const char* name, std::span<const double> widths, uint32_t first);
  void forward();
  void backward(Synchronise synchronise);
  [[nodiscard]] EventSlot exchange(Bytes bytes, traces::DType dtype);
  void lookup(const char* name, double passes);

  const pb::Synth& options_;
  Framework f_;
  double batch_, ranks_, tables_, width_, element_;
  std::vector<double> bottom_, top_;
  Gradients gradients_;
  uint32_t activations_ = 0;
};

std::vector<double> bottom_widths(const pb::Synth& o) {
  return {kDenseFeatures, 512, 256, double(o.embedding())};
}

std::vector<double> top_widths(const pb::Synth& o) {
  // Pairwise dot products of all rows and the bottom output, and that output itself.
  const double vectors = o.tables() + 1.0;
  return {vectors * (vectors - 1) / 2 + o.embedding(), 1024, 1024, 512, 256, 1};
}

std::vector<Bytes> gradient_bytes(const pb::Synth& o) {
  std::vector<Bytes> bytes;
  for (const auto& widths : {bottom_widths(o), top_widths(o)})
    for (size_t i = 0; i + 1 < widths.size(); ++i) {
      bytes.push_back(static_cast<Bytes>(4 * widths[i] * widths[i + 1]));
      bytes.push_back(static_cast<Bytes>(4 * widths[i + 1]));
    }
  return bytes;
}

Dlrm::Dlrm(const Workshop& w)
    : options_(w.options),
      f_(w.options, w.layout, w.costs, 0, w.strings),
      batch_(w.options.micro_batch()),
      ranks_(w.layout.ranks()),
      tables_(w.options.tables()),
      width_(w.options.embedding()),
      element_(w.costs.element()),
      bottom_(bottom_widths(w.options)),
      top_(top_widths(w.options)),
      gradients_(f_, w.options, Group::kWorld, traces::DType::kFp32, gradient_bytes(w.options)) {
  f_.allocate_once("embedding tables",
                   static_cast<Bytes>(tables_ / ranks_ * width_ * 4 * w.options.vocabulary()));
  for (const char* what : {"parameters", "gradients"}) f_.allocate_once(what, gradients_.bytes());
}

void Dlrm::mlp_forward(const char* name, std::span<const double> widths) {
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    gemm(f_, name, batch_, widths[i], widths[i + 1], element_);
    f_.kernel("relu_fwd", f_.costs().stream(2 * batch_ * widths[i + 1] * element_));
  }
}

void Dlrm::mlp_backward(const char* name, std::span<const double> widths, uint32_t first) {
  for (size_t i = widths.size() - 1; i-- > 0;) {
    f_.kernel("relu_bwd", f_.costs().stream(3 * batch_ * widths[i + 1] * element_));
    f_.kernel("reduce_bias_grad", f_.costs().stream(batch_ * widths[i + 1] * element_));
    gradients_.ready(first + static_cast<uint32_t>(2 * i) + 1);
    gemm(f_, name, widths[i], batch_, widths[i + 1], element_);
    gradients_.ready(first + static_cast<uint32_t>(2 * i));
    gemm(f_, name, batch_, widths[i + 1], widths[i], element_);
  }
}

EventSlot Dlrm::exchange(Bytes bytes, traces::DType dtype) {
  return f_.start({Group::kWorld, Collective::kAllToAll, bytes, dtype});
}

void Dlrm::lookup(const char* name, double passes) {
  f_.kernel(name, f_.costs().gather(passes * tables_ * batch_ * width_ * 4));
}

void Dlrm::forward() {
  const auto dense = static_cast<Bytes>(batch_ * kDenseFeatures * 4);
  const auto indices = static_cast<Bytes>(tables_ * batch_ * 8);
  const auto rows = static_cast<Bytes>(tables_ * batch_ * width_ * 4);
  const bool spread = f_.size(Group::kWorld) > 1;
  f_.host("DataLoader.__next__", kTimes.data_loading);
  f_.copy("Memcpy HtoD (Pinned -> Device)", traces::CopyDirection::kHostToDevice, dense);
  f_.copy("Memcpy HtoD (Pinned -> Device)", traces::CopyDirection::kHostToDevice, indices);
  activations_ = f_.allocate("activations", 4 * rows + dense);
  if (spread) f_.join(exchange(indices, traces::DType::kInt64));
  lookup("embedding_bag_fwd", 2);
  EventSlot arriving = 0;
  if (spread) arriving = exchange(rows, traces::DType::kFp32);
  mlp_forward("gemm_bottom_fwd", bottom_);
  if (spread) f_.join(arriving);
  const double vectors = tables_ + 1;
  f_.kernel("interaction_fwd", f_.costs().gemm(2 * batch_ * vectors * vectors * width_,
                                               batch_ * vectors * width_ * element_));
  mlp_forward("gemm_top_fwd", top_);
  f_.kernel("bce_loss_fwd", f_.costs().stream(8 * batch_));
}

void Dlrm::backward(Synchronise synchronise) {
  const auto rows = static_cast<Bytes>(tables_ * batch_ * width_ * 4);
  const bool spread = f_.size(Group::kWorld) > 1;
  const double vectors = tables_ + 1;
  f_.begin_backward();
  gradients_.begin(synchronise);
  f_.kernel("bce_loss_bwd", f_.costs().stream(12 * batch_));
  mlp_backward("gemm_top_bwd", top_, static_cast<uint32_t>(2 * (bottom_.size() - 1)));
  f_.kernel("interaction_bwd", f_.costs().gemm(4 * batch_ * vectors * vectors * width_,
                                               2 * batch_ * vectors * width_ * element_));
  EventSlot leaving = 0;
  if (spread) leaving = exchange(rows, traces::DType::kFp32);
  mlp_backward("gemm_bottom_bwd", bottom_, 0);
  if (spread) f_.join(leaving);
  lookup("embedding_bag_bwd_update", 3);
  f_.free("activations", activations_);
  f_.end_backward();
}

Script Dlrm::script() {
  for (uint32_t m = 1; m <= options_.micro_batches(); ++m) {
    forward();
    backward(m == options_.micro_batches() ? Synchronise::kYes : Synchronise::kNo);
  }
  gradients_.finish();
  f_.begin("Optimizer.step#SGD.step");
  f_.kernel("foreach_add", f_.costs().stream(3.0 * double(gradients_.bytes())));
  f_.end();
  f_.finish_step();
  return f_.take();
}

}  // namespace

Script dlrm_script(const Workshop& workshop) { return Dlrm(workshop).script(); }

}  // namespace rehearse::synth
