// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/variables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.hpp"
#include "sim/nccl/environment.hpp"
#include "sim/nccl/settings.hpp"

namespace rehearse::sim {
namespace {

constexpr Variable kVariables[] = {
    {"NCCL_ALGO", Acts::kDecision, "which algorithms are candidates", false, Form::kSelection},
    {"NCCL_PROTO", Acts::kDecision, "which protocols are candidates", false, Form::kSelection},
    {"NCCL_BUFFSIZE", Acts::kDecision, "chunk of SIMPLE; small ones show latency", false,
     Form::kNumber, "4194304"},
    {"NCCL_LL_BUFFSIZE", Acts::kDecision, "chunk of LL", false, Form::kNumber, "524288"},
    {"NCCL_LL128_BUFFSIZE", Acts::kDecision, "chunk of LL128", false, Form::kNumber, "4915200"},
    {"NCCL_MIN_NCHANNELS", Acts::kDecision, "least channels"},
    {"NCCL_MAX_NCHANNELS", Acts::kDecision, "most channels"},
    {"NCCL_MIN_NRINGS", Acts::kDecision, "older name of NCCL_MIN_NCHANNELS"},
    {"NCCL_MAX_NRINGS", Acts::kDecision, "older name of NCCL_MAX_NCHANNELS"},
    {"NCCL_MIN_CTAS", Acts::kDecision, "least channels"},
    {"NCCL_MAX_CTAS", Acts::kDecision, "most channels"},
    {"NCCL_NTHREADS", Acts::kDecision, "threads of a block: what a channel carries; small calls give up channels later"},
    {"NCCL_LL128_NTHREADS", Acts::kDecision, "threads of a block in LL128"},
    {"NCCL_THREAD_THRESHOLDS", Acts::kDecision,
     "bytes per thread below which channels are given up", false, Form::kText},
    {"NCCL_NVLS_ENABLE", Acts::kDecision, "NVLink SHARP", false, Form::kNumber, "2"},
    {"NCCL_NVLS_NCHANNELS", Acts::kDecision, "channels of NVLS"},
    {"NCCL_NVLS_CHUNKSIZE", Acts::kDecision, "chunk of NVLS", false, Form::kNumber, "131072"},
    {"NCCL_NVLSTREE_MAX_CHUNKSIZE", Acts::kDecision, "chunk of NVLSTree"},
    {"NCCL_COLLNET_ENABLE", Acts::kDecision, "SHARP in the network, where a plugin offers it",
     false, Form::kNumber, "0"},
    {"NCCL_COLLNET_NODE_THRESHOLD", Acts::kDecision, "least nodes for CollNet", false,
     Form::kNumber, "2"},
    {"NCCL_PAT_ENABLE", Acts::kDecision, "PAT", false, Form::kNumber, "2"},
    {"NCCL_LL128_C2C", Acts::kDecision, "LL128 beyond PXB on Hopper", false, Form::kNumber, "1"},
    {"NCCL_NET_OVERHEAD", Acts::kDecision, "latency that NCCL counts for a post"},
    {"NCCL_CTA_POLICY", Acts::kDecision, "fewer channels with registered buffers"},
    {"NCCL_MIN_P2P_NCHANNELS", Acts::kDecision, "least channels of send and recv"},
    {"NCCL_MAX_P2P_NCHANNELS", Acts::kDecision, "most channels of send and recv"},
    {"NCCL_NCHANNELS_PER_NET_PEER", Acts::kDecision, "channels of a send to another node"},
    {"NCCL_P2P_NET_CHUNKSIZE", Acts::kDecision, "chunk of send and recv between nodes", false,
     Form::kNumber, "131072"},
    {"NCCL_P2P_PCI_CHUNKSIZE", Acts::kDecision, "chunk of send and recv over PCIe", false,
     Form::kNumber, "131072"},
    {"NCCL_P2P_NVL_CHUNKSIZE", Acts::kDecision, "chunk of send and recv over NVLink", false,
     Form::kNumber, "524288"},
    {"NCCL_CHUNK_SIZE", Acts::kDecision, "chunk of send and recv"},
    {"NCCL_P2P_LL_THRESHOLD", Acts::kDecision, "largest send in LL", false, Form::kNumber, "16384"},
    {"NCCL_ALLOC_P2P_NET_LL_BUFFERS", Acts::kDecision, "LL for sends between nodes", false,
     Form::kNumber, "0"},
    {"NCCL_P2P_DISABLE", Acts::kTransport, "no direct way between GPUs", false, Form::kNumber, "0"},
    {"NCCL_P2P_LEVEL", Acts::kTransport, "how far apart GPUs may be for a direct way", false,
     Form::kText},
    {"NCCL_SHM_DISABLE", Acts::kTransport, "no shared memory: the network inside a node", false,
     Form::kNumber, "0"},
    {"NCCL_NET", Acts::kTransport, "IB, Socket or a plugin", false, Form::kWord},
    {"NCCL_IB_DISABLE", Acts::kTransport, "sockets instead of RDMA", false, Form::kNumber, "0"},
    {"NCCL_NET_GDR_LEVEL", Acts::kTransport, "how far an adapter may be for GPUDirect RDMA", false,
     Form::kText},
    {"NCCL_CROSS_NIC", Acts::kTransport, "whether a ring may change rails", false, Form::kNumber,
     "2"},
    {"NCCL_IB_HCA", Acts::kTransport, "which adapters are used", true, Form::kText},
    {"NCCL_PXN_DISABLE", Acts::kTransport, "no way through another GPU's adapter", false,
     Form::kNumber, "0"},
    {"NCCL_PXN_C2C", Acts::kTransport, "PXN through a coherent link", false, Form::kNumber, "1"},
    {"NCCL_P2P_PXN_LEVEL", Acts::kTransport, "PXN for send and recv", false, Form::kNumber, "2"},
    {"NCCL_NVB_DISABLE", Acts::kTransport, "no way through another GPU's NVLink", false,
     Form::kNumber, "0"},
    {"NCCL_NETDEVS_POLICY", Acts::kTransport, "adapters of one GPU", false, Form::kWord},
    {"NCCL_NET_DISABLE_INTRA", Acts::kTransport,
     "no network inside a node, even where it is faster than the GPUs' own way", false,
     Form::kNumber, "0"},
    {"NCCL_NET_GDR_C2C", Acts::kTransport, "GPUDirect RDMA through a coherent link", false,
     Form::kNumber, "1"},
    {"NCCL_MNNVL_ENABLE", Acts::kTransport, "NVLink between nodes", false, Form::kNumber, "2"},
    {"NCCL_CUMEM_ENABLE", Acts::kTransport, "without it no NVLink between nodes"},
    {"NCCL_DMABUF_ENABLE", Acts::kTransport, "GPUDirect RDMA where it is the only way", false,
     Form::kNumber, "1"},
    {"NCCL_NET_GDR_READ", Acts::kTransport, "whether sends go straight from GPU memory"},
    {"NCCL_IB_MERGE_NICS", Acts::kTransport, "ports of one adapter are one device", false,
     Form::kNumber, "1"},
    {"NCCL_IB_SL", Acts::kTime, "class of traffic on InfiniBand, where the fabric has classes"},
    {"NCCL_IB_TC", Acts::kTime, "class of traffic on RoCE, where the fabric has classes"},
    {"NCCL_IB_QPS_PER_CONNECTION", Acts::kTime, "paths of a connection where switches hash", false,
     Form::kNumber, "1"},
    {"NCCL_IB_SPLIT_DATA_ON_QPS", Acts::kTime, "whether short transfers use all queue pairs", false,
     Form::kNumber, "0"},
    {"NCCL_IB_ADAPTIVE_ROUTING", Acts::kTime, "packets are spread where the fabric can"},
    {"NCCL_IB_AR_THRESHOLD", Acts::kTime, "messages that are too small to be spread", false,
     Form::kNumber, "8192"},
    {"NCCL_IB_PCI_RELAXED_ORDERING", Acts::kTime, "rate of adapters in virtual machines", false,
     Form::kNumber, "2"},
    {"NCCL_SOCKET_NTHREADS", Acts::kTime, "connections of one channel over TCP"},
    {"NCCL_NSOCKS_PERTHREAD", Acts::kTime, "connections of one channel over TCP"},
    {"NCCL_IB_RESILIENCY_PORT_FAILOVER", Acts::kOutage,
     "another port of the adapter takes over when one is lost", false, Form::kNumber, "0"},
    {"NCCL_IB_RESILIENCY_PORT_RECOVERY", Acts::kOutage, "a port that is back is used again", false,
     Form::kNumber, "0"},
    {"NCCL_SOCKET_IFNAME", Acts::kBringUp, "interface of bootstrap and sockets", true, Form::kText},
    {"NCCL_SOCKET_FAMILY", Acts::kBringUp, "IPv4 or IPv6 of the interface", false, Form::kText},
    {"NCCL_IB_GID_INDEX", Acts::kBringUp, "whether RoCE ports reach each other", true,
     Form::kNumber, "-1"},
    {"NCCL_IB_PKEY", Acts::kBringUp, "entry of the port's partition table", true, Form::kNumber,
     "0"},
    {"NCCL_IB_TIMEOUT", Acts::kOutage, "when a lost packet becomes an error"},
    {"NCCL_IB_RETRY_CNT", Acts::kOutage, "when a lost packet becomes an error", false,
     Form::kNumber, "7"},
    {"NCCL_SOCKET_RETRY_CNT", Acts::kBringUp, "how long a connection is tried", false,
     Form::kNumber, "34"},
    {"NCCL_SOCKET_RETRY_SLEEP_MSEC", Acts::kBringUp, "how long a connection is tried", false,
     Form::kNumber, "100"},
    {"NCCL_COMM_ID", Acts::kNowhere, "the root is where rank 0 is, as a framework's own id says",
     false, Form::kText},
    {"NCCL_TUNER_PLUGIN", Acts::kNowhere, "what a plugin makes of NCCL's table is its own", false,
     Form::kText},
    {"NCCL_NET_PLUGIN", Acts::kNowhere, "the network follows from adapters and NCCL_NET", false,
     Form::kText},
    {"NCCL_P2P_READ_ENABLE", Acts::kNowhere, "reads and writes of peers take the same time here"},
    {"NCCL_SHM_LOCALITY", Acts::kNowhere, "host buffers are on the receiver's side, as by default"},
    {"NCCL_NET_FORCE_FLUSH", Acts::kNowhere, "a flush is part of the latency of a hop"},
    {"NCCL_RUNTIME_CONNECT", Acts::kNowhere, "what a healthy start costs is not simulated"},
    {"NCCL_OOB_NET_ENABLE", Acts::kNowhere, "the bootstrap uses sockets, as by default"},
    {"NCCL_UID_STAGGER_RATE", Acts::kNowhere, "what a healthy start costs is not simulated"},
    {"NCCL_UID_STAGGER_THRESHOLD", Acts::kNowhere, "what a healthy start costs is not simulated"},
    {"NCCL_DEBUG", Acts::kObserved, "what is logged", false, Form::kWord},
    {"NCCL_DEBUG_SUBSYS", Acts::kObserved, "what is logged", false, Form::kWord},
    {"NCCL_DEBUG_FILE", Acts::kObserved, "where it is logged", false, Form::kText},
    {"NCCL_CONF_FILE", Acts::kDecision,
     "sets what the environment does not: a file of launch.files", true, Form::kText},
    {"NCCL_TOPO_FILE", Acts::kTransport, "what NCCL takes the node for: a file of launch.files",
     true, Form::kText},
    {"NCCL_TOPO_DUMP_FILE", Acts::kObserved, "what is written down", false, Form::kText},
    {"NCCL_GRAPH_FILE", Acts::kTransport, "channels instead of a search: a file of launch.files",
     true, Form::kText},
    {"NCCL_GRAPH_DUMP_FILE", Acts::kObserved, "what is written down", false, Form::kText},
    {"NCCL_IGNORE_CPU_AFFINITY", Acts::kTime,
     "NCCL's threads leave the cores that the process was given (launch.ranks[].cpus) for all that "
     "are near the GPU",
     false, Form::kNumber, "0"},
    {"NCCL_LAUNCH_ORDER_IMPLICIT", Acts::kTime,
     "since 2.26: with CUDA older than 12.3 calls of different communicators run one after another",
     false, Form::kNumber, "0"},
    {"NCCL_LAUNCH_RACE_FATAL", Acts::kObserved,
     "what threads that launch at once would end with, under "
     "NCCL_LAUNCH_ORDER_IMPLICIT",
     false, Form::kNumber, "1"},
    {"NCCL_RAS_ENABLE", Acts::kObserved, "what a health query says of a hang, since 2.24", false,
     Form::kNumber, "1"},
};

std::string selection_meaning(std::string_view name, std::string_view value) {
  const auto settings = parse_settings({{std::string(name), std::string(value)}}, NcclVersion{});
  if (!settings) return "refused: " + lower_case(value);
  std::string out;
  const auto add = [&](const auto& table) {
    for (const auto& row : table) {
      for (const Switch each : row) out += std::to_string(static_cast<int>(each));
    }
  };
  add(settings->algorithms);
  add(settings->protocols);
  return out;
}

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

std::string meaning_of(std::string_view name, std::string_view value) {
  const Variable* known = find_variable(name);
  if (known == nullptr) return std::string(value);
  switch (known->form) {
    case Form::kText:
      return std::string(value);
    case Form::kWord:
      return lower_case(value);
    case Form::kSelection:
      return selection_meaning(name, value);
    case Form::kNumber:
      break;
  }
  const auto read = read_number(value);
  // -2 asks for the default in every NCCL variable.
  if (!read || (read->value == -2 && !known->usual.empty())) return std::string(known->usual);
  return std::to_string(read->value);
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
      std::string near = nearest(name, all);
      // A slip of the pen, not another variable of NCCL.
      if (edit_distance(name, near) > name.size() / 8 + 1) near.clear();
      out.add("nccl-variable-unknown", Severity::kWarning, name,
              near.empty() ? "it changes nothing in the simulation"
                           : "it changes nothing in the simulation; is " + near + " meant?");
    } else if (known->acts == Acts::kNowhere) {
      out.add("nccl-variable-idle", Severity::kWarning, name,
              fmt::format("it changes nothing in the simulation: {}", known->note));
    }
    const std::string first = variable_in(placement.members.front().env, name);
    const std::string meant = meaning_of(name, first);
    std::vector<uint32_t> others;
    for (const Member& member : placement.members) {
      const std::string own = variable_in(member.env, name);
      if (own != first && meaning_of(name, own) != meant) others.push_back(member.rank);
    }
    if (others.empty()) continue;
    const bool harmless = known != nullptr && known->per_node;
    out.add("nccl-environment-differs", harmless ? Severity::kInfo : Severity::kWarning,
            fmt::format("{} is {} on rank {} but not on rank{} {}", name,
                        shown(placement.members.front().env, name), placement.members.front().rank,
                        others.size() == 1 ? "" : "s", format_ranks(others)),
            harmless ? "fine where the nodes name their hardware differently"
                     : "NCCL expects equal settings on all ranks; ranks that decide differently "
                       "hang or corrupt data");
  }
  return out;
}

}  // namespace rehearse::sim
