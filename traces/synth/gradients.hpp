// SPDX-License-Identifier: Apache-2.0
// How gradients of data-parallel ranks become one: DDP buckets (all-reduce as soon as a bucket is
// full, while backward goes on), ZeRO 1 and 2 (reduce-scatter per bucket, all-gather of parameters
// after the optimizer) and Horovod (fused all-reduce by a background thread once per cycle).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "traces/synth/framework.hpp"

namespace rehearse::synth {

// Buckets of tensors given in the order in which their gradients become ready, as PyTorch's
// compute_bucket_assignment_by_size: a bucket closes when it has reached its limit; the first has
// its own.
[[nodiscard]] std::vector<std::vector<uint32_t>> buckets(std::span<const Bytes> tensors,
                                                         Bytes first_limit, Bytes limit);

enum class Synchronise : uint8_t { kNo, kYes };

class Gradients {
 public:
  // `tensors`: bytes of each gradient in the order of registration (forward order).
  Gradients(Framework& framework, const pb::Synth& options, Group group, traces::DType dtype,
            std::vector<Bytes> tensors);
  // Before the backward pass of a micro-batch. DDP synchronises in the last one only (no_sync).
  void begin(Synchronise synchronise);
  // The gradient of a tensor was launched; tensors come in reverse order of registration.
  void ready(uint32_t tensor);
  // After that backward pass: the compute stream (Horovod: the host) waits for what is under way.
  void finish();
  // After the optimizer: ZeRO 1 and 2 gather the parameters their ranks have updated.
  void gather_parameters();
  [[nodiscard]] Bytes bytes() const { return total_; }

 private:
  void end_cycle(Nanos wait);
  void start_bucket(uint32_t bucket);
  [[nodiscard]] Bytes padded(Bytes bytes) const;

  Framework& framework_;
  Group group_;
  traces::DType dtype_;
  uint32_t zero_;
  bool fuses_;
  Bytes fusion_;
  Nanos cycle_;
  std::vector<Bytes> tensors_;
  Bytes total_ = 0;
  std::vector<uint32_t> bucket_of_;
  std::vector<Bytes> bucket_bytes_;
  std::vector<uint32_t> bucket_tensors_, missing_;
  bool active_ = false;
  std::vector<EventSlot> under_way_;
  std::vector<Bytes> waiting_;  // Horovod: ready since the last cycle
  Nanos next_cycle_ = 0;
};

}  // namespace rehearse::synth
