// SPDX-License-Identifier: Apache-2.0
#include "sim/transfer_traffic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/nccl/timing.hpp"

namespace rehearse::sim {
namespace {

using platforms::GpuRef;
using traces::Transfer;
using traces::Way;

constexpr Bytes kSmall = Bytes{64} * 1024;  // over before anybody notices
constexpr Nanos kCopyStart = 1000;  // of a copy engine: a typical figure, part of the recorded time
constexpr uint32_t kStaged = 3;  // crossings of host memory: DMA, and the driver's load and store
// Caps are rounded up to so many steps per doubling, and what that would save is waited for first: copies of much the
// same speed then share a route.
constexpr double kStepsPerDoubling = 8;

// -1: none of that name.
int find_storage(const google::protobuf::RepeatedPtrField<pb::Storage>& list,
                 const std::string& name) {
  for (int i = 0; i < list.size(); ++i) {
    if (name.empty() || list[i].name() == name) return i;
  }
  return -1;
}

std::vector<LinkId> copy_route(const ModelContext& context, GpuRef gpu, Way way) {
  std::vector<LinkId> route;
  if (way == Way::kHostToDevice) context.links.host_to_gpu(gpu, route);
  if (way == Way::kDeviceToHost) context.links.gpu_to_host(gpu, route);
  if (way == Way::kPeer) {
    const int gpus = context.platform.nodes(static_cast<int>(gpu.node)).gpus_size();
    const GpuRef peer{gpu.node, (gpu.gpu + 1) % static_cast<uint32_t>(std::max(1, gpus))};
    if (peer != gpu && !context.links.nvlink(gpu, peer, route)) {
      context.links.pcie(gpu, peer, route);
    }
  }
  return route;
}

std::optional<CallTraffic> copy_traffic(const ModelContext& context, GpuRef gpu,
                                        const Transfer& transfer, Nanos duration) {
  if (transfer.bytes < kSmall || duration <= kCopyStart) return std::nullopt;
  FlowLoad flow;
  for (LinkId link : copy_route(context, gpu, transfer.way)) {
    const bool memory = context.links[link].kind == platforms::LinkKind::kHost;
    flow.links.push_back({link, transfer.pageable && memory ? kStaged : 1});
  }
  if (flow.links.empty()) return std::nullopt;
  flow.bytes = static_cast<double>(transfer.bytes);
  const double rate = flow.bytes / (static_cast<double>(duration - kCopyStart) * 1e-9);
  const double cap = std::exp2(std::ceil(std::log2(rate) * kStepsPerDoubling) / kStepsPerDoubling);
  // A cap above what the links give is none.
  const double alone = rate_alone(context, flow);
  if (cap < alone) flow.cap = cap;
  CallTraffic out;
  const double bytes_time = alone > 0 ? flow.bytes / std::min(cap, alone) * 1e9 : 0;
  out.latency = std::max(kCopyStart, duration - static_cast<Nanos>(std::nearbyint(bytes_time)));
  out.flows.push_back(std::move(flow));
  return out;
}

Result<CallTraffic> storage_traffic(const ModelContext& context, GpuRef gpu,
                                    const Transfer& transfer, const std::string& name) {
  const pb::Node& node = context.platform.nodes(static_cast<int>(gpu.node));
  const platforms::Links& links = context.links;
  const int share = find_storage(context.platform.storage(), name);
  const int disk = find_storage(node.storage(), name);
  const bool save = transfer.way == Way::kSave;
  std::vector<LinkId> route;
  CallTraffic out;
  if (save) links.gpu_to_host(gpu, route);
  // Without a name: where all ranks can read it again.
  if (share >= 0) {
    const auto at = static_cast<uint32_t>(share);
    save ? links.host_to_share(gpu.node, at, route) : links.share_to_host(gpu.node, at, route);
    out.latency = context.platform.storage(share).latency();
  } else if (disk >= 0) {
    const auto at = static_cast<uint32_t>(disk);
    save ? links.host_to_disk(gpu.node, at, route) : links.disk_to_host(gpu.node, at, route);
    out.latency = node.storage(disk).latency();
  } else {
    return fail(Code::kBadInput,
                name.empty() ? "the platform has no storage" : "there is no storage " + name,
                "storage",
                "give the platform storage: {name: shared, read: 40GB/s, write: 20GB/s}");
  }
  if (transfer.way == Way::kRestore) links.host_to_gpu(gpu, route);
  FlowLoad flow;
  for (LinkId link : route) flow.links.push_back({link, 1});
  flow.bytes = static_cast<double>(transfer.bytes);
  out.flows.push_back(std::move(flow));
  out.latency = std::max(out.latency, kCopyStart);
  return out;
}

}  // namespace

Result<std::optional<CallTraffic>> transfer_traffic(const ModelContext& context,
                                                    const traces::Program& program,
                                                    traces::RankId rank, const Transfer& transfer,
                                                    Nanos duration) {
  const pb::RankLaunch* seat = nullptr;
  // Ranks stand in order unless somebody wrote them otherwise.
  const auto& ranks = context.launch.ranks();
  if (static_cast<int>(rank) < ranks.size() && ranks[static_cast<int>(rank)].rank() == rank) {
    seat = &ranks[static_cast<int>(rank)];
  }
  for (int i = 0; seat == nullptr && i < ranks.size(); ++i) {
    if (ranks[i].rank() == rank) seat = &ranks[i];
  }
  if (seat == nullptr) return fail(Code::kInternal, fmt::format("rank {} has no seat", rank));
  const GpuRef gpu{seat->node(), seat->gpu()};
  if (!is_storage(transfer.way)) return copy_traffic(context, gpu, transfer, duration);
  RH_TRY(CallTraffic out,
         storage_traffic(context, gpu, transfer, program.storages[transfer.storage]));
  return std::optional(std::move(out));
}

}  // namespace rehearse::sim
