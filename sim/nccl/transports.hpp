// SPDX-License-Identifier: Apache-2.0
// The transports of NCCL (§8) in the words of its log, and which of them joins two GPUs of a node.
// Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/nccl/node_system.hpp"

namespace rehearse::sim {

enum class IntraTransport : uint8_t { kNvlink, kPcie, kHost };
enum class InterTransport : uint8_t { kNone, kNvlink, kRdmaDirect, kRdma, kSocket };

// "P2P/NVL", "NET/IB/GDRDMA", ...
[[nodiscard]] const char* name_of(IntraTransport transport);
[[nodiscard]] const char* name_of(InterTransport transport);

// How two GPUs of one system are joined.
enum class PairTransport : uint8_t { kNvlink, kNvlinkVia, kPcie, kHost };
[[nodiscard]] const char* name_of(PairTransport transport);
[[nodiscard]] PairTransport transport_of(const NodeSystem& system, size_t a, size_t b);

// Each GPU's best neighbour, the worst of them: what joins the node.
[[nodiscard]] IntraTransport joining(const NodeSystem& system);

}  // namespace rehearse::sim
