// SPDX-License-Identifier: Apache-2.0
#include "traces/synth/gradients.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "traces/synth/fusion.hpp"

namespace rehearse::synth {

using traces::Collective;

std::vector<std::vector<uint32_t>> buckets(std::span<const Bytes> tensors, Bytes first_limit,
                                           Bytes limit) {
  std::vector<std::vector<uint32_t>> result;
  std::vector<uint32_t> open;
  Bytes size = 0;
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    open.push_back(i);
    size += tensors[i];
    if (size < (result.empty() ? first_limit : limit)) continue;
    result.push_back(std::exchange(open, {}));
    size = 0;
  }
  if (!open.empty()) result.push_back(std::move(open));
  return result;
}

Gradients::Gradients(Framework& framework, const pb::Synth& options, Group group,
                     traces::DType dtype, std::vector<Bytes> tensors)
    : framework_(framework),
      group_(group),
      dtype_(dtype),
      zero_(options.zero()),
      fuses_(options.framework() == "horovod"),
      fusion_(options.fusion()),
      cycle_(options.cycle()),
      tensors_(std::move(tensors)),
      total_(std::accumulate(tensors_.begin(), tensors_.end(), Bytes{0})),
      bucket_of_(tensors_.size()) {
  const std::vector<Bytes> reversed(tensors_.rbegin(), tensors_.rend());
  for (const auto& bucket : buckets(reversed, options.first_bucket(), options.bucket())) {
    Bytes bytes = 0;
    for (uint32_t i : bucket) {
      bucket_of_[tensors_.size() - 1 - i] = static_cast<uint32_t>(bucket_bytes_.size());
      bytes += reversed[i];
    }
    bucket_bytes_.push_back(bytes);
    bucket_tensors_.push_back(static_cast<uint32_t>(bucket.size()));
  }
}

Bytes Gradients::padded(Bytes bytes) const {
  const Bytes unit = Bytes{framework_.size(group_)} * traces::size_of(dtype_);
  return (bytes + unit - 1) / unit * unit;
}

void Gradients::begin(Synchronise synchronise) {
  // ZeRO 2 keeps only its shard of the gradients and so reduces in every micro-batch.
  active_ = framework_.size(group_) > 1 && (synchronise == Synchronise::kYes || zero_ == 2);
  missing_ = bucket_tensors_;
  next_cycle_ = framework_.host_time() + cycle_;
}

void Gradients::start_bucket(uint32_t bucket) {
  const Bytes bytes = bucket_bytes_[bucket];
  under_way_.push_back(
      zero_ == 0 ? framework_.start({group_, Collective::kAllReduce, bytes, dtype_})
                 : framework_.start({group_, Collective::kReduceScatter, padded(bytes), dtype_}));
}

// Horovod's thread looks at what is ready, `wait` from now.
void Gradients::end_cycle(Nanos wait) {
  size_t tensor = 0;
  for (const size_t count : fusion_buffers(waiting_, fusion_)) {
    Bytes bytes = 0;
    for (const size_t end = tensor + count; tensor < end; ++tensor) bytes += waiting_[tensor];
    under_way_.push_back(
        framework_.start_fused({{group_, Collective::kAllReduce, bytes, dtype_}, count, wait}));
  }
  waiting_.clear();
}

void Gradients::ready(uint32_t tensor) {
  if (!active_) return;
  if (!fuses_) {
    const uint32_t bucket = bucket_of_[tensor];
    if (--missing_[bucket] == 0) start_bucket(bucket);
    return;
  }
  waiting_.push_back(tensors_[tensor]);
  if (framework_.host_time() < next_cycle_) return;
  end_cycle(0);
  next_cycle_ = framework_.host_time() + cycle_;
}

void Gradients::finish() {
  if (fuses_) end_cycle(std::max<Nanos>(0, next_cycle_ - framework_.host_time()));
  for (EventSlot event : under_way_) fuses_ ? framework_.await(event) : framework_.join(event);
  under_way_.clear();
  active_ = false;
}

void Gradients::gather_parameters() {
  if (framework_.size(group_) < 2 || (zero_ != 1 && zero_ != 2)) return;
  std::vector<EventSlot> gathers;
  for (Bytes bytes : bucket_bytes_)
    gathers.push_back(framework_.start({group_, Collective::kAllGather, padded(bytes), dtype_}));
  for (EventSlot event : gathers) framework_.join(event);
}

}  // namespace rehearse::synth
