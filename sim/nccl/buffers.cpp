// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/buffers.hpp"

#include <algorithm>

#include "sim/nccl/loads.hpp"

namespace rehearse::sim {
namespace {

constexpr Bytes kHeader = 4096;
constexpr Bytes kAllocation = Bytes{2} << 20;  // of allocations
constexpr Bytes kSlots = 8;                    // of a connection

// All protocols of one connection.
Bytes connection_bytes(const Settings& settings) {
  Bytes bytes = kHeader;
  for (const Protocol protocol : kProtocols) bytes += settings.buffer_bytes[index_of(protocol)];
  return (bytes + kAllocation - 1) / kAllocation * kAllocation;
}

class Counting {
 public:
  Counting(const Placement& placement, Bytes each)
      : placement_(placement), each_(each), members_(placement.members.size()) {}

  void add(const std::vector<Loads::Edge>& edges) {
    for (const Loads::Edge& edge : edges) {
      if (edge.from == edge.to) continue;
      const Member& a = placement_.members[edge.from];
      const Member& b = placement_.members[edge.to];
      if (a.group == b.group) {
        const bool shared = placement_.between(a, b) == PairTransport::kHost;
        (shared ? members_[edge.to].host : members_[edge.to].gpu) += each_;
        continue;
      }
      const bool direct = placement_.inter == InterTransport::kRdmaDirect ||
                          placement_.inter == InterTransport::kNvlink;
      for (const uint32_t end : {edge.from, edge.to}) {
        const bool staged = !direct || (end == edge.from && placement_.staged_sends);
        (staged ? members_[end].host : members_[end].gpu) += each_;
      }
    }
  }

  void add_gpu(uint32_t member, Bytes bytes) { members_[member].gpu += bytes; }

  [[nodiscard]] ConnectionMemory largest() const {
    return *std::max_element(members_.begin(), members_.end(),
                             [](const ConnectionMemory& a, const ConnectionMemory& b) {
                               return a.gpu + a.host < b.gpu + b.host;
                             });
  }

  [[nodiscard]] Bytes each() const { return each_; }

 private:
  const Placement& placement_;
  Bytes each_;
  std::vector<ConnectionMemory> members_;
};

// A head of CollNet: to the network and from it.
void add_heads(const std::vector<std::vector<NodePath>>& heads, Counting& out) {
  for (const std::vector<NodePath>& group : heads) {
    for (const NodePath& head : group) out.add_gpu(head.members.front(), 2 * out.each());
  }
}

}  // namespace

ConnectionMemory connection_memory(const ModelContext& context, const Placement& placement,
                                   const Graphs& graphs, const NcclModel& model,
                                   Algorithm algorithm) {
  if (placement.members.size() < 2) return {};
  const Loads loads(context, placement, graphs, Queues{});
  const CommShape& shape = graphs.shape;
  const auto n = static_cast<uint32_t>(placement.members.size());
  Counting out(placement, connection_bytes(model.settings));
  switch (algorithm) {
    case Algorithm::kRing:
      for (int c = 0; c < shape.n_channels; ++c) out.add(loads.ring_edges(c));
      break;
    case Algorithm::kTree:
      for (int c = 0; c < shape.n_channels; ++c) out.add(loads.tree_edges(c, false));
      break;
    case Algorithm::kPat:
      for (int c = 0; c < shape.n_channels; ++c) {
        for (int d = 0; d < pat_dimensions(n); ++d) {
          out.add(loads.pat_edges(c, d, Function::kAllGather));
        }
      }
      break;
    case Algorithm::kCollnetDirect:
      add_heads(graphs.collnet_heads, out);
      break;
    case Algorithm::kCollnetChain:
      add_heads(graphs.collnet_chains, out);
      break;
    case Algorithm::kNvls:
    case Algorithm::kNvlsTree: {
      // Slots of every head, one set for reducing and one for spreading.
      const Bytes slots = 2 * kSlots * model.settings.nvls_chunk_bytes * shape.nvls_heads *
                          std::max(1, shape.nvls_channels);
      for (uint32_t m = 0; m < n; ++m) out.add_gpu(m, slots);
      for (int c = 0; algorithm == Algorithm::kNvlsTree && c < shape.nvls_channels; ++c) {
        out.add(loads.tree_edges(c, true));
      }
      break;
    }
  }
  return out.largest();
}

}  // namespace rehearse::sim
