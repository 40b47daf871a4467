// SPDX-License-Identifier: Apache-2.0
// How Horovod packs what is ready (FuseResponses, horovod/common/controller.cc): tensors of one type in their order, as
// long as they fit below the threshold; each counts as a multiple of 16 bytes. One that is larger goes alone, and with a
// threshold of 0 each does.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/units.hpp"

namespace rehearse::synth {

// How many of the tensors each buffer takes, in order.
[[nodiscard]] std::vector<size_t> fusion_buffers(std::span<const Bytes> tensors, Bytes threshold);

}  // namespace rehearse::synth
