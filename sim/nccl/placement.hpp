// SPDX-License-Identifier: Apache-2.0
// Where the members of a communicator sit and which transport joins them: the part of NCCL's
// start-up that looks at hardware and at each rank's environment (NCCL model §7.2 and §8). A
// variable counts for the rank that has it; one rank that cannot use a network keeps the whole
// communicator from it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "sim/nccl/traffic.hpp"

namespace rehearse::sim {

using platforms::GpuRef;

enum class IntraTransport : uint8_t { kNvlink, kPcie, kHost };
enum class InterTransport : uint8_t { kNone, kNvlink, kRdmaDirect, kRdma, kSocket };

// "P2P/NVL", "NET/IB/GDRDMA", ...
[[nodiscard]] const char* name_of(IntraTransport transport);
[[nodiscard]] const char* name_of(InterTransport transport);

struct Member {
  uint32_t rank = 0;
  GpuRef gpu;
  std::map<std::string, std::string> env;
};

// The members of one node, in order of rank.
struct LocalGroup {
  uint32_t node = 0;
  std::vector<uint32_t> members;    // indices into Placement::members
  std::vector<uint32_t> nics;       // RDMA NICs near its GPUs that all of its ranks may use
  uint32_t interface = UINT32_MAX;  // IP interface for sockets
};

struct Placement {
  std::vector<Member> members;                     // in communicator order
  std::vector<LocalGroup> groups;                  // nodes in order of first appearance
  IntraTransport intra = IntraTransport::kNvlink;  // the worst between any two of one node
  InterTransport inter = InterTransport::kNone;
  std::vector<Fallback> fallbacks;
  std::string offered;  // transport with defaults and all parts in order
};

[[nodiscard]] Result<Placement> place(const ModelContext& context,
                                      const traces::Communicator& communicator);

}  // namespace rehearse::sim
