// SPDX-License-Identifier: Apache-2.0
// How much of a link's data-sheet bandwidth traffic really gets. A platform may state it
// (Platform.efficiency, fitted by calibration); else priors stand in: typical shares of large
// transfers over headers, encoding and flow control. They are assumptions, not measurements.
#pragma once

#include "base/units.hpp"
#include "platforms/model/links.hpp"

namespace rehearse::sim {

// Share of the data sheet that links of a kind reach: stated, else the prior. Host memory and C2C follow
// what is stated of PCIe in proportion to their priors.
[[nodiscard]] double link_share(const pb::Efficiency& stated, platforms::LinkKind kind);
[[nodiscard]] double prior_link_share(platforms::LinkKind kind);

// Bytes per second of one link; 0 when it is down.
[[nodiscard]] BytesPerSec effective_capacity(const pb::Platform& platform,
                                             const platforms::Link& link);

// Bytes per second by LinkId; 0 for a link that is down.
[[nodiscard]] std::vector<BytesPerSec> effective_capacities(const pb::Platform& platform,
                                                            const platforms::Links& links);

}  // namespace rehearse::sim
