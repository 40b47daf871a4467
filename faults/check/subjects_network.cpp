// SPDX-License-Identifier: Apache-2.0
// Subjects of the network: interfaces, adapters, and the filters that choose among them.
#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <map>

#include "base/text.hpp"
#include "faults/check/subjects.hpp"
#include "faults/check/usual.hpp"
#include "platforms/model/address.hpp"
#include "sim/bringup/network.hpp"
#include "sim/nccl/environment.hpp"
#include "sim/nccl/networks.hpp"

namespace rehearse::faults {
namespace {

// The first `prefix` bits of an address, or "" when it is none.
std::string network_of(const std::string& address) {
  const auto cidr = platforms::parse_cidr(address);
  if (!cidr) return {};
  std::array<unsigned char, 16> bytes{};
  if (inet_pton(cidr->bits == 32 ? AF_INET : AF_INET6, cidr->address.c_str(), bytes.data()) != 1)
    return {};
  for (int bit = cidr->prefix; bit < 128; ++bit) {
    bytes[static_cast<size_t>(bit / 8)] &= static_cast<unsigned char>(~(0x80 >> (bit % 8)));
  }
  return fmt::format("{}/{}:", cidr->bits, cidr->prefix) + std::string(bytes.begin(), bytes.end());
}

bool can_leave(const pb::Interface& interface) {
  return !interface.down() && interface.kind() != pb::LOOPBACK && interface.kind() != pb::BRIDGE;
}

bool same_network(const pb::Interface& a, const pb::Interface& b) {
  if (!a.network().empty() || !b.network().empty()) return a.network() == b.network();
  for (const std::string& left : a.addresses()) {
    for (const std::string& right : b.addresses()) {
      if (const std::string network = network_of(left);
          !network.empty() && network == network_of(right))
        return true;
    }
  }
  return false;
}

// Does every other node of the job have an interface on the same network? Unknown without addresses.
Value reaches_others(const Facts& facts, size_t from, const pb::Interface& interface) {
  if (!can_leave(interface)) return "false";
  const pb::Platform& platform = facts.document().platform();
  for (size_t n = 0; n < facts.nodes(); ++n) {
    if (n == from) continue;
    const auto& others = platform.nodes(static_cast<int>(n)).interfaces();
    if (others.empty() || (interface.addresses().empty() && interface.network().empty()))
      return std::nullopt;
    const bool met = std::any_of(others.begin(), others.end(), [&](const pb::Interface& other) {
      return can_leave(other) && same_network(interface, other);
    });
    if (!met) return "false";
  }
  return "true";
}

bool passes_exactly(const std::string& list, const std::string& name) {
  const auto words = split(list, ',');
  return std::find(words.begin(), words.end(), name) != words.end();
}

struct FilterVariable {
  const char* name;
  bool like_nccl;
};

constexpr FilterVariable kFilters[] = {{"NCCL_SOCKET_IFNAME", true},
                                       {"GLOO_SOCKET_IFNAME", false},
                                       {"TP_SOCKET_IFNAME", false},
                                       {"HOROVOD_GLOO_IFACE", false},
                                       {"OMPI_MCA_btl_tcp_if_include", false},
                                       {"OMPI_MCA_oob_tcp_if_include", false}};

// Does the job's framework look at it? True where the framework is not known.
bool read_here(const Facts& facts, std::string_view variable) {
  const Value framework = facts.get({}, "framework");
  if (!framework) return true;
  if (variable.starts_with("GLOO_") || variable.starts_with("TP_")) return *framework == "pytorch";
  return !variable.starts_with("HOROVOD_") || *framework == "horovod";
}

std::string number_or_empty(double value) { return value > 0 ? number_text(value) : ""; }

void put_known(FactMap& out, const char* name, const std::string& value) {
  if (!value.empty()) out[name] = value;
}

FactMap filter_facts(const Facts& facts, size_t node, const FilterVariable& variable,
                     const std::string& value) {
  const auto& interfaces = facts.document().platform().nodes(static_cast<int>(node)).interfaces();
  FactMap out{{"filter.variable", variable.name}, {"filter.value", value}};
  const pb::Interface* first = nullptr;
  std::string names, all;
  int matches = 0;
  double fastest = 0;
  for (const pb::Interface& interface : interfaces) {
    all += (all.empty() ? "" : ", ") + interface.name();
    const Value reaches = reaches_others(facts, node, interface);
    if (can_leave(interface) && reaches == "true") {
      fastest = std::max(fastest, interface.bandwidth());
      if (out.count("filter.suggestion") == 0 || interface.bandwidth() >= fastest) {
        out["filter.suggestion"] = interface.name();
      }
    }
    const bool chosen = variable.like_nccl ? sim::name_allowed(interface.name(), value)
                                           : passes_exactly(value, interface.name());
    if (!chosen) continue;
    ++matches;
    names += (names.empty() ? "" : ", ") + interface.name();
    // Excluding filters leave what the library would not take by itself.
    const bool excluding = value.starts_with('^');
    if (excluding && (interface.kind() == pb::LOOPBACK || interface.kind() == pb::BRIDGE)) continue;
    if (first == nullptr || (first->down() && !interface.down())) first = &interface;
  }
  out["filter.matches"] = std::to_string(matches);
  put_known(out, "filter.names", names);
  put_known(out, "filter.all", all);
  put_known(out, "filter.fastest", number_or_empty(fastest));
  if (first != nullptr) {
    out["filter.kind"] = enum_word(*pb::InterfaceKind_descriptor(), first->kind());
    out["filter.up"] = first->down() ? "false" : "true";
    put_known(out, "filter.bandwidth", number_or_empty(first->bandwidth()));
    if (const Value reaches = reaches_others(facts, node, *first)) out["filter.reaches"] = *reaches;
  }
  return out;
}

FactMap adapter_filter_facts(const pb::Node& node, const std::string& value) {
  int matches = 0, active = 0, left_out = 0;
  std::string names, down, all;
  for (const pb::Nic& nic : node.nics()) {
    all += (all.empty() ? "" : ", ") + nic.name();
    const bool usable = !nic.down() && nic.kind() != pb::ETHERNET;
    if (!sim::passes_hca_filter(nic, {{"NCCL_IB_HCA", value}})) {
      left_out += usable ? 1 : 0;
      continue;
    }
    ++matches;
    active += usable ? 1 : 0;
    names += (names.empty() ? "" : ", ") + nic.name();
    if (nic.down()) down += (down.empty() ? "" : ", ") + nic.name();
  }
  FactMap out{{"hca.value", value},
              {"hca.matches", std::to_string(matches)},
              {"hca.active", std::to_string(active)},
              {"hca.left_out", std::to_string(left_out)}};
  put_known(out, "hca.names", names);
  put_known(out, "hca.down", down);
  put_known(out, "hca.all", all);
  // What names of one family have in common, "mlx5" of mlx5_0 and mlx5_1.
  if (node.nics_size() > 0) {
    const std::string& name = node.nics(0).name();
    out["hca.suggestion"] = name.substr(0, name.find_first_of("_0123456789", 4));
  }
  return out;
}

}  // namespace

void list_interface_filters(const Facts& facts, const pb::CheckTables&, const Emit& emit) {
  for (size_t r = 0; r < facts.ranks(); ++r) {
    const size_t node = facts.node_of(r);
    if (node >= facts.nodes() ||
        facts.document().platform().nodes(static_cast<int>(node)).interfaces().empty())
      continue;
    for (const FilterVariable& variable : kFilters) {
      const auto at = facts.environment(r).find(variable.name);
      if (at == facts.environment(r).end() || !read_here(facts, variable.name)) continue;
      emit({.node = node, .rank = r}, filter_facts(facts, node, variable, at->second));
    }
  }
}

void list_adapter_filters(const Facts& facts, const pb::CheckTables&, const Emit& emit) {
  for (size_t r = 0; r < facts.ranks(); ++r) {
    const size_t node = facts.node_of(r);
    const auto at = facts.environment(r).find("NCCL_IB_HCA");
    if (node >= facts.nodes() || at == facts.environment(r).end()) continue;
    const pb::Node& machine = facts.document().platform().nodes(static_cast<int>(node));
    if (machine.nics_size() == 0) continue;
    emit({.node = node, .rank = r}, adapter_filter_facts(machine, at->second));
  }
}

void list_interfaces(const Facts& facts, const pb::CheckTables&, const Emit& emit) {
  const pb::Platform& platform = facts.document().platform();
  std::map<std::string, std::vector<uint32_t>> mtus;             // by name of the interface
  std::map<std::string, std::pair<size_t, std::string>> owners;  // by address: node and its name
  for (const pb::Node& node : platform.nodes()) {
    for (const pb::Interface& each : node.interfaces()) {
      if (each.mtu() > 0) mtus[each.name()].push_back(each.mtu());
    }
  }
  for (size_t n = 0; n < facts.nodes(); ++n) {
    const pb::Node& node = platform.nodes(static_cast<int>(n));
    for (const pb::Interface& each : node.interfaces()) {
      FactMap extra{{"interface.name", each.name()},
                    {"interface.kind", enum_word(*pb::InterfaceKind_descriptor(), each.kind())},
                    {"interface.down", each.down() ? "true" : "false"}};
      if (each.mtu() > 0) {
        extra["interface.mtu"] = std::to_string(each.mtu());
        extra["interface.usual_mtu"] = std::to_string(usual(mtus[each.name()]));
      }
      put_known(extra, "interface.bandwidth", number_or_empty(each.bandwidth()));
      for (const std::string& address : each.addresses()) {
        if (each.kind() == pb::LOOPBACK || each.kind() == pb::BRIDGE) break;
        const std::string plain = address.substr(0, address.find('/'));
        const auto [at, fresh] = owners.emplace(plain, std::pair{n, node.name()});
        extra["interface.address"] = plain;
        if (!fresh && at->second.first != n) extra["interface.taken_by"] = at->second.second;
      }
      emit({.node = n, .rank = {}}, std::move(extra));
    }
  }
}

namespace {

std::string networks_of(const pb::Node& node) {
  std::string out;
  for (const pb::Interface& each : node.interfaces()) {
    if (!can_leave(each)) continue;
    for (const std::string& address : each.addresses()) {
      out += (out.empty() ? "" : ", ") + each.name() + " " + address;
    }
  }
  return out;
}

const char* word_of(sim::bringup::WayKind kind) {
  switch (kind) {
    case sim::bringup::WayKind::kDirect:
      return "direct";
    case sim::bringup::WayKind::kRouted:
      return "routed";
    case sim::bringup::WayKind::kAssumed:
      return "assumed";
    default:
      return "none";
  }
}

}  // namespace

// From each node to the one of the first rank; nothing where one of the two has no addresses.
void list_ways(const Facts& facts, const pb::CheckTables&, const Emit& emit) {
  const size_t first = facts.ranks() > 0 ? facts.node_of(0) : facts.nodes();
  if (first >= facts.nodes()) return;
  const pb::Platform& platform = facts.document().platform();
  const sim::bringup::Network network(platform);
  const std::string theirs = networks_of(platform.nodes(static_cast<int>(first)));
  for (size_t n = 0; n < facts.nodes(); ++n) {
    const std::string own = networks_of(platform.nodes(static_cast<int>(n)));
    if (n == first || own.empty() || theirs.empty()) continue;
    const auto kind = network.way_between(static_cast<uint32_t>(n), static_cast<uint32_t>(first));
    emit({.node = n, .rank = {}}, {{"way.kind", word_of(kind)},
                                   {"way.to", platform.nodes(static_cast<int>(first)).name()},
                                   {"way.own", own},
                                   {"way.others", theirs}});
  }
}

void list_adapters(const Facts& facts, const pb::CheckTables&, const Emit& emit) {
  const pb::Platform& platform = facts.document().platform();
  struct Column {
    std::vector<double> bandwidth;
    std::vector<uint32_t> mtu, gid;
    std::vector<int> rail;
    std::vector<std::string> name;
  };
  std::map<int, Column> columns;  // by index
  for (const pb::Node& node : platform.nodes()) {
    for (int i = 0; i < node.nics_size(); ++i) {
      const pb::Nic& nic = node.nics(i);
      Column& column = columns[i];
      column.bandwidth.push_back(nic.bandwidth());
      column.mtu.push_back(nic.mtu());
      column.gid.push_back(nic.gid_index());
      column.rail.push_back(nic.has_rail() ? nic.rail() : i);
      column.name.push_back(nic.name());
    }
  }
  for (size_t n = 0; n < facts.nodes(); ++n) {
    const pb::Node& node = platform.nodes(static_cast<int>(n));
    const bool infiniband =
        std::any_of(node.nics().begin(), node.nics().end(),
                    [](const pb::Nic& nic) { return nic.kind() == pb::INFINIBAND && !nic.down(); });
    for (int i = 0; i < node.nics_size(); ++i) {
      const pb::Nic& nic = node.nics(i);
      const Column& column = columns[i];
      FactMap extra{{"nic.index", std::to_string(i)},
                    {"nic.name", nic.name()},
                    {"nic.kind", enum_word(*pb::NicKind_descriptor(), nic.kind())},
                    {"nic.down", nic.down() ? "true" : "false"},
                    {"nic.beside_infiniband", infiniband ? "true" : "false"},
                    {"nic.gpudirect", nic.gpudirect() ? "true" : "false"},
                    {"nic.rail", std::to_string(nic.has_rail() ? nic.rail() : i)},
                    {"nic.usual_rail", std::to_string(usual(column.rail))},
                    {"nic.usual_name", usual(column.name)}};
      put_known(extra, "nic.bandwidth", number_or_empty(nic.bandwidth()));
      put_known(extra, "nic.usual_bandwidth", number_or_empty(usual(column.bandwidth)));
      put_known(extra, "nic.mtu", number_or_empty(nic.mtu()));
      put_known(extra, "nic.usual_mtu", number_or_empty(usual(column.mtu)));
      put_known(extra, "nic.gid_index", number_or_empty(nic.gid_index()));
      put_known(extra, "nic.usual_gid_index", number_or_empty(usual(column.gid)));
      emit({.node = n, .rank = {}}, std::move(extra));
    }
  }
}

}  // namespace rehearse::faults
