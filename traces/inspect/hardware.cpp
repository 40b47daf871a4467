// SPDX-License-Identifier: Apache-2.0
#include "traces/inspect/hardware.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace rehearse::traces {

Hardware hardware_of(const Trace& trace) {
  Hardware out;
  out.ranks =
      std::max<uint32_t>(trace.header.world_size(), static_cast<uint32_t>(trace.ranks.size()));
  std::map<std::string, uint32_t> on_host;
  uint32_t highest = 0, visible = 0;
  for (const RankTrace& rank : trace.ranks) {
    if (!rank.host.empty()) ++on_host[rank.host];
    highest = std::max(highest, rank.gpu + 1);
    visible = std::max(visible, rank.visible_gpus);
    if (out.seen.gpu_model.empty()) {
      out.seen.gpu_model = rank.gpu_model;
      out.seen.gpu_memory = rank.gpu_memory;
    }
  }
  uint32_t fullest = 0;
  for (const auto& [host, ranks] : on_host) fullest = std::max(fullest, ranks);
  const bool all = trace.ranks.size() == out.ranks;
  if (all && !on_host.empty()) {
    out.nodes = static_cast<uint32_t>(on_host.size());
    out.seen.gpus = std::max(fullest, highest);
  } else if (highest > 1 || fullest > 1) {
    out.seen.gpus = std::max(fullest, highest);
  }
  if (out.seen.gpus > out.ranks) out.seen.gpus = highest;
  // A process that sees several GPUs sees them all; one that sees a single one may be masked.
  if (visible > 1 || out.ranks <= 1) out.seen.gpus = std::max(out.seen.gpus, visible);
  return out;
}

namespace {

constexpr int kRingPattern = 4;  // NCCL's number

// "1/IB", "1/RoCE" behind the name of a port; addresses behind interfaces.
platforms::Seen& add_network(platforms::Seen& seen, const pb::NcclProcess& process) {
  if (process.network().find("IB") == std::string::npos || process.ib_no_device()) return seen;
  seen.nics = std::max(seen.nics, static_cast<uint32_t>(process.nics_size()));
  for (const pb::NcclNic& nic : process.nics()) {
    const bool ethernet = nic.detail().find("RoCE") != std::string::npos;
    seen.nic_kind = ethernet ? pb::ROCE : pb::INFINIBAND;
  }
  return seen;
}

// What the rings of a search cross between the GPUs of a node; nothing where no node has two.
std::optional<bool> joined_by_nvlink(const pb::NcclCommunicator& comm) {
  constexpr std::array<std::string_view, 2> kNvlink = {"NVL", "NVB"};
  constexpr std::array<std::string_view, 5> kPcie = {"PIX", "PXB", "PHB", "SYS", "NODE"};
  const auto names = [](const auto& list, const std::string& type) {
    return std::find(list.begin(), list.end(), type) != list.end();
  };
  for (const pb::NcclSearch& search : comm.searches()) {
    if (search.pattern() != kRingPattern) continue;
    if (names(kNvlink, search.type_intra())) return true;
    if (names(kPcie, search.type_intra())) return false;
  }
  return std::nullopt;
}

}  // namespace

Hardware hardware_of(const std::vector<pb::Evidence>& evidence) {
  Hardware out;
  std::map<std::string, std::set<int64_t>> devices;  // of each host
  for (const pb::Evidence& each : evidence) {
    for (const pb::MeasuredTable& table : each.measured().tables()) {
      if (out.seen.gpu_model.empty()) out.seen.gpu_model = table.hardware();
      out.ranks = std::max(out.ranks, table.gpus());
      out.nodes = std::max(out.nodes, table.nodes());
      for (const pb::MeasuredDevice& device : table.devices()) {
        devices[device.host()].insert(device.device());
        if (out.seen.gpu_model.empty()) out.seen.gpu_model = device.name();
      }
    }
    const pb::NcclLog& log = each.nccl_log();
    for (const pb::NcclProcess& process : log.processes()) {
      add_network(out.seen, process);
      if (!process.cpu_vendor().empty()) out.seen.cpu_vendor = process.cpu_vendor();
      if (!process.no_peer_access().empty()) out.seen.peer_access = false;
    }
    for (const pb::NcclCommunicator& comm : log.communicators()) {
      out.ranks = std::max(out.ranks, comm.ranks_total());
      out.nodes = std::max(out.nodes, comm.nodes());
      if (comm.has_nvls_available() && comm.nvls_available()) {
        out.seen.nvlink = out.seen.nvswitch = true;
        out.seen.compute_capability = 90;
      }
      if (!out.seen.nvlink) out.seen.nvlink = joined_by_nvlink(comm);
      for (const pb::NcclRank& rank : comm.ranks()) {
        if (rank.process() >= static_cast<uint32_t>(log.processes_size())) continue;
        const auto& host = log.processes(static_cast<int>(rank.process())).host();
        devices[host].insert(rank.device() >= 0 ? rank.device() : rank.rank());
      }
    }
  }
  for (const auto& [host, list] : devices) {
    out.seen.gpus = std::max(out.seen.gpus, static_cast<uint32_t>(list.size()));
  }
  out.nodes = std::max(out.nodes, static_cast<uint32_t>(devices.size()));
  // A name tells more than the guess from what the switches can do.
  if (!out.seen.gpu_model.empty()) out.seen.compute_capability = 0;
  return out;
}

uint32_t nodes_needed(const Hardware& hardware, uint32_t gpus) {
  const uint32_t by_ranks = gpus == 0 ? 1 : (hardware.ranks + gpus - 1) / gpus;
  return std::max({1u, hardware.nodes, by_ranks});
}

}  // namespace rehearse::traces
