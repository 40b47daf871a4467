// SPDX-License-Identifier: Apache-2.0
// Bandwidth of a PCIe link. Derived when it is asked for, never stored, so that a patch of
// `generation` or `width` acts. Pure function.
#pragma once

#include "base/units.hpp"
#include "platforms/proto/platform.pb.h"

namespace rehearse::platforms {

// Per direction, after line encoding, before packet headers: what the data sheet states.
// `bandwidth` when it is written, else lanes times the rate of the generation (a width of 0 counts
// as 16 lanes); 0 when neither is written, which means that there is no PCIe link.
[[nodiscard]] BytesPerSec bandwidth_of(const pb::PcieLink& link);

}  // namespace rehearse::platforms
