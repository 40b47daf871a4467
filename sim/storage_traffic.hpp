// SPDX-License-Identifier: Apache-2.0
// Work of one rank that shares links with everything else but meets nobody: writes to storage and copies between GPU
// and host. In the program it is a call on a communicator of that rank alone whose backend says what it is; here such
// a call becomes traffic.
#pragma once

#include <string_view>

#include "sim/nccl/traffic.hpp"

namespace rehearse::sim {

// Backend of a communicator that stands for storage; its description is the name of the storage, empty for any.
constexpr const char* kStorageBackend = "storage";

// From GPU memory through the host to the storage: a disk of the rank's node of that name, else a share of the
// platform. kBadInput when there is none.
[[nodiscard]] Result<CallTraffic> storage_traffic(const ModelContext& context,
                                                  const traces::Communicator& communicator,
                                                  Bytes bytes);

}  // namespace rehearse::sim
