// SPDX-License-Identifier: Apache-2.0
#include "traces/synth/fusion.hpp"

namespace rehearse::synth {
namespace {

constexpr Bytes kPadding = 16;  // BATCHED_D2D_PADDING

Bytes padded(Bytes bytes) { return (bytes + kPadding - 1) / kPadding * kPadding; }

}  // namespace

std::vector<size_t> fusion_buffers(std::span<const Bytes> tensors, Bytes threshold) {
  std::vector<size_t> out;
  Bytes filled = 0;
  for (const Bytes bytes : tensors) {
    if (out.empty() || filled + padded(bytes) > threshold) {
      out.push_back(0);
      filled = 0;
    }
    ++out.back();
    filled += padded(bytes);
  }
  return out;
}

}  // namespace rehearse::synth
