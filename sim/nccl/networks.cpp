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

bool drives(NetworkLibrary library, pb::NicKind kind) {
  switch (library) {
    case NetworkLibrary::kIb:
      return kind == pb::INFINIBAND || kind == pb::ROCE;
    case NetworkLibrary::kLibfabric:
      return kind == pb::EFA || kind == pb::SLINGSHOT;
    case NetworkLibrary::kAny:
      return kind != pb::ETHERNET && kind != pb::NIC_KIND_UNSPECIFIED;
    default:
      return false;
  }
}

// What a rank can do with an adapter, best last.
enum class Use : uint8_t { kNoRdma, kOtherLibrary, kDown, kSwitchedOff, kFilteredOut, kUsable };

Use use_of(const pb::Nic& nic, const Environment& env) {
  if (!is_rdma(nic)) return Use::kNoRdma;
  if (!drives(asked_network(env), nic.kind())) return Use::kOtherLibrary;
  if (drives(NetworkLibrary::kIb, nic.kind()) && verbs_disabled(env)) return Use::kSwitchedOff;
  if (nic.down()) return Use::kDown;
  return passes_hca_filter(nic, env) ? Use::kUsable : Use::kFilteredOut;
}

Use best_use(const pb::Node& node, const Environment& env) {
  Use best = Use::kNoRdma;
  for (const pb::Nic& nic : node.nics()) best = std::max(best, use_of(nic, env));
  return best;
}

bool has_family(const pb::Interface& face, AddressFamily family) {
  if (family == AddressFamily::kAny) return true;
  const bool six = family == AddressFamily::kSix;
  return std::any_of(
      face.addresses().begin(), face.addresses().end(),
      [&](const std::string& each) { return (each.find(':') != std::string::npos) == six; });
}

}  // namespace

NetworkLibrary asked_network(const Environment& env) {
  const std::string name = variable_in(env, "NCCL_NET");
  if (name.empty()) return NetworkLibrary::kAny;
  if (equal_ignoring_case(name, "IB")) return NetworkLibrary::kIb;
  if (equal_ignoring_case(name, "Socket")) return NetworkLibrary::kSocket;
  for (const char* other : {"AWS Libfabric", "Libfabric", "OFI"}) {
    if (equal_ignoring_case(name, other)) return NetworkLibrary::kLibfabric;
  }
  return NetworkLibrary::kUnknown;
}

bool verbs_disabled(const Environment& env) { return whole_number(env, "NCCL_IB_DISABLE", 0) != 0; }

bool is_rdma(const pb::Nic& nic) { return drives(NetworkLibrary::kAny, nic.kind()); }

bool passes_hca_filter(const pb::Nic& nic, const Environment& env) {
  return drives(NetworkLibrary::kLibfabric, nic.kind()) ||
         hca_allowed(nic.name(), variable_in(env, "NCCL_IB_HCA"));
}

std::string network_refusal(const pb::Node& node, const Environment& env) {
  const NetworkLibrary library = asked_network(env);
  if (library == NetworkLibrary::kAny || library == NetworkLibrary::kSocket) return "";
  if (library == NetworkLibrary::kUnknown) return "no network or plugin has this name";
  switch (best_use(node, env)) {
    case Use::kUsable:
      return "";
    case Use::kSwitchedOff:
      return fmt::format("NCCL_IB_DISABLE={} switches it off", variable_in(env, "NCCL_IB_DISABLE"));
    case Use::kDown:
      return fmt::format("the adapters of node {} are down", node.name());
    case Use::kFilteredOut:
      return fmt::format("NCCL_IB_HCA={} fits no adapter of node {}",
                         variable_in(env, "NCCL_IB_HCA"), node.name());
    default:
      return fmt::format("node {} has no adapter for it", node.name());
  }
}

Result<void> check_network(const pb::Node& node, const Environment& env, uint32_t rank) {
  const std::string why = network_refusal(node, env);
  if (why.empty()) return {};
  const bool unknown = asked_network(env) == NetworkLibrary::kUnknown;
  return fail(
      Code::kBadInput,
      fmt::format("Error: network {} not found: {}", variable_in(env, "NCCL_NET"), why),
      fmt::format("NCCL_NET of rank {}", rank),
      unknown
          ? "write IB or Socket, the name of a plugin for adapters of the node (AWS Libfabric), or "
            "unset it"
          : "unset NCCL_NET, or correct the node's adapters and the variables that choose them");
}

std::vector<uint32_t> usable_adapters(const pb::Node& node, const Environment& env) {
  std::vector<uint32_t> out;
  for (int n = 0; n < node.nics_size(); ++n) {
    if (use_of(node.nics(n), env) == Use::kUsable) out.push_back(static_cast<uint32_t>(n));
  }
  return out;
}

std::string rdma_refusal(const pb::Node& node, const Environment& env) {
  const auto said = [&](const char* name) {
    return fmt::format("{}={}", name, variable_in(env, name));
  };
  switch (best_use(node, env)) {
    case Use::kUsable:
      return "";
    case Use::kFilteredOut:
      return said("NCCL_IB_HCA") + " matches no adapter";
    case Use::kSwitchedOff:
      return said("NCCL_IB_DISABLE");
    case Use::kDown:
      return "all RDMA adapters are down";
    case Use::kOtherLibrary:
      return said("NCCL_NET");
    case Use::kNoRdma:
      break;
  }
  return "no RDMA adapter";
}

int interface_class(std::string_view name, const Environment& env) {
  const std::string filter = variable_in(env, "NCCL_SOCKET_IFNAME");
  if (!filter.empty()) return name_allowed(name, filter) ? 0 : kNoClass;
  if (name.starts_with("ib")) return 0;
  if (name.starts_with("docker")) return kDockerClass;
  return name.starts_with("lo") ? kDockerClass + 1 : 1;
}

AddressFamily asked_family(const Environment& env) {
  const std::string family = variable_in(env, "NCCL_SOCKET_FAMILY");
  if (family == "AF_INET") return AddressFamily::kFour;
  return family == "AF_INET6" ? AddressFamily::kSix : AddressFamily::kAny;
}

std::vector<uint32_t> usable_interfaces(const pb::Node& node, const Environment& env) {
  constexpr size_t kMostInterfaces = 16;
  const AddressFamily family = asked_family(env);
  std::array<std::vector<uint32_t>, kDockerClass> classes;
  for (int i = 0; i < node.interfaces_size(); ++i) {
    const pb::Interface& face = node.interfaces(i);
    if (face.down() || !has_family(face, family)) continue;
    // An interface that rides on a port goes down with it.
    const bool dead_port = std::any_of(
        node.nics().begin(), node.nics().end(),
        [&](const pb::Nic& nic) { return nic.down() && nic.interface() == face.name(); });
    if (dead_port) continue;
    const int own = interface_class(face.name(), env);
    if (own == kNoClass || own >= kDockerClass) continue;
    classes[static_cast<size_t>(own)].push_back(static_cast<uint32_t>(i));
  }
  std::vector<uint32_t>& out = classes[0].empty() ? classes[1] : classes[0];
  if (out.size() > kMostInterfaces) out.resize(kMostInterfaces);
  return out;
}

}  // namespace rehearse::sim
