// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/networks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/nccl/environment.hpp"
#include "sim/nccl/names.hpp"

namespace rehearse::sim {
namespace {

using Environment = std::map<std::string, std::string>;

std::string setting(const Environment& env, const char* name) {
  const auto at = env.find(name);
  return at == env.end() ? "" : at->second;
}

// "IB" and "Socket" are NCCL's own; the others are names that public plugins give themselves, by the
// adapters they drive.
enum class Library : uint8_t { kIb, kSocket, kLibfabric, kUnknown };

Library library_named(const std::string& name) {
  if (equal_ignoring_case(name, "IB")) return Library::kIb;
  if (equal_ignoring_case(name, "Socket")) return Library::kSocket;
  for (const char* other : {"AWS Libfabric", "Libfabric", "OFI"}) {
    if (equal_ignoring_case(name, other)) return Library::kLibfabric;
  }
  return Library::kUnknown;
}

bool drives(Library library, pb::NicKind kind) {
  switch (library) {
    case Library::kIb:
      return kind == pb::INFINIBAND || kind == pb::ROCE;
    case Library::kLibfabric:
      return kind == pb::EFA || kind == pb::SLINGSHOT;
    default:
      return false;
  }
}

// The filter is that of the verbs library; plugins do not read it.
bool is_allowed(const pb::Nic& nic, const Environment& env) {
  if (!drives(Library::kIb, nic.kind())) return true;
  return hca_allowed(nic.name(), setting(env, "NCCL_IB_HCA"));
}

bool has_family(const pb::Interface& face, const std::string& family) {
  if (family.empty()) return true;
  const bool six = equal_ignoring_case(family, "AF_INET6");
  return std::any_of(
      face.addresses().begin(), face.addresses().end(),
      [&](const std::string& each) { return (each.find(':') != std::string::npos) == six; });
}

}  // namespace

bool is_rdma(const pb::Nic& nic) {
  return nic.kind() != pb::ETHERNET && nic.kind() != pb::NIC_KIND_UNSPECIFIED;
}

Result<void> check_network(const pb::Node& node, const Environment& env, uint32_t rank) {
  const std::string name = setting(env, "NCCL_NET");
  if (name.empty()) return {};
  const Library library = library_named(name);
  if (library == Library::kSocket) return {};
  for (const pb::Nic& nic : node.nics()) {
    if (drives(library, nic.kind())) return {};
  }
  const std::string where = fmt::format("NCCL_NET of rank {}", rank);
  if (library == Library::kUnknown) {
    return fail(Code::kBadInput, fmt::format("Error: network {} not found.", name), where,
                "write IB or Socket, the name of a plugin for adapters of the node "
                "(AWS Libfabric), or unset it");
  }
  return fail(
      Code::kBadInput,
      fmt::format("Error: network {} not found: node {} has no adapter for it", name, node.name()),
      where, "unset NCCL_NET, or correct the node's adapters");
}

std::string rdma_refusal(const pb::Node& node, const Environment& env) {
  const std::string net = setting(env, "NCCL_NET");
  const Library library = net.empty() ? Library::kUnknown : library_named(net);
  if (library == Library::kSocket) return "NCCL_NET=" + net;
  const std::string off = setting(env, "NCCL_IB_DISABLE");
  const bool verbs_off = !off.empty() && off != "0";
  bool any = false, up = false, allowed = false, switched_off = false;
  for (const pb::Nic& nic : node.nics()) {
    if (!is_rdma(nic)) continue;
    any = true;
    if (verbs_off && drives(Library::kIb, nic.kind())) {
      switched_off = true;
      continue;
    }
    if (nic.down()) continue;
    up = true;
    allowed |= is_allowed(nic, env);
  }
  if (!any) return "no RDMA adapter";
  if (!up && switched_off) return "NCCL_IB_DISABLE=" + off;
  if (!up) return "all RDMA adapters are down";
  if (!allowed) return "NCCL_IB_HCA=" + setting(env, "NCCL_IB_HCA") + " matches no adapter";
  return "";
}

std::vector<uint32_t> usable_adapters(const pb::Node& node, const Environment& env) {
  std::vector<uint32_t> out;
  for (int n = 0; n < node.nics_size(); ++n) {
    const pb::Nic& nic = node.nics(n);
    if (is_rdma(nic) && !nic.down() && is_allowed(nic, env)) {
      out.push_back(static_cast<uint32_t>(n));
    }
  }
  return out;
}

std::vector<uint32_t> usable_interfaces(const pb::Node& node, const Environment& env) {
  constexpr size_t kMostInterfaces = 16;
  const std::string filter = setting(env, "NCCL_SOCKET_IFNAME");
  const std::string family = setting(env, "NCCL_SOCKET_FAMILY");
  std::vector<uint32_t> infiniband, others;
  for (int i = 0; i < node.interfaces_size(); ++i) {
    const pb::Interface& face = node.interfaces(i);
    if (face.down() || !has_family(face, family)) continue;
    // An interface that rides on a port goes down with it.
    const bool dead_port = std::any_of(
        node.nics().begin(), node.nics().end(),
        [&](const pb::Nic& nic) { return nic.down() && nic.interface() == face.name(); });
    if (dead_port) continue;
    if (!filter.empty()) {
      if (!name_allowed(face.name(), filter)) continue;
    } else if (face.kind() == pb::LOOPBACK || face.kind() == pb::BRIDGE) {
      continue;
    }
    const bool ib = filter.empty() && face.kind() == pb::IPOIB;
    (ib ? infiniband : others).push_back(static_cast<uint32_t>(i));
  }
  std::vector<uint32_t>& out = infiniband.empty() ? others : infiniband;
  if (out.size() > kMostInterfaces) out.resize(kMostInterfaces);
  return out;
}

}  // namespace rehearse::sim
