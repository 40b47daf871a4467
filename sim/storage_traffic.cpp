// SPDX-License-Identifier: Apache-2.0
#include "sim/storage_traffic.hpp"

#include <fmt/format.h>

namespace rehearse::sim {
namespace {

// -1: none of that name.
int find(const google::protobuf::RepeatedPtrField<pb::Storage>& list, const std::string& name) {
  for (int i = 0; i < list.size(); ++i) {
    if (name.empty() || list[i].name() == name) return i;
  }
  return -1;
}

}  // namespace

Result<CallTraffic> storage_traffic(const ModelContext& context,
                                    const traces::Communicator& communicator, Bytes bytes) {
  const traces::RankId rank = communicator.members.front();
  const pb::RankLaunch* seat = nullptr;
  for (const pb::RankLaunch& launch : context.launch.ranks()) {
    if (launch.rank() == rank) seat = &launch;
  }
  if (seat == nullptr) return fail(Code::kInternal, fmt::format("rank {} has no seat", rank));
  const std::string& name = communicator.description;
  const pb::Node& node = context.platform.nodes(static_cast<int>(seat->node()));
  std::vector<LinkId> route;
  context.links.gpu_to_host({seat->node(), seat->gpu()}, route);
  CallTraffic out;
  const int share = find(context.platform.storage(), name);
  const int disk = find(node.storage(), name);
  // Without a name: where all ranks can read it again.
  if (share >= 0) {
    context.links.host_to_share(seat->node(), static_cast<uint32_t>(share), route);
    out.latency = context.platform.storage(share).latency();
  } else if (disk >= 0) {
    context.links.host_to_disk(seat->node(), static_cast<uint32_t>(disk), route);
    out.latency = node.storage(disk).latency();
  } else {
    return fail(Code::kBadInput,
                name.empty() ? "the platform has no storage" : "there is no storage " + name,
                "write-checkpoint", "give the platform storage: {name: shared, write: 20GB/s}");
  }
  FlowLoad flow;
  for (LinkId link : route) flow.links.push_back({link, 1});
  flow.bytes = static_cast<double>(bytes);
  out.flows.push_back(std::move(flow));
  out.algorithm = "WRITE";
  out.channels = 0;  // no multiprocessor works for it
  out.bus_bytes = static_cast<double>(bytes);
  return out;
}

}  // namespace rehearse::sim
