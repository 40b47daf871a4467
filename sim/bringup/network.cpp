// SPDX-License-Identifier: Apache-2.0
#include "sim/bringup/network.hpp"

#include <algorithm>
#include <charconv>

namespace rehearse::sim::bringup {
namespace {

// A router that is assumed, not described.
constexpr const char* kAnyway = "any";

bool in_ports(std::string_view range, uint32_t port) {
  if (range.empty()) return true;
  uint32_t first = 0, last = 0;
  const size_t dash = range.find('-');
  const std::string_view low = range.substr(0, dash);
  if (std::from_chars(low.data(), low.data() + low.size(), first).ec != std::errc()) return false;
  last = first;
  if (dash != range.npos) {
    const std::string_view high = range.substr(dash + 1);
    if (std::from_chars(high.data(), high.data() + high.size(), last).ec != std::errc())
      return false;
  }
  return port >= first && port <= last;
}

std::string wire_of(const pb::Interface& face) {
  if (!face.network().empty()) return face.network();
  return face.kind() == pb::LAN ? "lan" : face.name();
}

}  // namespace

Ip link_local_of(uint32_t node) {
  Ip ip = *parse_ip("fe80::");
  for (size_t b = 0; b < 4; ++b) ip.bytes[15 - b] = static_cast<uint8_t>((node + 1) >> 8 * b);
  return ip;
}

namespace {

bool leaves_node(const pb::Interface& face) {
  return face.kind() != pb::LOOPBACK && face.kind() != pb::BRIDGE && face.kind() != pb::CONTAINER;
}

// A packet as one node's firewall sees it.
struct Packet {
  pb::Direction direction;
  const Ip& peer;
  uint32_t port;
  std::string_view interface;
};

// What the first rule that fits says; ALLOW when none does.
pb::Action decide(const pb::Node& node, const Packet& packet) {
  for (const pb::FirewallRule& rule : node.firewall()) {
    if (rule.direction() != pb::BOTH_DIRECTIONS && rule.direction() != packet.direction) continue;
    if (rule.protocol() == pb::FirewallRule::UDP) continue;
    if (!rule.interface().empty() && rule.interface() != packet.interface) continue;
    if (!in_ports(rule.ports(), packet.port)) continue;
    if (!rule.peer().empty()) {
      const auto peers = parse_network(rule.peer());
      if (!peers || !peers->contains(packet.peer)) continue;
    }
    return rule.action();
  }
  return pb::ALLOW;
}

Answer stopped(pb::Action action) {
  return action == pb::REJECT ? Answer::kRefused : Answer::kDropped;
}

const pb::HostRecord* record_of(const google::protobuf::RepeatedPtrField<pb::HostRecord>& records,
                                std::string_view name) {
  const auto at = std::find_if(records.begin(), records.end(),
                               [&](const pb::HostRecord& each) { return each.name() == name; });
  return at == records.end() ? nullptr : &*at;
}

// The address that packets carry as their sender when they leave by this interface.
Ip source_on(const pb::Interface& face, bool v6) {
  for (const std::string& text : face.addresses()) {
    const auto own = parse_network(text);
    if (own && own->ip.v6 == v6) return own->ip;
  }
  return {};
}

}  // namespace

Network::Network(const pb::Platform& platform) : platform_(platform) {
  for (int n = 0; n < platform.nodes_size(); ++n) {
    bool addressed = false;
    for (int i = 0; i < platform.nodes(n).interfaces_size(); ++i) {
      const pb::Interface& face = platform.nodes(n).interfaces(i);
      addressed |=
          face.kind() != pb::LOOPBACK && face.kind() != pb::BRIDGE && !face.addresses().empty();
      if (!leaves_node(face)) continue;
      for (const std::string& text : face.addresses()) {
        if (const auto own = parse_network(text)) {
          owners_[own->ip].push_back({static_cast<uint32_t>(n), static_cast<uint32_t>(i)});
        }
      }
    }
    described_ &= addressed;
  }
}

bool Network::is_up(uint32_t index, uint32_t interface) const {
  const pb::Node& host = node(index);
  const pb::Interface& face = host.interfaces(static_cast<int>(interface));
  if (face.down()) return false;
  // An interface that rides on a port goes down with it.
  return std::none_of(host.nics().begin(), host.nics().end(), [&](const pb::Nic& nic) {
    return nic.down() && nic.interface() == face.name();
  });
}

std::vector<uint32_t> Network::visible(uint32_t index) const {
  const auto& faces = node(index).interfaces();
  const bool contained = std::any_of(faces.begin(), faces.end(), [](const pb::Interface& face) {
    return face.kind() == pb::CONTAINER;
  });
  std::vector<uint32_t> out;
  for (int i = 0; i < faces.size(); ++i) {
    const bool inside = faces[i].kind() == pb::CONTAINER || faces[i].kind() == pb::LOOPBACK;
    const auto interface = static_cast<uint32_t>(i);
    if ((!contained || inside) && is_up(index, interface)) out.push_back(interface);
  }
  return out;
}

std::string Network::own_address(uint32_t index) const {
  const Lookup own = lookup(index, node(index).name());
  if (own.result == Lookup::Result::kFound) return own.address;
  for (const uint32_t i : visible(index)) {
    const pb::Interface& face = node(index).interfaces(static_cast<int>(i));
    if (face.kind() == pb::LOOPBACK || face.addresses().empty()) continue;
    if (const auto ip = parse_network(face.addresses(0))) return to_string(ip->ip);
  }
  return "127.0.0.1";
}

Lookup Network::lookup(uint32_t index, std::string_view name) const {
  if (parse_ip(name)) return {Lookup::Result::kFound, std::string(name), 0};
  if (name == "localhost") return {Lookup::Result::kFound, "127.0.0.1", 0};
  const pb::HostRecord* record = record_of(node(index).hosts(), name);
  if (record == nullptr) record = record_of(platform_.dns(), name);
  if (record == nullptr) return {Lookup::Result::kUnknown, "", 0};
  if (record->unanswered()) return {Lookup::Result::kUnanswered, "", record->delay()};
  if (record->address().empty()) return {Lookup::Result::kUnknown, "", record->delay()};
  return {Lookup::Result::kFound, record->address(), record->delay()};
}

bool Network::is_own(uint32_t index, const Ip& ip) const {
  if (is_loopback(ip) || ip == link_local_of(index)) return true;
  for (const uint32_t i : visible(index)) {
    for (const std::string& text : node(index).interfaces(static_cast<int>(i)).addresses()) {
      const auto own = parse_network(text);
      if (own && own->ip == ip) return true;
    }
  }
  return false;
}

// The longest prefix wins; an interface's own network comes before a written route of equal length.
Network::Hop Network::way(uint32_t from, const Ip& to) const {
  const pb::Node& host = node(from);
  Hop best;
  int longest = -1;
  for (int i = 0; i < host.interfaces_size(); ++i) {
    const auto interface = static_cast<uint32_t>(i);
    if (host.interfaces(i).kind() == pb::LOOPBACK || !is_up(from, interface)) continue;
    for (const std::string& text : host.interfaces(i).addresses()) {
      const auto own = parse_network(text);
      if (!own || !own->contains(to) || own->prefix <= longest) continue;
      longest = own->prefix;
      best = {interface, ""};
    }
  }
  // A router is found through the interface whose network it is in.
  const auto leading_to = [&](const Ip& router) {
    for (int i = 0; i < host.interfaces_size(); ++i) {
      const auto interface = static_cast<uint32_t>(i);
      if (!is_up(from, interface)) continue;
      for (const std::string& text : host.interfaces(i).addresses()) {
        const auto own = parse_network(text);
        if (own && own->contains(router)) return interface;
      }
    }
    return UINT32_MAX;
  };
  for (const pb::Route& route : host.routes()) {
    const bool everything = route.destination() == "default";
    const auto destination = parse_network(route.destination());
    if (!everything && (!destination || !destination->contains(to))) continue;
    const int prefix = everything ? 0 : destination->prefix;
    if (prefix <= longest) continue;
    Hop hop{UINT32_MAX, route.via()};
    if (!route.interface().empty()) {
      for (int i = 0; i < host.interfaces_size(); ++i) {
        if (host.interfaces(i).name() == route.interface())
          hop.interface = static_cast<uint32_t>(i);
      }
    } else if (const auto router = parse_ip(route.via())) {
      hop.interface = leading_to(*router);
    }
    if (hop.interface == UINT32_MAX || !is_up(from, hop.interface)) continue;
    longest = prefix;
    best = hop;
  }
  if (longest >= 0 || !host.routes().empty()) return best;
  // Without routes of its own a node knows the first router of its networks.
  for (int i = 0; i < host.interfaces_size(); ++i) {
    const auto interface = static_cast<uint32_t>(i);
    if (!leaves_node(host.interfaces(i)) || !is_up(from, interface)) continue;
    for (const pb::Network& network : platform_.networks()) {
      if (network.name() != wire_of(host.interfaces(i))) continue;
      for (const std::string& gateway : network.gateways()) {
        const auto router = parse_ip(gateway);
        if (router && router->v6 == to.v6) return {interface, gateway};
      }
    }
  }
  // A platform that says nothing of routers has one in its LAN that knows all networks.
  for (const pb::InterfaceKind kind : {pb::LAN, pb::IPOIB}) {
    for (int i = 0; platform_.networks().empty() && i < host.interfaces_size(); ++i) {
      const auto interface = static_cast<uint32_t>(i);
      if (host.interfaces(i).kind() == kind && is_up(from, interface)) return {interface, kAnyway};
    }
  }
  return best;
}

// Where a packet that leaves by a hop ends, firewalls aside.
Arrival Network::across(uint32_t from, const Hop& hop, const Ip& to) const {
  const pb::Interface& face = node(from).interfaces(static_cast<int>(hop.interface));
  Arrival out{Answer::kNoRoute, UINT32_MAX, hop.interface};
  // A container goes out under the address of its node, by any wire of it.
  const bool translated = face.kind() == pb::CONTAINER;
  if (face.kind() == pb::BRIDGE) return out;
  std::vector<std::string> wires;
  if (translated) {
    for (const pb::Interface& each : node(from).interfaces()) {
      if (leaves_node(each) && !each.down()) wires.push_back(wire_of(each));
    }
  } else if (hop.via.empty()) {
    wires.push_back(wire_of(face));
  } else if (platform_.networks().empty()) {
    const auto known = owners_.find(to);
    for (size_t o = 0; known != owners_.end() && o < known->second.size(); ++o) {
      const Owner& owner = known->second[o];
      wires.push_back(wire_of(node(owner.node).interfaces(static_cast<int>(owner.interface))));
    }
  } else {
    for (const pb::Network& network : platform_.networks()) {
      const auto& gateways = network.gateways();
      if (network.name() != wire_of(face)) continue;
      if (std::find(gateways.begin(), gateways.end(), hop.via) == gateways.end()) continue;
      for (const std::string& other : network.reaches()) {
        for (const pb::Network& each : platform_.networks()) {
          const bool joined = other == "*" || each.name() == other;
          if (joined && !each.gateways().empty()) wires.push_back(each.name());
        }
      }
    }
  }
  const auto owners = owners_.find(to);
  if (owners == owners_.end()) return out;
  for (const Owner& owner : owners->second) {
    const pb::Interface& other = node(owner.node).interfaces(static_cast<int>(owner.interface));
    if (std::find(wires.begin(), wires.end(), wire_of(other)) == wires.end()) continue;
    if (!is_up(owner.node, owner.interface)) continue;
    out.answer = Answer::kArrives;
    out.node = owner.node;
    return out;
  }
  return out;
}

WayKind Network::one_way(uint32_t from, uint32_t to) const {
  WayKind best = WayKind::kNone;
  for (const pb::Interface& face : node(to).interfaces()) {
    if (!leaves_node(face)) continue;
    for (const std::string& text : face.addresses()) {
      const auto address = parse_network(text);
      if (!address || is_link_local(address->ip)) continue;
      const Hop hop = way(from, address->ip);
      if (hop.interface == UINT32_MAX) continue;
      if (across(from, hop, address->ip).answer != Answer::kArrives) continue;
      const WayKind kind = hop.via.empty()      ? WayKind::kDirect
                           : hop.via == kAnyway ? WayKind::kAssumed
                                                : WayKind::kRouted;
      best = std::min(best, kind);
      if (best == WayKind::kDirect) return best;
    }
  }
  return best;
}

WayKind Network::way_between(uint32_t a, uint32_t b) const {
  return std::max(one_way(a, b), one_way(b, a));
}

Arrival Network::knock(uint32_t from, std::string_view address, uint32_t port) const {
  const auto to = parse_ip(address);
  if (!to) return {};
  if (is_own(from, *to)) return {Answer::kArrives, from, UINT32_MAX};
  const Hop hop = way(from, *to);
  if (hop.interface == UINT32_MAX) return {};
  // Without the right zone an address of the wire leads nowhere.
  if (is_link_local(*to) && to->v6) return {Answer::kUnreachable, UINT32_MAX, hop.interface};
  const pb::Interface& face = node(from).interfaces(static_cast<int>(hop.interface));
  if (const pb::Action action = decide(node(from), {pb::OUTBOUND, *to, port, face.name()});
      action != pb::ALLOW) {
    return {stopped(action), from, hop.interface};
  }
  Arrival out = across(from, hop, *to);
  if (out.answer != Answer::kArrives) return out;
  const pb::Node& host = node(out.node);
  const Ip source = source_on(face, to->v6);
  std::string_view entered;
  for (const pb::Interface& each : host.interfaces()) {
    for (const std::string& text : each.addresses()) {
      const auto own = parse_network(text);
      if (own && own->ip == *to) entered = each.name();
    }
  }
  if (const pb::Action action = decide(host, {pb::INBOUND, source, port, entered});
      action != pb::ALLOW) {
    out.answer = stopped(action);
    return out;
  }
  for (const pb::Interface& each : host.interfaces()) {
    if (each.kind() != pb::CONTAINER) continue;
    const bool open = std::any_of(each.published().begin(), each.published().end(),
                                  [&](const std::string& range) { return in_ports(range, port); });
    if (!open) out.answer = Answer::kRefused;
  }
  return out;
}

}  // namespace rehearse::sim::bringup
