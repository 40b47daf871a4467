// SPDX-License-Identifier: Apache-2.0
#include "sim/bringup/interfaces.hpp"

#include <algorithm>
#include <vector>

#include "base/text.hpp"
#include "sim/nccl/networks.hpp"

namespace rehearse::sim::bringup {
namespace {

std::string address_in(const pb::Interface& face, uint32_t node, AddressFamily family) {
  using Family = AddressFamily;
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
  const AddressFamily family = asked_family(env);
  const auto& faces = platform.nodes(static_cast<int>(node)).interfaces();
  std::optional<ChosenInterface> best;
  int lowest = 0;
  for (const uint32_t i : network.visible(node)) {
    const pb::Interface& face = faces[static_cast<int>(i)];
    const int own = interface_class(face.name(), env);
    if (own == kNoClass || (best && own >= lowest)) continue;
    std::string address = address_in(face, node, family);
    if (address.empty()) continue;
    best = ChosenInterface{i, face.name(), std::move(address)};
    lowest = own;
  }
  return best;
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

std::optional<ChosenInterface> mpi_interface(const Network& network, const pb::Platform& platform,
                                             uint32_t node, const MpiFilter& filter) {
  std::optional<ChosenInterface> fallback;
  for (const uint32_t i : network.visible(node)) {
    const pb::Interface& face =
        platform.nodes(static_cast<int>(node)).interfaces(static_cast<int>(i));
    if (face.addresses().empty()) continue;
    const auto own = parse_network(face.addresses(0));
    if (!own) continue;
    const auto named = [&](const std::string& list) {
      const std::vector<std::string> parts = split(list, ',');
      return std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
        const auto told = parse_network(part);
        return part == face.name() || (told && told->contains(own->ip));
      });
    };
    const ChosenInterface here{i, face.name(), to_string(own->ip)};
    if (!filter.include.empty()) {
      if (named(filter.include)) return here;
      continue;
    }
    // A list given by hand replaces the default, which leaves out the loopback.
    if (!filter.exclude.empty() && named(filter.exclude)) continue;
    const bool leads_out = face.kind() != pb::LOOPBACK && face.kind() != pb::BRIDGE;
    if (!filter.exclude.empty() && !leads_out) return here;
    if (leads_out && !fallback) fallback = here;
  }
  return fallback;
}

}  // namespace rehearse::sim::bringup
