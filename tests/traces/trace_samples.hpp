// SPDX-License-Identifier: Apache-2.0
// Traces for tests and benchmarks: random ones that use every field, and a training run with
// jitter.
#pragma once

#include <cstdint>
#include <filesystem>

#include "traces/model/trace.hpp"

namespace rehearse::traces::samples {

// Every kind, detail and extreme value; the details are in the order of the operations.
[[nodiscard]] Trace random_trace(uint64_t seed, uint32_t ranks, size_t operations_per_rank);

struct TrainingRun {
  uint32_t ranks = 8;
  uint32_t steps = 4;
  uint32_t layers = 32;
  uint64_t seed = 1;
};
// Communicators, strings and one rank of a data- and tensor-parallel run: per layer host operators,
// launches, kernels and an all-reduce on a communication stream; durations vary by some per cent.
[[nodiscard]] Trace training_frame(const TrainingRun& run);
[[nodiscard]] RankTrace training_rank(const TrainingRun& run, RankId rank);

// Same content, field by field.
[[nodiscard]] bool same(const RankTrace& a, const RankTrace& b);
[[nodiscard]] bool same(const Trace& a, const Trace& b);

// A folder that is removed with its content.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::filesystem::path operator/(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace rehearse::traces::samples
