// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "platforms/model/pcie.hpp"
#include "platforms/model/topology.hpp"

namespace rehearse::platforms {
namespace {

// Bytes around the data of one packet: InfiniBand has local route, base
// transport and two checks (IBTA vol. 1, 5.2); RoCE v2 has Ethernet with
// preamble and gap, IPv4, UDP, base transport and check.
constexpr double kInfinibandAround = 8 + 12 + 4 + 2;
constexpr double kRoceAround = 8 + 14 + 4 + 12 + 20 + 8 + 12 + 4;
constexpr double kUsualPacket = 4096;

double payload_share(const pb::Nic& nic) {
  if (nic.kind() != pb::INFINIBAND && nic.kind() != pb::ROCE) return 1;
  const double around = nic.kind() == pb::ROCE ? kRoceAround : kInfinibandAround;
  const double size = nic.mtu() == 0 ? kUsualPacket : nic.mtu();
  return std::min(1.0, size / (size + around) * (kUsualPacket + around) / kUsualPacket);
}

class NodeBuilder {
 public:
  NodeBuilder(const pb::Platform& platform, uint32_t index, Draft& draft)
      : node_(platform.nodes(static_cast<int>(index))),
        hop_(platform.fabric().hop_latency()),
        index_(index),
        draft_(draft) {}

  Result<void> run() {
    out_.first = static_cast<LinkId>(draft_.links.size());
    out_.acs = node_.acs();
    add_numa();
    if (auto ok = add_switches(); !ok) return ok;
    if (auto ok = add_gpus(); !ok) return ok;
    if (auto ok = add_pairs(); !ok) return ok;
    if (auto ok = add_nics(); !ok) return ok;
    add_interfaces();
    for (const auto& each : node_.storage()) {
      out_.storage.push_back(
          {add(LinkKind::kStorage, each.write(), each.latency(), each.name(), "write"),
           add(LinkKind::kStorage, each.read(), each.latency(), each.name(), "read")});
    }
    out_.last = static_cast<LinkId>(draft_.links.size());
    draft_.topology.node_names.emplace(node_.name(), index_);
    draft_.topology.nodes.push_back(std::move(out_));
    return {};
  }

 private:
  LinkId add(LinkKind kind, BytesPerSec capacity, Nanos latency, std::string_view device,
             std::string_view part) {
    return draft_.add({.name = fmt::format("{}/{}/{}", node_.name(), device, part),
                       .kind = kind,
                       .capacity = capacity,
                       .latency = latency,
                       .node = index_,
                       .down = false});
  }

  Duplex add_duplex(LinkKind kind, BytesPerSec capacity, std::string_view device,
                    std::string_view part) {
    return {add(kind, capacity, 0, device, fmt::format("{}-out", part)),
            add(kind, capacity, 0, device, fmt::format("{}-in", part))};
  }

  tl::unexpected<Error> bad(std::string what, std::string place, std::string fix) {
    return fail(Code::kBadInput, std::move(what), fmt::format("nodes[{}].{}", index_, place),
                std::move(fix));
  }

  void add_numa() {
    for (int i = 0; i < node_.numa_size(); ++i) {
      const auto& each = node_.numa(i);
      const std::string name = fmt::format("numa{}", i);
      NumaTopology numa;
      numa.host = add(LinkKind::kHost, each.memory_bandwidth(), 0, name, "host");
      if (node_.numa_size() > 1) {
        numa.socket = add_duplex(LinkKind::kHost, each.interconnect(), name, "socket");
      }
      out_.numa.push_back(numa);
    }
  }

  // The element without its own links: parent and root port.
  Result<Element> place(const pb::PcieLink& link, const std::string& path) {
    Element element;
    element.numa = link.numa();
    if (!link.parent().empty()) {
      for (int i = 0; i < node_.switches_size(); ++i) {
        if (node_.switches(i).name() == link.parent()) element.parent = static_cast<uint32_t>(i);
      }
      if (element.parent == kNone) {
        return bad(fmt::format("there is no PCIe switch '{}' in this node", link.parent()),
                   path + ".pcie.parent", "name one of switches:, or leave it empty");
      }
    }
    if (element.numa >= out_.numa.size()) {
      return bad(fmt::format("there is no NUMA domain {}: the node has {}", element.numa,
                             out_.numa.size()),
                 path + ".pcie.numa", "count NUMA domains from 0");
    }
    return element;
  }

  void wire(Element& element, const pb::PcieLink& link, std::string_view name) {
    const BytesPerSec capacity = bandwidth_of(link);
    if (capacity == 0) return;
    element.up = add(LinkKind::kPcie, capacity, 0, name, "pcie-up");
    element.down = add(LinkKind::kPcie, capacity, 0, name, "pcie-down");
  }

  Result<void> add_switches() {
    for (int i = 0; i < node_.switches_size(); ++i) {
      const auto& each = node_.switches(i);
      RH_TRY(Element element, place(each.pcie(), fmt::format("switches[{}]", i)));
      wire(element, each.pcie(), each.name());
      out_.switches.push_back(element);
    }
    for (size_t i = 0; i < out_.switches.size(); ++i) {
      size_t at = i, steps = 0;
      while (out_.switches[at].parent != kNone) {
        at = out_.switches[at].parent;
        if (++steps > out_.switches.size()) {
          return bad("a PCIe switch is above itself", fmt::format("switches[{}].pcie.parent", i),
                     "leave parent out for the switch at the root complex");
        }
      }
      out_.switches[i].numa = out_.switches[at].numa;
    }
    return {};
  }

  void below(Element& element) {
    if (element.parent != kNone) element.numa = out_.switches[element.parent].numa;
  }

  Result<void> add_gpus() {
    for (int i = 0; i < node_.gpus_size(); ++i) {
      const auto& each = node_.gpus(i);
      RH_TRY(Element element, place(each.pcie(), fmt::format("gpus[{}]", i)));
      below(element);
      wire(element, each.pcie(), each.name());
      Element host = element;
      if (each.c2c() > 0) {
        const Duplex c2c = add_duplex(LinkKind::kC2c, each.c2c(), each.name(), "c2c");
        host = {c2c.out, c2c.in, kNone, element.numa};
        if (element.up == kNoLink) element = host;
      }
      out_.gpus.push_back(element);
      out_.gpu_host.push_back(host);
      Duplex nvlink;
      if (node_.nvswitch().count() && each.nvlink().links()) {
        nvlink = add_duplex(LinkKind::kNvlink, each.nvlink().links() * each.nvlink().bandwidth(),
                            each.name(), "nvlink");
      }
      out_.nvlink.push_back(nvlink);
    }
    return {};
  }

  Result<void> add_pairs() {
    for (int i = 0; i < node_.nvlinks_size(); ++i) {
      const auto& pair = node_.nvlinks(i);
      const auto gpus = static_cast<uint32_t>(node_.gpus_size());
      if (pair.a() >= gpus || pair.b() >= gpus || pair.a() == pair.b()) {
        return bad("an NVLink does not join two GPUs of the node", fmt::format("nvlinks[{}]", i),
                   fmt::format("GPUs count from 0 to {}", gpus - 1));
      }
      if (pair.links() == 0) continue;
      const auto join = [&](uint32_t from, uint32_t to) {
        const auto& a = node_.gpus(static_cast<int>(from));
        const auto& b = node_.gpus(static_cast<int>(to));
        if (a.nvlink().links() == 0 || b.nvlink().links() == 0) return;
        const BytesPerSec one = std::min(a.nvlink().bandwidth(), b.nvlink().bandwidth());
        const auto known =
            std::find_if(out_.pairs.begin(), out_.pairs.end(),
                         [&](const NvlinkTo& p) { return p.from == from && p.to == to; });
        if (known != out_.pairs.end()) {
          draft_.links[known->link].capacity += pair.links() * one;
          return;
        }
        out_.pairs.push_back({from, to,
                              add(LinkKind::kNvlink, pair.links() * one, 0,
                                  fmt::format("{}-{}", a.name(), b.name()), "nvlink")});
      };
      join(pair.a(), pair.b());
      join(pair.b(), pair.a());
    }
    std::sort(out_.pairs.begin(), out_.pairs.end(), [](const NvlinkTo& x, const NvlinkTo& y) {
      return std::pair(x.from, x.to) < std::pair(y.from, y.to);
    });
    return {};
  }

  // The first NIC of the same adapter; itself when there is none before it.
  int first_port(int nic) {
    const std::string& adapter = node_.nics(nic).adapter();
    for (int i = 0; i < nic && !adapter.empty(); ++i) {
      if (node_.nics(i).adapter() == adapter) return i;
    }
    return nic;
  }

  Result<void> add_nics() {
    for (int i = 0; i < node_.nics_size(); ++i) {
      const auto& each = node_.nics(i);
      RH_TRY(Element element, place(each.pcie(), fmt::format("nics[{}]", i)));
      below(element);
      const int first = first_port(i);
      if (first < i) {
        element.up = out_.nics[static_cast<size_t>(first)].up;
        element.down = out_.nics[static_cast<size_t>(first)].down;
      } else {
        wire(element, each.pcie(), each.name());
      }
      out_.nics.push_back(element);
      const Duplex port = {
          add(LinkKind::kNic, each.bandwidth(), each.latency() + hop_, each.name(), "tx"),
          add(LinkKind::kNic, each.bandwidth(), each.latency(), each.name(), "rx")};
      draft_.links[port.out].down = draft_.links[port.in].down = each.down();
      draft_.links[port.out].payload = draft_.links[port.in].payload = payload_share(each);
      out_.ports.push_back(port);
    }
    return {};
  }

  void add_interfaces() {
    for (int i = 0; i < node_.interfaces_size(); ++i) {
      const auto& each = node_.interfaces(i);
      InterfaceTopology interface;
      if (each.kind() == pb::LAN && out_.lan == kNone) out_.lan = static_cast<uint32_t>(i);
      for (int n = 0; n < node_.nics_size(); ++n) {
        if (node_.nics(n).interface() == each.name()) interface.nic = static_cast<uint32_t>(n);
      }
      if (interface.nic == kNone && (each.kind() == pb::LAN || each.kind() == pb::IPOIB)) {
        interface.wire = {add(LinkKind::kInterface, each.bandwidth(), 0, each.name(), "tx"),
                          add(LinkKind::kInterface, each.bandwidth(), 0, each.name(), "rx")};
        draft_.links[interface.wire.out].down = draft_.links[interface.wire.in].down = each.down();
      }
      out_.interfaces.push_back(interface);
    }
  }

  const pb::Node& node_;
  Nanos hop_;
  uint32_t index_;
  Draft& draft_;
  NodeTopology out_;
};

}  // namespace

Result<void> add_node(const pb::Platform& platform, uint32_t index, Draft& draft) {
  return NodeBuilder(platform, index, draft).run();
}

}  // namespace rehearse::platforms
