// SPDX-License-Identifier: Apache-2.0
// Send, Recv and what is made of them (AlltoAll, Gather, Scatter): how many channels a peer gets,
// how a transfer is cut, and in which order a rank visits its peers (NCCL 2.28.9
// ncclTopoComputeP2pChannels, addP2pToPlan; NCCL model §8.1). Read from the source, not checked
// against vectors. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.hpp"
#include "sim/nccl/names.hpp"
#include "sim/nccl/settings.hpp"

namespace rehearse::sim {

// What the topology says about pairs of ranks. Every node has the same number of ranks, numbered
// node by node.
struct P2pShape {
  int n_nodes = 1;
  int ranks_per_node = 1;
  int n_channels = 1;            // of the communicator
  bool all_nvlink = false;       // every two GPUs of a node reach each other over NVLink
  double nvlink_path_gbps = 0;   // of the slowest pair that does, GB/s
  double nvlink_link_gbps = 20;  // of one link, GB/s
  int nics_per_gpu = 1;          // NICs it takes to fill the link between a GPU and its CPU

  [[nodiscard]] int n_ranks() const { return n_nodes * ranks_per_node; }
};

struct P2pLayout {
  int channels = 1;             // a power of two
  int channels_per_peer = 1;    // a power of two
  std::int64_t step_bytes = 0;  // of SIMPLE, before small transfers shrink it
};

struct P2pTransfer {
  Protocol protocol = Protocol::kSimple;  // LL or SIMPLE
  int channels = 0;                       // parts; 1 for an empty transfer
  std::int64_t part_bytes = 0;            // of all parts but the last, a multiple of 4096
  std::int64_t chunk_bytes = 0;           // data of one step
  std::int64_t steps_per_part = 0;        // of a full part
};

enum class P2pRoute { kInsideNode, kNetwork };

// One round: a rank sends to one peer and receives from another.
struct P2pRound {
  int send_rank = 0;
  int recv_rank = 0;
  int first_channel = 0;  // part i of the transfer runs on (first_channel + i) mod channels
};

// Code::kBadInput when a figure of the shape is out of range.
[[nodiscard]] Result<P2pLayout> p2p_layout(const P2pShape& shape, const Settings& settings);

// One transfer of `bytes` (0 to 2⁴⁸) in one direction. Code::kBadInput outside.
[[nodiscard]] Result<P2pTransfer> p2p_transfer(const P2pShape& shape, const Settings& settings,
                                               std::int64_t bytes, P2pRoute route);

// The rounds of `rank` in order, one per peer, the first with itself. Over all ranks every round is
// a permutation: who sends to me is whom I receive from.
[[nodiscard]] Result<std::vector<P2pRound>> p2p_rounds(const P2pShape& shape,
                                                       const Settings& settings, int rank);

}  // namespace rehearse::sim
