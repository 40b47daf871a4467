// SPDX-License-Identifier: Apache-2.0
// GPT and its mixture-of-experts form: one pipeline stage with its chunks. The word embedding is
// tied: with pipeline stages the last one holds a copy whose gradient is summed over the embedding
// group; with fully sharded parameters the output layer has weights of its own.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "traces/synth/gradients.hpp"
#include "traces/synth/models.hpp"
#include "traces/synth/pipeline.hpp"
#include "traces/synth/shards.hpp"
#include "traces/synth/transformer.hpp"

namespace rehearse::synth {

using traces::Collective;

void adam_step(Framework& f, double parameters) {
  const double bytes = parameters * (24 + 2.0 * f.costs().element());
  const int kernels = std::max(1, static_cast<int>(std::ceil(parameters / 20e6)));
  for (int i = 0; i < kernels; ++i)
    f.kernel("multi_tensor_adam", f.costs().stream(bytes / kernels));
}

namespace {

class GptStage {
 public:
  GptStage(const Workshop& w, uint32_t stage);
  Script script();

 private:
  // A piece of the model on this stage: units are [embedding] layers [output].
  struct Chunk {
    bool first = false, last = false;                // of the whole model
    std::vector<std::vector<Bytes>> dense, experts;  // per unit
    std::vector<uint32_t> dense_base, expert_base;   // index of a unit's first tensor
    std::unique_ptr<Gradients> gradients, expert_gradients;
    std::unique_ptr<Shards> shards;
    // Addresses of activations by (micro-batch, unit).
    std::vector<std::vector<uint32_t>> activations;
  };

  void build(Chunk& chunk);
  void allocate();
  void forward(const Work& work);
  void backward(const Work& work);
  void embed();
  [[nodiscard]] Bytes loss_workspace() const;
  void loss_forward();
  void loss_backward(const Ready& ready);
  void optimizer();
  [[nodiscard]] Bytes activation_bytes(const Chunk& c, uint32_t unit) const;
  [[nodiscard]] double parameters() const;  // elements on this rank

  const pb::Synth& options_;
  Framework f_;
  Shape shape_;
  uint32_t stage_;
  double vocabulary_;  // words on this rank
  bool sharded_, own_output_;
  std::vector<Chunk> chunks_;
};

GptStage::GptStage(const Workshop& w, uint32_t stage)
    : options_(w.options),
      f_(w.options, w.layout, w.costs, w.layout.rank({0, 0, stage}), w.strings),
      stage_(stage),
      sharded_(w.options.zero() == 3),
      own_output_(w.options.pp() > 1 || w.options.zero() == 3),
      chunks_(w.options.interleave()) {
  const auto& o = options_;
  shape_ = {.batch = double(o.micro_batch()),
            .sequence = double(o.sequence()),
            .hidden = double(o.hidden()),
            .tp = double(o.tp()),
            .element = double(w.costs.element())};
  if (o.model() == "moe") {
    shape_.experts = o.experts();
    shape_.ep = o.ep();
    shape_.top_k = o.top_k();
  }
  // Megatron-LM pads the vocabulary so that each tensor rank has a multiple of 128 words.
  vocabulary_ = std::ceil(double(o.vocabulary()) / (128.0 * o.tp())) * 128.0;
  for (uint32_t c = 0; c < chunks_.size(); ++c) {
    chunks_[c].first = stage == 0 && c == 0;
    chunks_[c].last = stage == o.pp() - 1 && c == o.interleave() - 1;
    build(chunks_[c]);
  }
  allocate();
}

void GptStage::build(Chunk& chunk) {
  const auto bytes = [&](double n) { return static_cast<Bytes>(n * shape_.element); };
  const double words = vocabulary_ * shape_.hidden;
  if (chunk.first) {
    chunk.dense.push_back({bytes(words), bytes(shape_.sequence * shape_.hidden)});
    chunk.experts.emplace_back();
  }
  for (uint32_t l = 0; l < options_.layers() / (options_.pp() * options_.interleave()); ++l) {
    chunk.dense.push_back(dense_tensors(shape_));
    chunk.experts.push_back(expert_tensors(shape_));
  }
  if (chunk.last) {
    chunk.dense.push_back({bytes(shape_.hidden), bytes(shape_.hidden)});
    if (own_output_) chunk.dense.back().push_back(bytes(words));
    chunk.experts.emplace_back();
  }
  std::vector<Bytes> dense, experts, units;
  for (size_t u = 0; u < chunk.dense.size(); ++u) {
    chunk.dense_base.push_back(static_cast<uint32_t>(dense.size()));
    chunk.expert_base.push_back(static_cast<uint32_t>(experts.size()));
    dense.insert(dense.end(), chunk.dense[u].begin(), chunk.dense[u].end());
    experts.insert(experts.end(), chunk.experts[u].begin(), chunk.experts[u].end());
    units.push_back(std::accumulate(chunk.dense[u].begin(), chunk.dense[u].end(), Bytes{0}));
  }
  const auto dtype = f_.costs().dtype();
  chunk.gradients =
      std::make_unique<Gradients>(f_, options_, Group::kData, dtype, std::move(dense));
  chunk.expert_gradients =
      std::make_unique<Gradients>(f_, options_, Group::kExpertData, dtype, std::move(experts));
  chunk.shards = std::make_unique<Shards>(f_, std::move(units));
  chunk.activations.assign(options_.micro_batches(), std::vector<uint32_t>(chunk.dense.size()));
}

double GptStage::parameters() const {
  double n = 0;
  for (const Chunk& c : chunks_)
    n += double(c.gradients->bytes() + c.expert_gradients->bytes()) / shape_.element;
  return n;
}

void GptStage::allocate() {
  const double n = parameters(), dp = options_.dp(), zero = options_.zero();
  const auto once = [&](const char* name, double bytes) {
    f_.allocate_once(name, static_cast<Bytes>(bytes));
  };
  once("parameters", n * shape_.element / (zero == 3 ? dp : 1));
  once("gradients", n * shape_.element / (zero >= 2 ? dp : 1));
  // Adam: two moments, and fp32 weights unless they are fp32 already.
  once("optimizer states", n * (shape_.element < 4 ? 12 : 8) / (zero >= 1 ? dp : 1));
}

Bytes GptStage::activation_bytes(const Chunk& c, uint32_t unit) const {
  if (c.last && unit + 1 == c.dense.size())  // logits in fp32 and the normalised input
    return static_cast<Bytes>(shape_.tokens() * vocabulary_ * 4) + shape_.hidden_bytes();
  if (c.first && unit == 0) return shape_.hidden_bytes();
  return shape_.activation_bytes();
}

void GptStage::embed() {
  const Bytes tokens = static_cast<Bytes>(shape_.tokens()) * 8;
  f_.host("DataLoader.__next__", kTimes.data_loading);
  f_.copy("Memcpy HtoD (Pinned -> Device)", traces::CopyDirection::kHostToDevice, tokens);
  f_.kernel("embedding_fwd", f_.costs().gather(2.0 * double(shape_.hidden_bytes())));
  tensor_all_reduce(f_, shape_);
  f_.kernel("dropout_fwd", f_.costs().stream(2.0 * double(shape_.hidden_bytes())));
}

// Held only while the loss is at work. PyTorch's cross_entropy gets logits cast to fp32 and its backward makes a gradient
// of them and casts it back; Megatron-LM's works in place and casts the gradient only.
Bytes GptStage::loss_workspace() const {
  const double per_logit = sharded_ ? shape_.element + 4 : shape_.element;
  return static_cast<Bytes>(shape_.tokens() * vocabulary_ * per_logit);
}

void GptStage::loss_forward() {
  const double logits = shape_.tokens() * vocabulary_;
  const uint32_t workspace = f_.allocate("activations", loss_workspace());
  const auto reduce = [&] {
    const auto bytes = static_cast<Bytes>(shape_.tokens()) * 4;
    f_.run({Group::kTensor, Collective::kAllReduce, bytes, traces::DType::kFp32});
  };
  f_.kernel("layer_norm_fwd", f_.costs().stream(2.0 * double(shape_.hidden_bytes())));
  gemm(f_, "gemm_logits_fwd", shape_.tokens(), shape_.hidden, vocabulary_, shape_.element);
  f_.kernel("cross_entropy_max", f_.costs().stream(logits * shape_.element));
  reduce();
  f_.kernel("cross_entropy_target", f_.costs().stream(logits * (shape_.element + 4)));
  reduce();
  f_.kernel("cross_entropy_sum", f_.costs().stream(logits * 8));
  reduce();
  f_.free("activations", workspace);
}

void GptStage::loss_backward(const Ready& ready) {
  const double logits = shape_.tokens() * vocabulary_;
  const uint32_t workspace = f_.allocate("activations", loss_workspace());
  f_.kernel("cross_entropy_bwd", f_.costs().stream(logits * (4 + shape_.element)));
  gemm(f_, "gemm_logits_dgrad", shape_.tokens(), vocabulary_, shape_.hidden, shape_.element);
  tensor_all_reduce(f_, shape_);
  gemm(f_, "gemm_logits_wgrad", shape_.hidden, shape_.tokens(), vocabulary_, shape_.element);
  f_.free("activations", workspace);
  if (own_output_) ready(2);
  f_.kernel("layer_norm_bwd_input", f_.costs().stream(3.0 * double(shape_.hidden_bytes())));
  f_.kernel("layer_norm_bwd_weight", f_.costs().stream(2.0 * double(shape_.hidden_bytes())));
  ready(1);
  ready(0);
}

void GptStage::forward(const Work& work) {
  Chunk& c = chunks_[work.chunk];
  const auto last = static_cast<uint32_t>(c.dense.size() - 1);
  if (!c.first) f_.receive(Toward::kPrevious, shape_.hidden_bytes());
  for (uint32_t u = 0; u <= last; ++u) {
    if (sharded_) c.shards->enter_forward(u, last);
    c.activations[work.micro_batch][u] = f_.allocate("activations", activation_bytes(c, u));
    if (c.first && u == 0) {
      embed();
    } else if (c.last && u == last) {
      loss_forward();
    } else {
      layer_forward(f_, shape_);
    }
    if (sharded_) c.shards->leave_forward(u);
  }
  if (!c.last) f_.send(Toward::kNext, shape_.hidden_bytes());
}

void GptStage::backward(const Work& work) {
  Chunk& c = chunks_[work.chunk];
  const auto last = static_cast<uint32_t>(c.dense.size() - 1);
  f_.begin_backward();
  if (!c.last) f_.receive(Toward::kNext, shape_.hidden_bytes());
  const auto synchronise =
      work.micro_batch + 1 == options_.micro_batches() ? Synchronise::kYes : Synchronise::kNo;
  if (!sharded_) {
    c.gradients->begin(synchronise);
    c.expert_gradients->begin(synchronise);
  }
  for (uint32_t u = last + 1; u-- > 0;) {
    const Ready dense = [&](uint32_t t) {
      if (!sharded_) c.gradients->ready(c.dense_base[u] + t);
    };
    const Ready expert = [&](uint32_t t) { c.expert_gradients->ready(c.expert_base[u] + t); };
    if (sharded_) c.shards->enter_backward(u, 0);
    if (c.first && u == 0) {
      f_.kernel("embedding_bwd", f_.costs().gather(3.0 * double(shape_.hidden_bytes())));
      dense(1);
      dense(0);
    } else if (c.last && u == last) {
      loss_backward(dense);
    } else {
      layer_backward(f_, shape_, dense, expert);
    }
    f_.free("activations", c.activations[work.micro_batch][u]);
    if (sharded_) c.shards->leave_backward(u);
  }
  if (!c.first) f_.send(Toward::kPrevious, shape_.hidden_bytes());
  // Sharded gradients leave no room for a second micro-batch in flight.
  if (options_.zero() == 2) c.gradients->finish();
  if (sharded_) c.shards->finish();
  f_.end_backward();
}

void GptStage::optimizer() {
  const double shard = options_.zero() >= 1 ? options_.dp() : 1;
  for (Chunk& c : chunks_) {
    c.gradients->finish();
    c.expert_gradients->finish();
  }
  const bool edge = stage_ == 0 || stage_ + 1 == options_.pp();
  if (options_.pp() > 1 && !sharded_ && edge) {
    const auto bytes = static_cast<Bytes>(vocabulary_ * shape_.hidden * shape_.element);
    f_.run({Group::kEmbedding, Collective::kAllReduce, bytes, f_.costs().dtype()});
  }
  const double n = parameters() / shard;
  f_.kernel("multi_tensor_l2norm", f_.costs().stream(n * shape_.element));
  f_.run({Group::kModel, Collective::kAllReduce, 4, traces::DType::kFp32});
  // With sharded states a rank sees the norm of its shard only.
  if (options_.zero() >= 1) f_.run({Group::kData, Collective::kAllReduce, 4, traces::DType::kFp32});
  f_.kernel("multi_tensor_scale", f_.costs().stream(2 * n * shape_.element));
  adam_step(f_, n);
  for (Chunk& c : chunks_) {
    c.gradients->gather_parameters();
    c.expert_gradients->gather_parameters();
  }
}

Script GptStage::script() {
  const Pipeline pipeline{options_.pp(), options_.micro_batches(), options_.interleave()};
  for (const Work& work : schedule(pipeline, stage_))
    work.pass == Pass::kForward ? forward(work) : backward(work);
  f_.begin("Optimizer.step#Adam.step");
  optimizer();
  f_.end();
  f_.finish_step();
  return f_.take();
}

}  // namespace

Script gpt_script(const Workshop& workshop, uint32_t stage) {
  return GptStage(workshop, stage).script();
}

}  // namespace rehearse::synth
