// SPDX-License-Identifier: Apache-2.0
// The whole reasoning behind one collective: what NCCL compared, what it chose and why, how the call
// is carried out, which links bound it and how long it takes. Data only; words are put to it by the
// command line. Refers to nothing: an explanation outlives its model.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/nccl/testbed.hpp"
#include "sim/nccl/timing.hpp"

namespace rehearse::sim {

// One algorithm in one protocol.
struct ExplainedVariant {
  Algorithm algorithm = Algorithm::kRing;
  Protocol protocol = Protocol::kSimple;
  bool available = false;
  std::string why_not;      // empty when available
  double latency_us = 0;    // NCCL's table
  double bandwidth = 0;     // NCCL's table, bytes per second of the call
  double nccl_time_us = 0;  // what NCCL believes; the smallest is chosen
  int channels = 0;
  int threads = 0;
  Nanos time = 0;  // what we predict if it were chosen
  bool chosen = false;
};

// What the channels of an algorithm run on.
enum class GraphKind : uint8_t {
  kRings,
  kTrees,
  kHeads,      // one entry per node: the GPUs that reduce and pass on, each a slice
  kHeadTrees,  // one entry per head and tree: nodes joined by their heads of one number
};

// A way through members: one ring, one tree by its parents, or the heads of a node.
struct ExplainedChannel {
  int channel = 0;             // of heads: the node; of trees of heads: the number of the head
  std::vector<uint32_t> ring;  // ranks in order, closed; the heads of a node
  // Of every rank in the tree; -1: the root, -2: not in this tree. Empty without trees.
  std::vector<int> parent;
  std::vector<std::string> adapters;  // node by node the network adapter; empty on one node
};
constexpr int kNotInTree = -2;

// How messages of the first rank get to others, where a call is made of single messages.
struct ExplainedPair {
  std::vector<uint32_t> peers;  // ranks that are reached alike
  std::string transport;        // "P2P/NVL", "NET/IB/GDRDMA"
  std::string adapter;          // of the sender; empty: none
  int through = -1;             // rank whose GPU passes it on (PXN, a neighbour's NVLink); -1: none
};

struct ExplainedLink {
  std::string name;
  platforms::LinkKind kind = platforms::LinkKind::kNvlink;
  BytesPerSec data_sheet = 0;
  BytesPerSec effective = 0;
  double bytes = 0;  // that it carries
  Nanos time = 0;    // that it needs for them
};

struct Explanation {
  std::string collective;  // "all_reduce"
  Bytes bytes = 0;         // of the larger buffer of one rank
  std::string type, reduction;
  uint32_t ranks = 0, nodes = 0;
  std::string nccl_version;    // asked
  std::string constants_from;  // range of versions the constants hold for
  bool version_exact = true;

  std::vector<ExplainedVariant> variants;  // in NCCL's order; empty for send and recv
  std::string chosen;                      // "RING/SIMPLE"
  std::string why;                         // one sentence
  int channels = 0;                        // used, of
  int channels_offered = 0;
  int threads = 0;
  ChunkPlan chunks;  // of the first channel; chunk_bytes 0: none (send and recv)
  // Memory of the connections of the chosen algorithm, of the rank that has most.
  Bytes gpu_buffers = 0, host_buffers = 0;

  std::string inside, between;  // transports; `between` empty on one node
  // Where neighbours of one node in the chosen rings or trees reach each other in several ways: each with the ranks of
  // the first node that use it, as "0 > 1". Else empty.
  std::vector<std::pair<std::string, std::vector<std::string>>> inside_ways;
  std::string offered;  // what the hardware could do
  std::vector<Fallback> fallbacks;
  GraphKind graph_kind = GraphKind::kRings;
  std::vector<ExplainedChannel> graph;  // distinct channels
  std::vector<ExplainedPair> pairs;     // of the first rank; empty for collectives with a graph

  std::vector<LatencyPart> latency;
  Nanos latency_time = 0;
  Nanos transfer_time = 0;
  Nanos channel_time = 0;            // that the rate of its channels alone asks for; 0: no limit
  std::vector<ExplainedLink> links;  // one per kind of link, the slowest first
  Nanos issue_time = 0;              // that launches of the host between two such calls ask for
  std::string bound;                 // "launches", "latency", "its channels" or the name of a link
  Nanos time = 0;
  bool never = false;         // a link on its way is down, or ranks plan it differently
  std::string dissent;        // how they do
  double algorithm_rate = 0;  // bytes per second, as nccl-tests computes them
  double bus_rate = 0;

  Findings findings;
};

// What is asked, in nccl-tests' words.
struct Question {
  std::string collective = "all_reduce";  // also "all_to_all", "sendrecv", "gather", "scatter", ...
  Bytes bytes = 0;
  std::string type = "float32";
  std::string reduction = "sum";
  // In a stream of such calls, as benchmarks make them: GPUs on which one thread of the host launches in turn.
  uint32_t gpus_per_thread = 1;
};

// The call of a question as any member makes it; kUsage for a collective, type or reduction that
// there is none of. "sendrecv" becomes a send.
[[nodiscard]] Result<traces::Call> call_of(const Question& question, uint32_t ranks);

// Traffic of a question; "sendrecv" is every member's send to the next one at once.
[[nodiscard]] Result<CallTraffic> traffic_of(const ModelContext& context,
                                             const CommunicatorModel& model,
                                             const Question& question);

// kBadInput when NCCL would refuse.
[[nodiscard]] Result<Explanation> explain(const ModelContext& context,
                                          const CommunicatorModel& model, const Question& question);

}  // namespace rehearse::sim
