// SPDX-License-Identifier: Apache-2.0
#include "sim/host/open_mpi.hpp"

#include <algorithm>
#include <bit>

namespace rehearse::sim {
namespace {

using traces::Collective;

// Sizes at which the fixed decision changes its algorithm, bytes.
constexpr Bytes kSmallAllReduce = 10000;
constexpr Bytes kSmallBroadcast = 2048;

// Priors: latencies of a message by RDMA, by TCP and through shared memory; what one TCP connection
// and one copying core carry; the rate at which one core adds floats from memory.
constexpr double kRdmaUs = 3;
constexpr double kTcpUs = 30;
constexpr double kSharedUs = 1;
constexpr BytesPerSec kMpiTcpStream = 2.5e9;
constexpr BytesPerSec kSharedStream = 8e9;
constexpr BytesPerSec kMpiReduction = 5e9;

std::string value_of(const Member& member, const char* name) {
  const auto at = member.env.find(name);
  return at == member.env.end() ? "" : at->second;
}

// "-mca btl tcp,self" and "-mca pml ob1 -mca btl ^openib" leave TCP.
bool tcp_only(const Member& member) {
  const std::string btl = value_of(member, "OMPI_MCA_btl");
  const std::string pml = value_of(member, "OMPI_MCA_pml");
  const bool excluded = btl.starts_with('^') && btl.find("openib") != std::string::npos;
  const bool listed = !btl.empty() && !btl.starts_with('^') &&
                      btl.find("openib") == std::string::npos &&
                      btl.find("uct") == std::string::npos;
  return pml != "ucx" && (listed || (excluded && pml == "ob1"));
}

uint32_t rdma_adapter(const pb::Node& node) {
  for (int n = 0; n < node.nics_size(); ++n) {
    const pb::Nic& nic = node.nics(n);
    const bool rdma = nic.kind() != pb::ETHERNET && nic.kind() != pb::NIC_KIND_UNSPECIFIED;
    if (rdma && !nic.down()) return static_cast<uint32_t>(n);
  }
  return UINT32_MAX;
}

}  // namespace

HostPlan mpi_plan(const traces::Call& call, uint32_t members) {
  const double n = std::max(1U, members);
  const Bytes size = std::max(call.bytes_in, call.bytes_out);
  const auto bytes = static_cast<double>(size);
  const auto log2 = static_cast<int64_t>(std::bit_width(std::max(1U, members) - 1));
  const auto others = static_cast<int64_t>(members) - 1;
  const uint32_t root = static_cast<uint32_t>(std::max(0, call.peer)) % std::max(1U, members);
  switch (call.collective) {
    case Collective::kAllGather:
      return {"MPI/RING", HostPattern::kRing, others, bytes * (n - 1) / n, false, 0};
    case Collective::kReduceScatter:
      return {"MPI/RING", HostPattern::kRing, others, bytes * (n - 1) / n, true, 0};
    case Collective::kBroadcast:
    case Collective::kReduce: {
      const bool reduces = call.collective == Collective::kReduce;
      if (size < kSmallBroadcast) {
        return {"MPI/BINOMIAL", HostPattern::kTree, log2, bytes, reduces, root};
      }
      return {"MPI/PIPELINE", HostPattern::kRing, others, bytes, reduces, 0};
    }
    case Collective::kAllToAll:
      return {"MPI/PAIRWISE", HostPattern::kPairs, others, bytes / n, false, 0};
    case Collective::kGather:
    case Collective::kScatter:
      return {"MPI/LINEAR", HostPattern::kRoot, others, bytes / n, false, root};
    case Collective::kBarrier:
      return {"MPI/RECURSIVE_DOUBLING", HostPattern::kRing, log2, 0, false, 0};
    default:
      if (size < kSmallAllReduce) {
        return {"MPI/RECURSIVE_DOUBLING",
                HostPattern::kRing,
                log2,
                bytes * static_cast<double>(log2),
                true,
                0};
      }
      return {"MPI/RING", HostPattern::kRing, 2 * others, bytes * 2 * (n - 1) / n, true, 0};
  }
}

Result<HostWires> mpi_wires(const ModelContext& context, const Placement& placement) {
  HostWires wires{true, {}, kRdmaUs, kSharedUs, 0, kSharedStream, kMpiReduction};
  for (const LocalGroup& group : placement.groups) {
    const pb::Node& node = context.platform.nodes(static_cast<int>(group.node));
    const uint32_t adapter = rdma_adapter(node);
    wires.rdma &= adapter != UINT32_MAX && !tcp_only(placement.members[group.members.front()]);
    wires.port.push_back(adapter);
  }
  if (wires.rdma) return wires;
  wires.port.clear();
  wires.message_us = kTcpUs;
  wires.stream = kMpiTcpStream;
  for (const LocalGroup& group : placement.groups) {
    const pb::Node& node = context.platform.nodes(static_cast<int>(group.node));
    const uint32_t face = host_interface(
        node, value_of(placement.members[group.members.front()], "OMPI_MCA_btl_tcp_if_include"));
    if (face == UINT32_MAX && placement.groups.size() > 1) {
      return fail(Code::kBadInput, "no IP interface is usable for MPI", node.name(),
                  "check OMPI_MCA_btl_tcp_if_include and the node's interfaces");
    }
    wires.port.push_back(face);
  }
  return wires;
}

}  // namespace rehearse::sim
