// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/variables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.hpp"

namespace rehearse::sim {
namespace {

constexpr Variable kVariables[] = {
    {"NCCL_ALGO", Acts::kDecision, "which algorithms are candidates"},
    {"NCCL_PROTO", Acts::kDecision, "which protocols are candidates"},
    {"NCCL_BUFFSIZE", Acts::kDecision, "chunk of SIMPLE; small ones show latency"},
    {"NCCL_LL_BUFFSIZE", Acts::kDecision, "chunk of LL"},
    {"NCCL_LL128_BUFFSIZE", Acts::kDecision, "chunk of LL128"},
    {"NCCL_MIN_NCHANNELS", Acts::kDecision, "least channels"},
    {"NCCL_MAX_NCHANNELS", Acts::kDecision, "most channels"},
    {"NCCL_MIN_CTAS", Acts::kDecision, "least channels"},
    {"NCCL_MAX_CTAS", Acts::kDecision, "most channels"},
    {"NCCL_NTHREADS", Acts::kDecision, "threads of a block; small calls give up channels later"},
    {"NCCL_LL128_NTHREADS", Acts::kDecision, "threads of a block in LL128"},
    {"NCCL_THREAD_THRESHOLDS", Acts::kDecision,
     "bytes per thread below which channels are given up"},
    {"NCCL_NVLS_ENABLE", Acts::kDecision, "NVLink SHARP"},
    {"NCCL_NVLS_NCHANNELS", Acts::kDecision, "channels of NVLS"},
    {"NCCL_NVLS_CHUNKSIZE", Acts::kDecision, "chunk of NVLS"},
    {"NCCL_NVLSTREE_MAX_CHUNKSIZE", Acts::kDecision, "chunk of NVLSTree"},
    {"NCCL_COLLNET_ENABLE", Acts::kDecision, "SHARP in the network, where a plugin offers it"},
    {"NCCL_COLLNET_NODE_THRESHOLD", Acts::kDecision, "least nodes for CollNet"},
    {"NCCL_PAT_ENABLE", Acts::kDecision, "PAT"},
    {"NCCL_LL128_C2C", Acts::kDecision, "LL128 beyond PXB on Hopper"},
    {"NCCL_NET_OVERHEAD", Acts::kDecision, "latency that NCCL counts for a post"},
    {"NCCL_CTA_POLICY", Acts::kDecision, "fewer channels with registered buffers"},
    {"NCCL_MIN_P2P_NCHANNELS", Acts::kDecision, "least channels of send and recv"},
    {"NCCL_MAX_P2P_NCHANNELS", Acts::kDecision, "most channels of send and recv"},
    {"NCCL_NCHANNELS_PER_NET_PEER", Acts::kDecision, "channels of a send to another node"},
    {"NCCL_P2P_NET_CHUNKSIZE", Acts::kDecision, "chunk of send and recv between nodes"},
    {"NCCL_P2P_PCI_CHUNKSIZE", Acts::kDecision, "chunk of send and recv over PCIe"},
    {"NCCL_P2P_NVL_CHUNKSIZE", Acts::kDecision, "chunk of send and recv over NVLink"},
    {"NCCL_CHUNK_SIZE", Acts::kDecision, "chunk of send and recv"},
    {"NCCL_P2P_LL_THRESHOLD", Acts::kDecision, "largest send in LL"},
    {"NCCL_ALLOC_P2P_NET_LL_BUFFERS", Acts::kDecision, "LL for sends between nodes"},
    {"NCCL_P2P_DISABLE", Acts::kTransport, "no direct way between GPUs"},
    {"NCCL_P2P_LEVEL", Acts::kTransport, "how far apart GPUs may be for a direct way"},
    {"NCCL_SHM_DISABLE", Acts::kTransport, "no shared memory: the network inside a node"},
    {"NCCL_NET", Acts::kTransport, "IB, Socket or a plugin"},
    {"NCCL_IB_DISABLE", Acts::kTransport, "sockets instead of RDMA"},
    {"NCCL_NET_GDR_LEVEL", Acts::kTransport, "how far an adapter may be for GPUDirect RDMA"},
    {"NCCL_CROSS_NIC", Acts::kTransport, "whether a ring may change rails"},
    {"NCCL_IB_HCA", Acts::kTransport, "which adapters are used", true},
    {"NCCL_PXN_DISABLE", Acts::kTransport, "no way through another GPU's adapter"},
    {"NCCL_PXN_C2C", Acts::kTransport, "PXN through a coherent link"},
    {"NCCL_P2P_PXN_LEVEL", Acts::kTransport, "PXN for send and recv"},
    {"NCCL_NVB_DISABLE", Acts::kTransport, "no way through another GPU's NVLink"},
    {"NCCL_NETDEVS_POLICY", Acts::kTransport, "adapters of one GPU"},
    {"NCCL_NET_DISABLE_INTRA", Acts::kTransport,
     "no network inside a node, even where it is faster than the GPUs' own way"},
    {"NCCL_NET_GDR_C2C", Acts::kTransport, "GPUDirect RDMA through a coherent link"},
    {"NCCL_MNNVL_ENABLE", Acts::kTransport, "NVLink between nodes"},
    {"NCCL_CUMEM_ENABLE", Acts::kTransport, "without it no NVLink between nodes"},
    {"NCCL_DMABUF_ENABLE", Acts::kTransport, "GPUDirect RDMA where it is the only way"},
    {"NCCL_NET_GDR_READ", Acts::kTransport, "whether sends go straight from GPU memory"},
    {"NCCL_IB_MERGE_NICS", Acts::kTransport, "ports of one adapter are one device"},
    {"NCCL_IB_SL", Acts::kTime, "class of traffic on InfiniBand, where the fabric has classes"},
    {"NCCL_IB_TC", Acts::kTime, "class of traffic on RoCE, where the fabric has classes"},
    {"NCCL_IB_QPS_PER_CONNECTION", Acts::kTime, "paths of a connection where switches hash"},
    {"NCCL_IB_SPLIT_DATA_ON_QPS", Acts::kTime, "whether short transfers use all queue pairs"},
    {"NCCL_IB_ADAPTIVE_ROUTING", Acts::kTime, "packets are spread where the fabric can"},
    {"NCCL_IB_AR_THRESHOLD", Acts::kTime, "messages that are too small to be spread"},
    {"NCCL_IB_PCI_RELAXED_ORDERING", Acts::kTime, "rate of adapters in virtual machines"},
    {"NCCL_SOCKET_NTHREADS", Acts::kTime, "connections of one channel over TCP"},
    {"NCCL_NSOCKS_PERTHREAD", Acts::kTime, "connections of one channel over TCP"},
    {"NCCL_IB_RESILIENCY_PORT_FAILOVER", Acts::kOutage,
     "another port of the adapter takes over when one is lost"},
    {"NCCL_IB_RESILIENCY_PORT_RECOVERY", Acts::kOutage, "a port that is back is used again"},
    {"NCCL_SOCKET_IFNAME", Acts::kBringUp, "interface of bootstrap and sockets", true},
    {"NCCL_SOCKET_FAMILY", Acts::kBringUp, "IPv4 or IPv6 of the interface"},
    {"NCCL_IB_GID_INDEX", Acts::kBringUp, "whether RoCE ports reach each other", true},
    {"NCCL_IB_PKEY", Acts::kBringUp, "entry of the port's partition table", true},
    {"NCCL_IB_TIMEOUT", Acts::kOutage, "when a lost packet becomes an error"},
    {"NCCL_IB_RETRY_CNT", Acts::kOutage, "when a lost packet becomes an error"},
    {"NCCL_SOCKET_RETRY_CNT", Acts::kBringUp, "how long a connection is tried"},
    {"NCCL_SOCKET_RETRY_SLEEP_MSEC", Acts::kBringUp, "how long a connection is tried"},
    {"NCCL_COMM_ID", Acts::kBringUp, "address of the bootstrap root"},
    {"NCCL_DEBUG", Acts::kNowhere, "what is logged"},
    {"NCCL_DEBUG_SUBSYS", Acts::kNowhere, "what is logged"},
    {"NCCL_DEBUG_FILE", Acts::kNowhere, "where it is logged"},
    {"NCCL_CONF_FILE", Acts::kNowhere, "the file is not opened; write its variables in the launch",
     true},
    {"NCCL_TOPO_FILE", Acts::kNowhere, "import the file with rehearse platforms import", true},
    {"NCCL_TOPO_DUMP_FILE", Acts::kNowhere, "what is written down"},
    {"NCCL_GRAPH_FILE", Acts::kNowhere, "import the file with rehearse platforms import", true},
    {"NCCL_GRAPH_DUMP_FILE", Acts::kNowhere, "what is written down"},
    {"NCCL_IGNORE_CPU_AFFINITY", Acts::kNowhere,
     "where threads of the proxy run is not modelled; slow-host says what a bad place costs"},
    {"NCCL_LAUNCH_ORDER_IMPLICIT", Acts::kNowhere,
     "order of launches is the host's, as in the trace; ranks that differ in it hang all the same"},
    {"NCCL_LAUNCH_RACE_FATAL", Acts::kNowhere, "order of launches is the trace's"},
    {"NCCL_RAS_ENABLE", Acts::kObserved, "what a health query says of a hang, since 2.24"},
};

std::string shown(const std::map<std::string, std::string>& env, const std::string& name) {
  const auto at = env.find(name);
  return at == env.end() ? "unset" : in_quotes(at->second);
}

}  // namespace

std::span<const Variable> nccl_variables() { return kVariables; }

const Variable* find_variable(std::string_view name) {
  const auto at = std::find_if(std::begin(kVariables), std::end(kVariables),
                               [&](const Variable& v) { return v.name == name; });
  return at == std::end(kVariables) ? nullptr : at;
}

Findings variable_findings(const Placement& placement) {
  Findings out;
  std::set<std::string> names;
  for (const Member& member : placement.members) {
    for (const auto& [name, value] : member.env) {
      if (name.starts_with("NCCL_")) names.insert(name);
    }
  }
  for (const std::string& name : names) {
    const Variable* known = find_variable(name);
    if (known == nullptr) {
      std::vector<std::string> all;
      for (const Variable& v : kVariables) all.emplace_back(v.name);
      const std::string near = nearest(name, all);
      out.add("nccl-variable-unknown", Severity::kWarning, name,
              near.empty() ? "it changes nothing in the simulation"
                           : "it changes nothing in the simulation; is " + near + " meant?");
    } else if (known->acts == Acts::kNowhere) {
      out.add("nccl-variable-idle", Severity::kInfo, name, known->note);
    }
    const std::string first = shown(placement.members.front().env, name);
    std::vector<uint32_t> others;
    for (const Member& member : placement.members) {
      if (shown(member.env, name) != first) others.push_back(member.rank);
    }
    if (others.empty()) continue;
    const bool harmless = known != nullptr && known->per_node;
    out.add("nccl-environment-differs", harmless ? Severity::kInfo : Severity::kWarning,
            fmt::format("{} is {} on rank {} but not on rank{} {}", name, first,
                        placement.members.front().rank, others.size() == 1 ? "" : "s",
                        format_ranks(others)),
            harmless ? "fine where the nodes name their hardware differently"
                     : "NCCL expects equal settings on all ranks; ranks that decide differently "
                       "hang or corrupt data");
  }
  return out;
}

}  // namespace rehearse::sim
