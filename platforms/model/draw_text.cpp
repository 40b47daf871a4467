// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "base/units.hpp"
#include "platforms/model/draw.hpp"
#include "platforms/model/pcie.hpp"

namespace rehearse::platforms {
namespace {

struct Branch {
  std::string text;
  std::vector<Branch> below;
};

void print(const std::vector<Branch>& branches, const std::string& indent, std::string& out) {
  for (size_t i = 0; i < branches.size(); ++i) {
    const bool last = i + 1 == branches.size();
    out += fmt::format("{}{} {}\n", indent, last ? "└─" : "├─", branches[i].text);
    print(branches[i].below, indent + (last ? "   " : "│  "), out);
  }
}

// Devices and switches below a switch, or at the root complex of a NUMA domain when `parent` is
// empty.
std::vector<Branch> below(const pb::Node& node, const std::string& parent, uint32_t numa,
                          int depth) {
  const auto here = [&](const pb::PcieLink& link) {
    return link.parent() == parent && (!parent.empty() || link.numa() == numa);
  };
  std::vector<Branch> out;
  for (const auto& each : node.switches()) {
    if (!here(each.pcie()) || depth > node.switches_size()) continue;
    out.push_back({fmt::format("{}  {}", each.name(), describe(each.pcie())),
                   below(node, each.name(), numa, depth + 1)});
  }
  for (const auto& each : node.gpus()) {
    if (!here(each.pcie())) continue;
    std::string text = fmt::format("{}  {}", each.name(), describe(each));
    if (bandwidth_of(each.pcie()) > 0) text += ", " + describe(each.pcie());
    if (each.c2c() > 0) text += fmt::format(", C2C {}", format_bandwidth(each.c2c()));
    out.push_back({std::move(text), {}});
  }
  for (const auto& each : node.nics()) {
    if (here(each.pcie())) out.push_back({fmt::format("{}  {}", each.name(), describe(each)), {}});
  }
  return out;
}

std::vector<Branch> nvlinks(const pb::Node& node) {
  std::vector<Branch> out;
  if (node.nvswitch().count() && node.gpus_size()) {
    out.push_back({"NVLink  " + describe_nvswitch(node), {}});
  }
  if (node.nvlinks().empty()) return out;
  Branch direct{"direct links", {}};
  for (int i = 0; i < node.gpus_size(); ++i) {
    std::vector<std::string> peers;
    for (const auto& pair : node.nvlinks()) {
      const bool from = pair.a() == static_cast<uint32_t>(i);
      if (!from && pair.b() != static_cast<uint32_t>(i)) continue;
      peers.push_back(fmt::format(
          "{} x{}", node.gpus(static_cast<int>(from ? pair.b() : pair.a())).name(), pair.links()));
    }
    if (peers.empty()) continue;
    direct.below.push_back(
        {fmt::format("{}  to {} ({} per link)", node.gpus(i).name(), join_words(peers),
                     format_bandwidth(node.gpus(i).nvlink().bandwidth())),
         {}});
  }
  out.push_back(std::move(direct));
  return out;
}

std::string text_of(const pb::FirewallRule& rule) {
  static constexpr const char* kActions[] = {"drop", "reject", "allow"};
  static constexpr const char* kDirections[] = {"", " inbound", " outbound"};
  static constexpr const char* kProtocols[] = {"", " TCP", " UDP"};
  std::string out = kActions[std::clamp<int>(rule.action(), 0, 2)];
  out += kDirections[std::clamp<int>(rule.direction(), 0, 2)];
  out += kProtocols[std::clamp<int>(rule.protocol(), 0, 2)];
  out += rule.ports().empty() ? ", all ports" : ", ports " + rule.ports();
  if (!rule.peer().empty()) out += ", peer " + rule.peer();
  if (!rule.interface().empty()) out += ", on " + rule.interface();
  return out;
}

std::string text_of(const pb::HostRecord& record) {
  return fmt::format("{}  {}", record.name(),
                     record.unanswered()        ? "unanswered"
                     : record.address().empty() ? "unknown"
                                                : record.address());
}

// Firewall, routes and hosts file, where there are any.
std::vector<Branch> ip_rules(const pb::Node& node) {
  std::vector<Branch> out;
  const auto list = [&](const char* title, const auto& from, const auto& text) {
    if (from.empty()) return;
    out.push_back({title, {}});
    for (const auto& each : from) out.back().below.push_back({text(each), {}});
  };
  list("firewall", node.firewall(), [](const pb::FirewallRule& rule) { return text_of(rule); });
  list("routes", node.routes(), [](const pb::Route& route) {
    std::string text = route.destination();
    if (!route.via().empty()) text += " via " + route.via();
    if (!route.interface().empty()) text += " on " + route.interface();
    return text;
  });
  list("hosts file", node.hosts(), [](const pb::HostRecord& each) { return text_of(each); });
  return out;
}

Branch interfaces(const pb::Node& node) {
  Branch out{"interfaces", {}};
  for (const auto& each : node.interfaces()) {
    std::string text = each.name();
    if (each.bandwidth() > 0) text += "  " + format_bandwidth(each.bandwidth());
    for (const auto& address : each.addresses()) text += "  " + address;
    if (each.kind() == pb::CONTAINER) text += "  in a container";
    for (const auto& ports : each.published()) text += "  published " + ports;
    if (each.down()) text += "  down";
    out.below.push_back({std::move(text), {}});
  }
  return out;
}

std::vector<Branch> inside(const pb::Node& node) {
  std::vector<Branch> out;
  out.reserve(static_cast<size_t>(node.numa_size()));
  for (int i = 0; i < node.numa_size(); ++i) {
    out.push_back({fmt::format("numa{}  {}", i, describe(node.numa(i))),
                   below(node, "", static_cast<uint32_t>(i), 0)});
  }
  for (auto& each : nvlinks(node)) out.push_back(std::move(each));
  if (!node.interfaces().empty()) out.push_back(interfaces(node));
  for (auto& each : ip_rules(node)) out.push_back(std::move(each));
  for (const auto& each : node.storage()) {
    out.push_back({fmt::format("{}  read {}, write {}", each.name(), format_bandwidth(each.read()),
                               format_bandwidth(each.write())),
                   {}});
  }
  return out;
}

std::string heading(const pb::Platform& platform, const std::vector<uint32_t>& group) {
  const pb::Node& node = platform.nodes(static_cast<int>(group[0]));
  std::string out = node.name();
  if (group.size() > 1) {
    out = fmt::format("nodes {} ({} alike, shown: {})", format_ranks(group), group.size(),
                      node.name());
  }
  if (!node.model().empty()) out += "  " + node.model();
  if (node.memory()) {
    out += fmt::format(", memory {}, /dev/shm {}", format_bytes(node.memory()),
                       format_bytes(node.shm()));
  }
  if (node.acs()) out += ", ACS on";
  if (node.iommu()) out += ", IOMMU on";
  if (node.virtual_machine()) out += ", virtual machine";
  return out;
}

std::string counted(uint64_t count, const char* what) {
  return fmt::format("{} {}{}", format_count(count), what, count == 1 ? "" : "s");
}

}  // namespace

std::string draw_text(const pb::Platform& expanded) {
  uint64_t gpus = 0, nics = 0;
  for (const auto& node : expanded.nodes()) {
    gpus += static_cast<uint64_t>(node.gpus_size());
    nics += static_cast<uint64_t>(node.nics_size());
  }
  std::string out =
      fmt::format("{}: {}, {}, {}\n", expanded.name().empty() ? "platform" : expanded.name(),
                  counted(static_cast<uint64_t>(expanded.nodes_size()), "node"),
                  counted(gpus, "GPU"), counted(nics, "NIC"));
  std::vector<Branch> top;
  for (const auto& group : alike_nodes(expanded)) {
    top.push_back({heading(expanded, group), inside(expanded.nodes(static_cast<int>(group[0])))});
  }
  top.push_back({"fabric  " + describe_fabric(expanded.fabric()), {}});
  for (const auto& each : expanded.fabric().links()) {
    top.back().below.push_back({each.name() + (each.down() ? "  down" : "  overridden"), {}});
  }
  for (const auto& each : expanded.storage()) {
    top.push_back({fmt::format("{}  shared storage, read {}, write {}", each.name(),
                               format_bandwidth(each.read()), format_bandwidth(each.write())),
                   {}});
  }
  print(top, "", out);
  return out;
}

}  // namespace rehearse::platforms
