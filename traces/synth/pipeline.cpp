// SPDX-License-Identifier: Apache-2.0
#include "traces/synth/pipeline.hpp"

#include <algorithm>

namespace rehearse::synth {
namespace {

// The k-th pass of one direction: micro-batches go in rounds of `stages`, chunk after chunk.
Work nth(const Pipeline& p, Pass pass, uint32_t k) {
  if (p.chunks == 1) return {pass, k, 0};
  const uint32_t round = p.stages * p.chunks;
  const uint32_t chunk = k % round / p.stages;
  return {pass, k / round * p.stages + k % p.stages,
          pass == Pass::kForward ? chunk : p.chunks - 1 - chunk};
}

}  // namespace

std::vector<Work> schedule(const Pipeline& p, uint32_t stage) {
  const uint32_t total = p.micro_batches * p.chunks;
  const uint32_t behind = p.stages - stage - 1;
  const uint32_t ahead = p.chunks == 1 ? behind : 2 * behind + (p.chunks - 1) * p.stages;
  const uint32_t warmup = std::min(ahead, total);
  std::vector<Work> works;
  works.reserve(2 * size_t{total});
  for (uint32_t k = 0; k < warmup; ++k) works.push_back(nth(p, Pass::kForward, k));
  for (uint32_t k = warmup; k < total; ++k) {
    works.push_back(nth(p, Pass::kForward, k));
    works.push_back(nth(p, Pass::kBackward, k - warmup));
  }
  for (uint32_t k = total - warmup; k < total; ++k) works.push_back(nth(p, Pass::kBackward, k));
  return works;
}

}  // namespace rehearse::synth
