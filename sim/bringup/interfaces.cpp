// SPDX-License-Identifier: Apache-2.0
#include "sim/bringup/interfaces.hpp"

#include <functional>

#include "base/text.hpp"
#include "sim/nccl/environment.hpp"

namespace rehearse::sim::bringup {
namespace {

enum class Family : uint8_t { kAny, kFour, kSix };

std::string address_in(const pb::Interface& face, uint32_t node, Family family) {
  for (const std::string& text : face.addresses()) {
    const auto own = parse_network(text);
    if (!own) continue;
    if (own->ip.v6 && is_loopback(own->ip)) continue;
    if (family == Family::kAny || own->ip.v6 == (family == Family::kSix)) return to_string(own->ip);
  }
  if (family == Family::kFour || face.kind() == pb::LOOPBACK) return "";
  // The kernel gives each interface an address of its wire.
  return family == Family::kSix ? to_string(link_local_of(node)) : "";
}

}  // namespace

std::optional<ChosenInterface> nccl_interface(const Network& network, const pb::Platform& platform,
                                              uint32_t node,
                                              const std::map<std::string, std::string>& env) {
  const auto value = [&](const char* name) {
    const auto at = env.find(name);
    return at == env.end() ? std::string() : at->second;
  };
  const std::string filter = value("NCCL_SOCKET_IFNAME"), wanted = value("NCCL_SOCKET_FAMILY");
  const Family family = wanted == "AF_INET"    ? Family::kFour
                        : wanted == "AF_INET6" ? Family::kSix
                                               : Family::kAny;
  const auto& faces = platform.nodes(static_cast<int>(node)).interfaces();
  const auto first =
      [&](const std::function<bool(const std::string&)>& fits) -> std::optional<ChosenInterface> {
    for (const uint32_t i : network.visible(node)) {
      const pb::Interface& face = faces[static_cast<int>(i)];
      if (!fits(face.name())) continue;
      std::string address = address_in(face, node, family);
      if (!address.empty()) return ChosenInterface{i, face.name(), std::move(address)};
    }
    return std::nullopt;
  };
  if (!filter.empty()) {
    return first([&](const std::string& name) { return name_allowed(name, filter); });
  }
  const auto docker = [](const std::string& name) { return name.starts_with("docker"); };
  const auto loop = [](const std::string& name) { return name.starts_with("lo"); };
  if (auto found = first([](const std::string& name) { return name.starts_with("ib"); })) {
    return found;
  }
  if (auto found = first([&](const std::string& name) { return !docker(name) && !loop(name); })) {
    return found;
  }
  if (auto found = first(docker)) return found;
  return first(loop);
}

std::optional<ChosenInterface> gloo_interface(const Network& network, const pb::Platform& platform,
                                              uint32_t node, std::string_view wanted) {
  const auto& faces = platform.nodes(static_cast<int>(node)).interfaces();
  const std::string own = wanted.empty() ? network.own_address(node) : "";
  for (const uint32_t i : network.visible(node)) {
    const pb::Interface& face = faces[static_cast<int>(i)];
    for (const std::string& text : face.addresses()) {
      const auto address = parse_network(text);
      if (!address) continue;
      const std::string here = to_string(address->ip);
      if (wanted.empty() ? here == own : face.name() == wanted) {
        return ChosenInterface{i, face.name(), here};
      }
    }
  }
  return std::nullopt;
}

}  // namespace rehearse::sim::bringup
