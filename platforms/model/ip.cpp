// SPDX-License-Identifier: Apache-2.0
#include "platforms/model/ip.hpp"

#include <fmt/format.h>

#include <set>
#include <unordered_set>

#include "base/text.hpp"
#include "platforms/model/address.hpp"

namespace rehearse::platforms {
namespace {

// The address by which other nodes find this one: the first of a LAN interface, else of IPoIB.
std::string address_of(const pb::Node& node) {
  for (const pb::InterfaceKind kind : {pb::LAN, pb::IPOIB}) {
    for (const auto& each : node.interfaces()) {
      if (each.kind() != kind || each.addresses().empty()) continue;
      return each.addresses(0).substr(0, each.addresses(0).find('/'));
    }
  }
  return {};
}

bool is_address(const std::string& text) {
  return text.find('/') == std::string::npos && parse_cidr(text).has_value();
}

bool has_interface(const pb::Node& node, const std::string& name) {
  for (const auto& each : node.interfaces()) {
    if (each.name() == name) return true;
  }
  return false;
}

Result<void> check_interface_name(const pb::Node& node, const std::string& name,
                                  const std::string& path) {
  if (name.empty() || has_interface(node, name)) return {};
  std::vector<std::string> names;
  for (const auto& each : node.interfaces()) names.push_back(each.name());
  const std::string close = nearest(name, names);
  return bad_input(
      fmt::format("there is no interface '{}' in this node", name), path + ".interface",
      close.empty() ? "add it under interfaces:" : fmt::format("did you mean '{}'?", close));
}

Result<void> check_interfaces(const pb::Node& node, const std::string& path) {
  for (int i = 0; i < node.interfaces_size(); ++i) {
    const auto& each = node.interfaces(i);
    const std::string here = fmt::format("{}.interfaces[{}]", path, i);
    for (int k = 0; k < each.addresses_size(); ++k) {
      if (parse_cidr(each.addresses(k))) continue;
      return bad_input(fmt::format("'{}' is not an address", each.addresses(k)),
                       fmt::format("{}.addresses[{}]", here, k),
                       "write e.g. 10.0.0.{i}/16 or fd00::{i}/64");
    }
    for (int k = 0; k < each.published_size(); ++k) {
      if (!each.published(k).empty() && is_port_range(each.published(k))) continue;
      return bad_input(fmt::format("'{}' is not a range of ports", each.published(k)),
                       fmt::format("{}.published[{}]", here, k), "write e.g. 29500 or 20000-20100");
    }
    if (!each.published().empty() && each.kind() != pb::CONTAINER) {
      return bad_input(
          "only an interface of a container has published ports", here + ".published",
          "write kind: container, or use firewall: to open and close ports of the node");
    }
  }
  return {};
}

Result<void> check_firewall(const pb::Node& node, const std::string& path) {
  for (int i = 0; i < node.firewall_size(); ++i) {
    const auto& rule = node.firewall(i);
    const std::string here = fmt::format("{}.firewall[{}]", path, i);
    if (!is_port_range(rule.ports())) {
      return bad_input(fmt::format("'{}' is not a range of ports", rule.ports()), here + ".ports",
                       "write e.g. 29500 or 1024-65535");
    }
    if (!rule.peer().empty() && !parse_cidr(rule.peer())) {
      return bad_input(fmt::format("'{}' is not a network", rule.peer()), here + ".peer",
                       "write e.g. 10.0.0.0/16");
    }
    if (auto ok = check_interface_name(node, rule.interface(), here); !ok) return ok;
  }
  return {};
}

Result<void> check_routes(const pb::Node& node, const std::string& path) {
  for (int i = 0; i < node.routes_size(); ++i) {
    const auto& route = node.routes(i);
    const std::string here = fmt::format("{}.routes[{}]", path, i);
    if (route.destination() != "default" && !parse_cidr(route.destination())) {
      return bad_input(fmt::format("'{}' is not a network", route.destination()),
                       here + ".destination", "write e.g. 10.0.0.0/16 or default");
    }
    if (!route.via().empty() && !is_address(route.via())) {
      return bad_input(fmt::format("'{}' is not an address", route.via()), here + ".via",
                       "write the router's address, e.g. 10.0.255.254");
    }
    if (route.via().empty() && route.interface().empty()) {
      return bad_input("the route leads nowhere", here, "write via: (a router) or interface:");
    }
    if (auto ok = check_interface_name(node, route.interface(), here); !ok) return ok;
  }
  return {};
}

Result<void> check_records(const google::protobuf::RepeatedPtrField<pb::HostRecord>& records,
                           const std::string& path) {
  for (int i = 0; i < records.size(); ++i) {
    const std::string& address = records.Get(i).address();
    if (records.Get(i).name().empty()) {
      return bad_input("the record has no name", fmt::format("{}[{}].name", path, i),
                       "write the host name that it answers");
    }
    if (address.empty() || is_address(address)) continue;
    return bad_input(fmt::format("'{}' is not an address", address),
                     fmt::format("{}[{}].address", path, i),
                     "write it without prefix, e.g. 10.0.0.1");
  }
  return {};
}

}  // namespace

void add_host_names(pb::Platform& platform) {
  std::unordered_set<std::string> known;
  for (const auto& each : platform.dns()) known.insert(each.name());
  for (const auto& node : platform.nodes()) {
    std::string address = address_of(node);
    if (address.empty() || known.contains(node.name())) continue;
    pb::HostRecord& record = *platform.add_dns();
    record.set_name(node.name());
    record.set_address(std::move(address));
  }
}

void add_default_routes(pb::Platform& platform) {
  if (platform.networks().empty()) return;
  for (auto& node : *platform.mutable_nodes()) {
    if (!node.routes().empty()) continue;
    std::set<bool> families;  // true: IPv6
    for (const auto& interface : node.interfaces()) {
      for (const auto& network : platform.networks()) {
        if (network.name() != interface.network()) continue;
        for (const auto& gateway : network.gateways()) {
          if (!families.insert(gateway.find(':') != std::string::npos).second) continue;
          pb::Route& route = *node.add_routes();
          route.set_destination("default");
          route.set_via(gateway);
          route.set_interface(interface.name());
        }
      }
    }
  }
}

Result<void> check_ip(const pb::Node& node, const std::string& path) {
  if (auto ok = check_interfaces(node, path); !ok) return ok;
  if (auto ok = check_firewall(node, path); !ok) return ok;
  if (auto ok = check_routes(node, path); !ok) return ok;
  if (auto ok = check_records(node.hosts(), path + ".hosts"); !ok) return ok;
  if (!is_port_range(node.ephemeral_ports())) {
    return bad_input(fmt::format("'{}' is not a range of ports", node.ephemeral_ports()),
                     path + ".ephemeral_ports", "write e.g. 32768-60999");
  }
  for (int i = 0; i < node.ports_in_use_size(); ++i) {
    if (node.ports_in_use(i) >= 1 && node.ports_in_use(i) <= 65535) continue;
    return bad_input(fmt::format("{} is not a port", node.ports_in_use(i)),
                     fmt::format("{}.ports_in_use[{}]", path, i), "ports count from 1 to 65535");
  }
  return {};
}

Result<void> check_networks(const pb::Platform& platform, const std::string& where) {
  std::set<std::string> plugged, routed;
  for (const auto& node : platform.nodes()) {
    for (const auto& each : node.interfaces()) plugged.insert(each.network());
  }
  for (int i = 0; i < platform.networks_size(); ++i) {
    const auto& network = platform.networks(i);
    const std::string here = fmt::format("{}: networks[{}]", where, i);
    if (network.name().empty())
      return bad_input("the network has no name", here + ".name", "name it");
    if (!routed.insert(network.name()).second) {
      return bad_input(fmt::format("the network '{}' is written twice", network.name()),
                       here + ".name", "put all its gateways into one entry");
    }
    for (int k = 0; k < network.gateways_size(); ++k) {
      if (is_address(network.gateways(k))) continue;
      return bad_input(fmt::format("'{}' is not an address", network.gateways(k)),
                       fmt::format("{}.gateways[{}]", here, k), "write it without prefix");
    }
  }
  for (int i = 0; i < platform.networks_size(); ++i) {
    const auto& reaches = platform.networks(i).reaches();
    for (int k = 0; k < reaches.size(); ++k) {
      if (reaches[k] == "*" || plugged.contains(reaches[k]) || routed.contains(reaches[k]))
        continue;
      const std::string close =
          nearest(reaches[k], std::vector<std::string>(plugged.begin(), plugged.end()));
      return bad_input(fmt::format("there is no network '{}'", reaches[k]),
                       fmt::format("{}: networks[{}].reaches[{}]", where, i, k),
                       close.empty() ? "networks are named by interfaces[*].network"
                                     : fmt::format("did you mean '{}'?", close));
    }
  }
  return check_records(platform.dns(), where + ": dns");
}

}  // namespace rehearse::platforms
