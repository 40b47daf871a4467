// SPDX-License-Identifier: Apache-2.0
#include "platforms/model/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/text.hpp"
#include "platforms/model/ip.hpp"
#include "platforms/model/pcie.hpp"

namespace rehearse::platforms {
namespace {

Result<void> check_name(const std::string& name, const std::string& path) {
  if (name.empty()) return bad_input("the name is empty", path + ".name", "write a name");
  if (name.find('/') == std::string::npos) return {};
  return bad_input(
      fmt::format("the name '{}' contains '/', which separates the parts of link names", name),
      path + ".name", "write '-' instead");
}

template <typename List>
Result<void> check_names(const List& list, const char* field, const std::string& path) {
  std::unordered_map<std::string_view, int> names;
  for (int i = 0; i < list.size(); ++i) {
    const std::string here = fmt::format("{}.{}[{}]", path, field, i);
    if (auto ok = check_name(list[i].name(), here); !ok) return ok;
    const auto [other, fresh] = names.emplace(list[i].name(), i);
    if (fresh) continue;
    return bad_input(fmt::format("the name '{}' is already that of {}[{}]", list[i].name(), field,
                                 other->second),
                     here + ".name", "give each its own name, or write \"{i}\" in it");
  }
  return {};
}

int find_switch(const pb::Node& node, const std::string& name) {
  for (int i = 0; i < node.switches_size(); ++i) {
    if (node.switches(i).name() == name) return i;
  }
  return -1;
}

Result<void> check_link(const pb::Node& node, const pb::PcieLink& link, const std::string& path) {
  if (link.numa() >= static_cast<uint32_t>(node.numa_size())) {
    return bad_input(
        fmt::format("there is no NUMA domain {}: the node has {}", link.numa(), node.numa_size()),
        path + ".pcie.numa", "count NUMA domains from 0, or add one under numa:");
  }
  if (link.parent().empty() || find_switch(node, link.parent()) >= 0) return {};
  std::vector<std::string> names;
  for (const auto& each : node.switches()) names.push_back(each.name());
  const std::string close = nearest(link.parent(), names);
  return bad_input(fmt::format("there is no PCIe switch '{}' in this node", link.parent()),
                   path + ".pcie.parent",
                   !close.empty() ? fmt::format("did you mean '{}'?", close)
                   : names.empty()
                       ? "add it under switches:, or leave parent out for the root complex"
                       : fmt::format("switches are {}", join_words(names)));
}

Result<void> check_pcie(const pb::Node& node, const std::string& path) {
  for (int i = 0; i < node.switches_size(); ++i) {
    const std::string here = fmt::format("{}.switches[{}]", path, i);
    if (auto ok = check_link(node, node.switches(i).pcie(), here); !ok) return ok;
  }
  for (int i = 0; i < node.switches_size(); ++i) {
    int at = i;
    for (int steps = 0; !node.switches(at).pcie().parent().empty(); ++steps) {
      if (steps > node.switches_size()) {
        return bad_input(fmt::format("PCIe switch '{}' is above itself", node.switches(i).name()),
                         fmt::format("{}.switches[{}].pcie.parent", path, i),
                         "leave parent out for the switch at the root complex");
      }
      at = find_switch(node, node.switches(at).pcie().parent());
    }
  }
  for (int i = 0; i < node.gpus_size(); ++i) {
    if (auto ok = check_link(node, node.gpus(i).pcie(), fmt::format("{}.gpus[{}]", path, i)); !ok) {
      return ok;
    }
  }
  for (int i = 0; i < node.nics_size(); ++i) {
    if (auto ok = check_link(node, node.nics(i).pcie(), fmt::format("{}.nics[{}]", path, i)); !ok) {
      return ok;
    }
  }
  return {};
}

Result<void> check_nvlink(const pb::Node& node, const std::string& path) {
  std::vector<uint32_t> used(node.gpus_size());
  for (int i = 0; i < node.nvlinks_size(); ++i) {
    const auto& pair = node.nvlinks(i);
    const std::string here = fmt::format("{}.nvlinks[{}]", path, i);
    for (const auto& [gpu, end] : {std::pair{pair.a(), "a"}, std::pair{pair.b(), "b"}}) {
      if (gpu >= used.size()) {
        return bad_input(fmt::format("there is no GPU {}: the node has {}", gpu, used.size()),
                         fmt::format("{}.{}", here, end), "count GPUs from 0");
      }
      used[gpu] += pair.links();
      if (node.gpus(static_cast<int>(gpu)).nvlink().bandwidth() == 0) {
        return bad_input(fmt::format("GPU {} has no NVLink bandwidth", gpu),
                         fmt::format("{}.{}", here, end),
                         fmt::format("write gpus[{}].nvlink.generation or .bandwidth", gpu));
      }
    }
    if (pair.a() == pair.b()) {
      return bad_input(fmt::format("GPU {} is joined to itself", pair.a()), here + ".b",
                       "name two different GPUs");
    }
  }
  for (int i = 0; i < node.gpus_size(); ++i) {
    const auto& gpu = node.gpus(i);
    const std::string here = fmt::format("{}.gpus[{}]", path, i);
    if (gpu.nvlink().links() && used[i] > gpu.nvlink().links()) {
      return bad_input(fmt::format("the pairs use {} NVLinks of a GPU that has {}", used[i],
                                   gpu.nvlink().links()),
                       here + ".nvlink.links", "correct nvlinks: or the number of links");
    }
    const bool switched = node.nvswitch().count() && gpu.nvlink().links();
    if (switched && gpu.nvlink().bandwidth() == 0) {
      return bad_input("the NVLinks have no bandwidth", here + ".nvlink.bandwidth",
                       "write nvlink.generation or nvlink.bandwidth");
    }
    if (!switched && !used[i] && gpu.c2c() == 0 && bandwidth_of(gpu.pcie()) == 0) {
      return bad_input(
          fmt::format("nothing leads to GPU '{}': it has neither PCIe nor NVLink", gpu.name()),
          here + ".pcie", "write pcie: {generation: 4, width: 16}, or like: a catalogue GPU");
    }
  }
  return {};
}

Result<void> check_nics(const pb::Node& node, const std::string& path) {
  for (int i = 0; i < node.nics_size(); ++i) {
    const auto& nic = node.nics(i);
    const std::string here = fmt::format("{}.nics[{}]", path, i);
    if (!(nic.bandwidth() > 0)) {
      return bad_input(
          fmt::format("NIC '{}' has no bandwidth", nic.name()), here + ".bandwidth",
          "write the rate of one port, e.g. 200Gbps; write down: true for a dead port");
    }
    if (nic.interface().empty()) continue;
    std::vector<std::string> names;
    bool found = false;
    for (const auto& each : node.interfaces()) {
      names.push_back(each.name());
      found = found || each.name() == nic.interface();
    }
    if (!found) {
      const std::string close = nearest(nic.interface(), names);
      return bad_input(
          fmt::format("there is no interface '{}' in this node", nic.interface()),
          here + ".interface",
          close.empty() ? "add it under interfaces:" : fmt::format("did you mean '{}'?", close));
    }
  }
  return {};
}

}  // namespace

Result<void> check_addresses(const pb::Node& node, const std::string& path) {
  if (auto ok = check_name(node.name(), path); !ok) return ok;
  return check_ip(node, path);
}

Result<void> check_devices(const pb::Node& node, const std::string& path) {
  if (auto ok = check_names(node.switches(), "switches", path); !ok) return ok;
  if (auto ok = check_names(node.gpus(), "gpus", path); !ok) return ok;
  if (auto ok = check_names(node.nics(), "nics", path); !ok) return ok;
  if (auto ok = check_names(node.interfaces(), "interfaces", path); !ok) return ok;
  if (auto ok = check_names(node.storage(), "storage", path); !ok) return ok;
  if (auto ok = check_pcie(node, path); !ok) return ok;
  if (auto ok = check_nvlink(node, path); !ok) return ok;
  return check_nics(node, path);
}

Result<void> check_between(const pb::Platform& platform, const std::string& where) {
  std::unordered_map<std::string_view, int> names, addresses;
  for (int n = 0; n < platform.nodes_size(); ++n) {
    const auto& node = platform.nodes(n);
    const auto [other, fresh] = names.emplace(node.name(), n);
    if (!fresh) {
      return bad_input(
          fmt::format("the name '{}' is already that of nodes[{}]", node.name(), other->second),
          fmt::format("{}: nodes[{}].name", where, n), "write \"{i}\" in the name");
    }
    for (int i = 0; i < node.interfaces_size(); ++i) {
      const auto& interface = node.interfaces(i);
      if (interface.kind() == pb::BRIDGE || interface.kind() == pb::LOOPBACK ||
          interface.kind() == pb::CONTAINER)
        continue;
      for (int k = 0; k < interface.addresses_size(); ++k) {
        const std::string_view text = interface.addresses(k);
        const auto [owner, first] = addresses.emplace(text.substr(0, text.find('/')), n);
        if (first) continue;
        return bad_input(
            fmt::format("the address {} is already that of nodes[{}]", owner->first, owner->second),
            fmt::format("{}: nodes[{}].interfaces[{}].addresses[{}]", where, n, i, k),
            "write \"{i}\" in the address (and \"{k}\" where the interface has a count)");
      }
    }
  }
  return {};
}

}  // namespace rehearse::platforms
