// SPDX-License-Identifier: Apache-2.0
// What a communicator's calls do to the platform: which links each channel loads with how many
// bytes, and the latency before the last byte can follow. NCCL's cost model decides
// (sim/nccl/choice.hpp); the time is our own (sim/nccl/timing.hpp): latency from hops and steps,
// bandwidth from the links when flows share them.
//
// One CommunicatorModel per communicator of the job, built once from the expanded platform, the
// placement of its members and their environments. Immutable after create().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/finding.hpp"
#include "base/units.hpp"
#include "platforms/model/links.hpp"
#include "sim/fabric/fabric.hpp"
#include "sim/nccl/time_terms.hpp"
#include "sim/proto/scenario.pb.h"
#include "traces/model/trace.hpp"

namespace rehearse::sim {

class NodeGraphCache;
struct Graphs;
struct NcclModel;
struct Placement;
struct DecidedCall;  // a call and its plan, sim/nccl/timing.hpp

// How a connection between nodes is spread. A flow over it is `units` times as heavy and carries a
// `units`-th of the bytes, so that each queue pair can take a path of its own where switches hash and
// each port of an adapter its share.
struct Queues {
  uint32_t units = 1;
  int64_t messages = 1;       // of one connection in the call: few do not reach every queue pair
  int64_t message_bytes = 1;  // of one of them
};

// One fluid flow: `bytes` cross each link once per unit of weight, no faster than `cap` (0: no
// limit). Flows of one communicator with equal `cap` and `pair` share the cap.
struct FlowLoad {
  std::vector<LinkWeight> links;
  double bytes = 0;
  BytesPerSec cap = 0;
  uint32_t pair =
      0;  // whose cap it is: of a pair of members (send and recv), or a way of its own; 0: of all of them
};

// `count` times `each_us` of a call's latency.
struct LatencyPart {
  std::string what;
  int64_t count = 0;
  double each_us = 0;
};

// A message from member to member.
struct HopLoad {
  uint32_t from = 0, to = 0;
  FlowLoad load;
};

// A call of all members together.
struct CallTraffic {
  // From the arrival of the last member to the start of the flows: all that does not depend on how
  // busy the links are (launch, per-step latencies, pipeline fill).
  Nanos latency = 0;
  std::vector<FlowLoad> flows;
  std::string algorithm;  // "RING/SIMPLE", "TREE/LL128", "P2P/SIMPLE"
  int channels = 0;
  // For busbw: bytes * factor / time (nccl-tests' definition).
  double bus_bytes = 0;
  // Rooted calls and pairs: the messages they are made of, for members that do not come together.
  // Broadcast and reduce: a chain, in the order the data goes.
  std::vector<HopLoad> hops{};
  Bytes hop_bytes = 0;  // payload of one of them
  Bytes credit = 0;     // payload that fits into the buffers between a sender and its receiver
  // Trees and chains: bytes of one unit of the flow, on the wire, that are passed on at a time (0: as
  // they come), and the part of `latency` in which that pipeline fills.
  double part = 0;
  Nanos fill = 0;
  std::vector<LatencyPart> parts = {};  // whose sum is `latency`
  // Ranks that plan the call otherwise than the first one, and how: it then never ends.
  std::vector<uint32_t> dissenters = {};
  std::string dissent = {};
  Queues queues{};       // that the flows between nodes are spread over
  TimeTerms terms = {};  // its time alone, but for the links (sim::terms_of)
};

// Why a communicator does not use the best transport its nodes offer.
struct Fallback {
  uint32_t node = 0;
  std::vector<uint32_t> ranks;  // whose setting or hardware causes it
  std::string from;             // "NET/IB/GDRDMA"
  std::string to;               // "NET/Socket"
  std::string why;              // "NCCL_IB_DISABLE=1 on ranks 8-15"
};

struct ModelContext {
  const pb::Platform& platform;  // expanded
  const platforms::Links& links;
  const pb::Launch& launch;  // expanded: one entry per rank
  // Of `platform`; keeps what was found on nodes that are alike. Null: each communicator searches.
  NodeGraphCache* cache = nullptr;
};

class CommunicatorModel {
 public:
  // kBadInput when NCCL would refuse (unknown NCCL_ALGO, no path between two members, rank without
  // a GPU).
  static Result<CommunicatorModel> create(const ModelContext& context,
                                          const traces::Communicator& communicator);
  CommunicatorModel(CommunicatorModel&&) noexcept;
  CommunicatorModel& operator=(CommunicatorModel&&) noexcept;
  ~CommunicatorModel();

  // Transport between nodes ("NET/IB/GDRDMA", "NET/IB", "NET/Socket"), or inside the node when all
  // members are on one ("P2P/NVL", "P2P/PCIe", "SHM").
  [[nodiscard]] const std::string& transport() const;
  // What it would be with default settings and all parts in order, in the same words.
  [[nodiscard]] const std::string& offered() const;
  [[nodiscard]] uint32_t nodes() const;
  [[nodiscard]] const std::vector<Fallback>& fallbacks() const;
  [[nodiscard]] const Findings& findings() const;

  // Traffic of one call. `call` is any member's view (for send/recv: the sender's rank in the
  // communicator is `member`, the receiver's is call.peer). Equal calls give equal traffic; the
  // caller may cache.
  [[nodiscard]] Result<CallTraffic> traffic(const traces::Call& call, uint32_t member) const;
  // Traffic of a collective as decided (or as somebody would rather have it): what traffic() does
  // once NCCL has planned it.
  [[nodiscard]] CallTraffic traffic_of(const DecidedCall& decided) const;

  // What the decisions rest on: where members sit, rings and trees, the cost table.
  [[nodiscard]] const Placement& placement() const;
  [[nodiscard]] const Graphs& graphs() const;
  [[nodiscard]] const NcclModel& nccl() const;
  [[nodiscard]] const TimeParameters& parameters() const;

 private:
  struct Impl;
  explicit CommunicatorModel(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

}  // namespace rehearse::sim
