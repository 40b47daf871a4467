// SPDX-License-Identifier: Apache-2.0
// Everything NCCL knows about one communicator when a call arrives: its shape, its settings, the
// constants of its version and the cost table made of them. Made once, then read only; safe to
// share between threads.
#pragma once

#include "base/error.hpp"
#include "sim/nccl/constants.hpp"
#include "sim/nccl/settings.hpp"
#include "sim/nccl/shape.hpp"
#include "sim/nccl/tuning.hpp"

namespace rehearse::sim {

struct NcclModel {
  CommShape shape;
  Settings settings;
  VersionedConstants version;  // `exact` is false when the asked version is not known
  TuningTable table;
};

// Checks the shape (Code::kBadInput) and builds the table.
[[nodiscard]] Result<NcclModel> make_nccl_model(const CommShape& shape, const Settings& settings,
                                                const NcclVersion& version);

}  // namespace rehearse::sim
