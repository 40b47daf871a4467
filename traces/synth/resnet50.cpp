// SPDX-License-Identifier: Apache-2.0
// ResNet-50 as in torchvision (stride in the 3x3 convolution), images of 224 x 224, data parallel
// only. Weights and gradients are fp32, activations have the dtype asked for (autocast). BatchNorm
// statistics are not broadcast (broadcast_buffers=False). Convolution FLOPs: 2 * kernel area * in *
// out * output positions per image, and the same again for each of the two gradients.
#include <array>
#include <utility>

#include "traces/synth/gradients.hpp"
#include "traces/synth/models.hpp"

namespace rehearse::synth {
namespace {

struct Convolution {
  int in = 0, out = 0, kernel = 1, input_size = 0, output_size = 0;
  bool activation = true;   // a ReLU of its own follows the normalisation
  bool downsample = false;  // the shortcut of a block
  bool joins = false;       // shortcut added here, then ReLU
};

// In the order of registration.
std::vector<Convolution> convolutions() {
  std::vector<Convolution> list = {{3, 64, 7, 224, 112}};
  constexpr std::array<int, 4> kBlocks = {3, 4, 6, 3};
  int in = 64, size = 56;
  for (int group = 0; group < 4; ++group) {
    const int width = 64 << group;
    for (int block = 0; block < kBlocks[static_cast<size_t>(group)]; ++block) {
      const int to = block == 0 && group > 0 ? size / 2 : size;
      list.push_back({in, width, 1, size, size});
      list.push_back({width, width, 3, size, to});
      list.push_back({width, 4 * width, 1, to, to, false, false, true});
      if (block == 0) list.push_back({in, 4 * width, 1, size, to, false, true, false});
      in = 4 * width;
      size = to;
    }
  }
  return list;
}

constexpr int kClasses = 1000, kFeatures = 2048;

class Resnet50 {
 public:
  explicit Resnet50(const Workshop& w);
  Script script();

 private:
  void forward();
  void backward(Synchronise synchronise);
  void convolve(const char* name, const Convolution& c);
  [[nodiscard]] double output_bytes(const Convolution& c) const {
    return batch_ * c.out * c.output_size * c.output_size * element_;
  }
  void pointwise(const char* name, double bytes) { f_.kernel(name, f_.costs().stream(bytes)); }

  const pb::Synth& options_;
  Framework f_;
  double batch_, element_;
  std::vector<Convolution> list_;
  Gradients gradients_;
  uint32_t activations_ = 0;
};

std::vector<Bytes> gradient_bytes() {
  std::vector<Bytes> bytes = resnet50_parameters();
  for (Bytes& b : bytes) b *= 4;
  return bytes;
}

Resnet50::Resnet50(const Workshop& w)
    : options_(w.options),
      f_(w.options, w.layout, w.costs, 0, w.strings),
      batch_(w.options.micro_batch()),
      element_(w.costs.element()),
      list_(convolutions()),
      gradients_(f_, w.options, Group::kWorld, traces::DType::kFp32, gradient_bytes()) {
  for (const char* what : {"parameters", "gradients", "optimizer states"})
    f_.allocate_once(what, gradients_.bytes());
}

void Resnet50::convolve(const char* name, const Convolution& c) {
  const double area = double(c.kernel) * c.kernel;
  const double flops = 2 * area * c.in * c.out * batch_ * c.output_size * c.output_size;
  const double input = batch_ * c.in * c.input_size * c.input_size * element_;
  f_.kernel(name, f_.costs().convolution(flops,
                                         input + output_bytes(c) + area * c.in * c.out * element_));
}

void Resnet50::forward() {
  const auto image = static_cast<Bytes>(batch_ * 3 * 224 * 224 * 4);
  f_.host("DataLoader.__next__", kTimes.data_loading);
  f_.copy("Memcpy HtoD (Pinned -> Device)", traces::CopyDirection::kHostToDevice, image);
  double kept = double(image);
  for (const Convolution& c : list_) kept += 2 * output_bytes(c);
  activations_ = f_.allocate("activations", static_cast<Bytes>(kept));
  for (size_t i = 0; i < list_.size(); ++i) {
    const Convolution& c = list_[i];
    convolve("conv_fprop", c);
    pointwise("batch_norm_fwd", 3 * output_bytes(c));
    if (c.activation) pointwise("relu_fwd", 2 * output_bytes(c));
    // The shortcut is computed after the third convolution, so the block ends with it when there is
    // one.
    const bool block_ends =
        c.downsample || (c.joins && (i + 1 == list_.size() || !list_[i + 1].downsample));
    if (block_ends) {
      pointwise("add", 3 * output_bytes(c));
      pointwise("relu_fwd", 2 * output_bytes(c));
    }
    if (i == 0) pointwise("max_pool_fwd", 1.25 * output_bytes(c));
  }
  pointwise("avg_pool_fwd", output_bytes(list_.back()));
  f_.kernel("gemm_fc_fwd",
            f_.costs().gemm(2 * batch_ * kFeatures * kClasses, element_ * kFeatures * kClasses));
  pointwise("log_softmax_fwd", 8 * batch_ * kClasses);
  pointwise("nll_loss_fwd", 8 * batch_);
}

void Resnet50::backward(Synchronise synchronise) {
  f_.begin_backward();
  gradients_.begin(synchronise);
  auto tensor = static_cast<uint32_t>(3 * list_.size() + 1);  // fc.bias
  pointwise("nll_loss_bwd", 8 * batch_ * kClasses);
  pointwise("log_softmax_bwd", 12 * batch_ * kClasses);
  pointwise("reduce_bias_grad", 4 * batch_ * kClasses);
  gradients_.ready(tensor--);
  const double fc = 2 * batch_ * kFeatures * kClasses;
  f_.kernel("gemm_fc_dgrad", f_.costs().gemm(fc, element_ * kFeatures * kClasses));
  f_.kernel("gemm_fc_wgrad", f_.costs().gemm(fc, element_ * kFeatures * kClasses));
  gradients_.ready(tensor--);
  pointwise("avg_pool_bwd", output_bytes(list_.back()));
  for (size_t i = list_.size(); i-- > 0;) {
    const Convolution& c = list_[i];
    if (i == 0) pointwise("max_pool_bwd", 2 * output_bytes(c));
    if (c.activation || c.joins) pointwise("relu_bwd", 3 * output_bytes(c));
    pointwise("batch_norm_bwd", 5 * output_bytes(c));
    gradients_.ready(tensor--);
    gradients_.ready(tensor--);
    if (i > 0) convolve("conv_dgrad", c);
    convolve("conv_wgrad", c);
    gradients_.ready(tensor--);
  }
  f_.free("activations", activations_);
  f_.end_backward();
}

Script Resnet50::script() {
  for (uint32_t m = 1; m <= options_.micro_batches(); ++m) {
    forward();
    backward(m == options_.micro_batches() ? Synchronise::kYes : Synchronise::kNo);
  }
  gradients_.finish();
  f_.begin("Optimizer.step#SGD.step");
  // SGD with momentum: weight, gradient and momentum read, weight and momentum written.
  for (const char* name : {"foreach_momentum", "foreach_add"})
    pointwise(name, 2.5 * double(gradients_.bytes()));
  f_.end();
  f_.finish_step();
  return f_.take();
}

}  // namespace

std::vector<Bytes> resnet50_parameters() {
  std::vector<Bytes> elements;
  for (const Convolution& c : convolutions()) {
    elements.push_back(Bytes{c.in} * c.out * c.kernel * c.kernel);
    elements.push_back(c.out);  // batch norm weight and bias
    elements.push_back(c.out);
  }
  elements.push_back(Bytes{kFeatures} * kClasses);
  elements.push_back(kClasses);
  return elements;
}

Script resnet50_script(const Workshop& workshop) { return Resnet50(workshop).script(); }

}  // namespace rehearse::synth
