// SPDX-License-Identifier: Apache-2.0
// How long a planned collective takes: our own model, because NCCL's predicted microseconds choose
// and do not time. What it predicts: the latency before and between bytes, and how fast one channel
// can go whatever the links offer. Bandwidth itself comes from the links that the channels share
// (loads.hpp, efficiency.hpp).
//
//   time = start + hops x hop latency + (loops - 1) x steps x what the slices do not hide
//          + bytes of a channel / rate of a channel
//
// Inputs: kind of each hop, protocol, chunks. Parameters: latencies of one hop by kind of link and
// protocol (NCCL 2.28.9 src/graph/tuning.cc, which measured them; host memory, staged RDMA and
// sockets are priors), rates of one channel (the same file). Blind spots: clocks, caches and other
// tenants of a machine; the rise of efficiency with size above 256 MiB (about 5 %). Validated by
// `rehearse validate nccl-tests` (validation/nccl_tests.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "sim/nccl/placement.hpp"
#include "sim/nccl/plan.hpp"
#include "sim/nccl/posts.hpp"
#include "sim/nccl/time_terms.hpp"

namespace rehearse::sim {

struct DecidedCall {
  Call asked;
  PlannedCall plan;
};

// What a communicator's calls are timed with.
struct Timing {
  const NcclModel& model;
  const Placement& placement;
  const TimeParameters& parameters;
  int channels = 1;  // that the call uses
};

[[nodiscard]] HopKind hop_inside(const Placement& placement);
[[nodiscard]] HopKind hop_between(const Placement& placement);  // of several nodes
[[nodiscard]] const char* name_of(HopKind kind);                // "NVLink", "host memory", "RDMA"

// One hop of an algorithm in a protocol, µs: the model's table, without a platform's multiples.
[[nodiscard]] double hop_latency_us(HopKind kind, Algorithm algorithm, Protocol protocol);

// Start of a kernel in a protocol by NCCL's own figures, µs.
[[nodiscard]] double base_latency_us(Protocol protocol);

// Latency of a planned collective before its bytes: start and hops of one pass. Its terms are added
// to `terms`.
[[nodiscard]] std::vector<LatencyPart> pass_latency(const Timing& timing, Function function,
                                                    const Choice& choice, TimeTerms& terms);

// What later loops add when a slice takes less time than a hop: `rate` is the rate of one channel
// alone, which has `bytes` to move. Only rings wait for themselves; trees and switches pipeline.
struct ChannelPace {
  BytesPerSec rate = 0;
  double bytes = 0;
};
[[nodiscard]] LatencyPart loop_latency(const Timing& timing, const DecidedCall& decided,
                                       const ChunkPlan& chunks, const ChannelPace& pace,
                                       TimeTerms& terms);

// All parts together, rounded to nanoseconds.
[[nodiscard]] Nanos sum_of(const std::vector<LatencyPart>& parts);

// Rate per unit of weight that a flow gets with the platform to itself: the smallest of capacity /
// weight over its links and its cap; 0 over a link that is down.
[[nodiscard]] BytesPerSec rate_alone(const ModelContext& context, const FlowLoad& flow);

// Bytes on the wire per byte of payload (NCCL model §6.2; LL128 as §3.2 counts it).
[[nodiscard]] double wire_factor(Protocol protocol);

// Payload rate of one channel that its threads can keep up, of the bytes that a ring or tree passes
// on; 0: no limit known.
[[nodiscard]] BytesPerSec channel_limit(const NcclModel& model, Algorithm algorithm,
                                        Protocol protocol, int channels);

// The same for one channel of send and recv, which moves chunk after chunk.
[[nodiscard]] BytesPerSec pair_channel_limit(double clock_hz, int64_t chunk_bytes);

// Rate of the slowest PCIe link by which a ring passes through host memory inside a node, of which the
// threads of a GPU reach a share, all channels together; 0 when none does.
[[nodiscard]] BytesPerSec host_memory_link(const ModelContext& context, const Placement& placement,
                                           const Graphs& graphs);

// Rate per channel of the slowest PCIe link by which GPUs pass messages through host memory on their way to or from the
// network, of which their threads reach the same share; 0 where all have GPUDirect.
[[nodiscard]] BytesPerSec staging_link(const ModelContext& context, const Placement& placement,
                                       const Graphs& graphs, Algorithm algorithm, int channels);

// How NCCL reaches the adapters of a communicator.
[[nodiscard]] PostedBy posted_by(const ModelContext& context, const Placement& placement);

// Rate of a head's slice that GPUs of a node keep up in CollNetDirect, over NVLinks among `links`; 0: there are none.
[[nodiscard]] BytesPerSec direct_limit(const ModelContext& context,
                                       const std::vector<LinkWeight>& links,
                                       const CommShape& shape);

// Keeps flows below what the classes of their traffic get from the fabric and what adapters reach of
// GPU memory, by the settings of the members' ranks (sim/nccl/network_settings.hpp).
void limit_by_network(const ModelContext& context, const Placement& placement,
                      std::vector<FlowLoad>& flows);

// Rate of one connection between nodes by its queue pairs (NCCL_IB_QPS_PER_CONNECTION); 0: no limit known.
[[nodiscard]] BytesPerSec connection_limit(const ModelContext& context, const Placement& placement);

// Of all sockets of one connection. Without threads of their own (NCCL_SOCKET_NTHREADS, by default only on AWS) all
// `connections` that the rank sends on, or receives on, share its one network thread, which copies for them.
[[nodiscard]] BytesPerSec socket_limit(const Member& member, double connections);

}  // namespace rehearse::sim
