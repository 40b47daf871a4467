// SPDX-License-Identifier: Apache-2.0
#include "platforms/model/devices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "platforms/model/address.hpp"
#include "platforms/model/pcie.hpp"

namespace rehearse::platforms {
namespace {

constexpr BytesPerSec kAssumedMemory = 100e9;       // one socket with six or more DDR4 channels
constexpr BytesPerSec kAssumedInterconnect = 40e9;  // two 10.4 GT/s links between sockets
constexpr BytesPerSec kAssumedLan = 1.25e9;         // 10 GbE

// One link, one direction, by generation (NVIDIA data sheets of P100, V100, A100, H100, B200).
constexpr std::array<double, 6> kNvlinkBandwidth = {0, 20e9, 25e9, 25e9, 25e9, 50e9};

struct NicDefaults {
  const char* name;
  Nanos latency;  // of one adapter, one way; assumed, half of what small-message tests show
  uint32_t mtu;
};

NicDefaults defaults_of(pb::NicKind kind) {
  switch (kind) {
    case pb::ROCE:
      return {"mlx5_{i}", 800, 1024};
    case pb::EFA:
      return {"efa{i}", 3500, 8900};
    case pb::SLINGSHOT:
      return {"cxi{i}", 700, 4096};
    case pb::ETHERNET:
      return {"nic{i}", 5000, 1500};
    default:
      return {"mlx5_{i}", 450, 4096};
  }
}

pb::InterfaceKind interface_kind_of(std::string_view name) {
  if (name == "lo") return pb::LOOPBACK;
  if (name.starts_with("docker") || name.starts_with("br-") || name.starts_with("virbr")) {
    return pb::BRIDGE;
  }
  return name.starts_with("ib") ? pb::IPOIB : pb::LAN;
}

const char* default_name(pb::InterfaceKind kind) {
  switch (kind) {
    case pb::IPOIB:
      return "ib{i}";
    case pb::BRIDGE:
      return "docker{i}";
    case pb::LOOPBACK:
      return "lo";
    default:
      return "eth{i}";
  }
}

class Expansion {
 public:
  Expansion(pb::Node& node, std::vector<std::string>& assumptions)
      : node_(node), assumptions_(assumptions) {}

  void run() {
    copies(*node_.mutable_switches(), [&](pb::PcieSwitch& each) { bridge(each); });
    copies(*node_.mutable_gpus(), [&](pb::Gpu& each) { gpu(each); });
    copies(*node_.mutable_nics(), [&](pb::Nic& each) { nic(each); });
    copies(*node_.mutable_interfaces(), [&](pb::Interface& each) { interface(each); });
    numa();
    carriers();
    rest();
  }

 private:
  void assume(std::string text) {
    if (std::find(assumptions_.begin(), assumptions_.end(), text) == assumptions_.end()) {
      assumptions_.push_back(std::move(text));
    }
  }

  // Each element as often as its count says; `finish` sees them in their final order.
  template <typename List, typename Finish>
  void copies(List& list, Finish finish) {
    counters_.clear();
    List out;
    for (auto& each : list) {
      const uint32_t count = std::max(each.count(), 1u);
      each.clear_count();
      for (uint32_t i = 0; i < count; ++i) *out.Add() = each;
    }
    list.Swap(&out);
    index_ = 0;
    for (auto& each : list) {
      finish(each);
      ++index_;
    }
  }

  // Counts the devices written with one name.
  uint32_t number(const std::string& name) { return counters_[name]++; }

  void pcie(pb::PcieLink& link, uint32_t i) {
    if (link.parent().find('{') != std::string::npos) link.set_parent(fill(link.parent(), 'i', i));
    if (link.generation() && !link.width()) link.set_width(16);
  }

  void bridge(pb::PcieSwitch& each) {
    if (each.name().empty()) each.set_name("pcie{i}");
    const uint32_t i = number(each.name());
    each.set_name(fill(each.name(), 'i', i));
    if (bandwidth_of(each.pcie()) == 0) {
      assume("PCIe switches without a written generation are attached by generation 4 x16");
      each.mutable_pcie()->set_generation(4);
    }
    pcie(*each.mutable_pcie(), i);
  }

  void gpu(pb::Gpu& each) {
    if (each.name().empty()) each.set_name("gpu{i}");
    const uint32_t i = number(each.name());
    each.set_name(fill(each.name(), 'i', i));
    each.clear_like();
    if (each.has_pcie()) pcie(*each.mutable_pcie(), i);
    if (each.speed() == 0) each.set_speed(1);
    each.set_bus_id(fill(each.bus_id(), 'i', i));
    if (each.bus_id().empty()) {
      each.set_bus_id(fmt::format("{:04x}:{:02x}:00.0", index_ / 31, index_ % 31 * 8 + 7));
    }
    if (each.has_nvlink() && each.nvlink().bandwidth() == 0 &&
        each.nvlink().generation() < kNvlinkBandwidth.size()) {
      each.mutable_nvlink()->set_bandwidth(kNvlinkBandwidth[each.nvlink().generation()]);
    }
  }

  void nic(pb::Nic& each) {
    if (each.kind() == pb::NIC_KIND_UNSPECIFIED) {
      assume("NICs without a written kind are InfiniBand");
      each.set_kind(pb::INFINIBAND);
    }
    const NicDefaults usual = defaults_of(each.kind());
    if (each.name().empty()) each.set_name(usual.name);
    const uint32_t i = number(each.name());
    each.set_name(fill(each.name(), 'i', i));
    each.set_interface(fill(each.interface(), 'i', i));
    each.set_adapter(fill(each.adapter(), 'i', i));
    if (!each.has_rail()) each.set_rail(static_cast<int32_t>(index_));
    if (each.mtu() == 0) each.set_mtu(usual.mtu);
    if (each.latency() == 0) {
      assume(fmt::format("one {} adapter takes {} ns one way", pb::NicKind_Name(each.kind()),
                         usual.latency));
      each.set_latency(usual.latency);
    }
    if (bandwidth_of(each.pcie()) == 0) {
      assume("NICs without written PCIe have the first generation of x16 that carries their rate");
      pb::PcieLink& link = *each.mutable_pcie();
      link.set_generation(3);
      while (link.generation() < 7 && bandwidth_of(link) < each.bandwidth()) {
        link.set_generation(link.generation() + 1);
      }
    }
    pcie(*each.mutable_pcie(), i);
  }

  void interface(pb::Interface& each) {
    if (each.kind() == pb::INTERFACE_KIND_UNSPECIFIED)
      each.set_kind(interface_kind_of(each.name()));
    if (each.name().empty()) each.set_name(default_name(each.kind()));
    const uint32_t i = number(each.name());
    each.set_name(fill(each.name(), 'i', i));
    each.set_network(fill(each.network(), 'i', i));
    for (auto& address : *each.mutable_addresses()) address = fill(address, 'k', i);
    if (each.mtu() == 0) {
      each.set_mtu(each.kind() == pb::LOOPBACK ? 65536 : each.kind() == pb::IPOIB ? 2044 : 1500);
    }
    if (each.kind() == pb::LAN && each.network().empty()) each.set_network("lan");
  }

  void numa() {
    uint32_t domains = 1;
    for (const auto& each : node_.switches()) domains = std::max(domains, each.pcie().numa() + 1);
    for (const auto& each : node_.gpus()) domains = std::max(domains, each.pcie().numa() + 1);
    for (const auto& each : node_.nics()) domains = std::max(domains, each.pcie().numa() + 1);
    if (node_.numa().empty() && domains <= 64) {
      for (uint32_t i = 0; i < domains; ++i) node_.add_numa();
    }
    for (auto& each : *node_.mutable_numa()) {
      if (each.memory_bandwidth() == 0) {
        assume("host memory of a NUMA domain without a written bandwidth moves 100 GB/s");
        each.set_memory_bandwidth(kAssumedMemory);
      }
      if (each.interconnect() == 0 && node_.numa_size() > 1) {
        assume("sockets without a written interconnect are joined by 40 GB/s per direction");
        each.set_interconnect(kAssumedInterconnect);
      }
    }
  }

  // IPoIB interfaces ride on the InfiniBand NICs in order, where nothing else is written.
  void carriers() {
    int next = 0;
    for (auto& each : *node_.mutable_interfaces()) {
      bool carried = false;
      for (const auto& nic : node_.nics()) carried = carried || nic.interface() == each.name();
      if (!carried && each.kind() == pb::IPOIB) {
        while (next < node_.nics_size() && (node_.nics(next).kind() != pb::INFINIBAND ||
                                            !node_.nics(next).interface().empty())) {
          ++next;
        }
        if (next < node_.nics_size()) {
          node_.mutable_nics(next)->set_interface(each.name());
          carried = true;
        }
      }
      const bool wire = each.kind() == pb::LAN || each.kind() == pb::IPOIB;
      if (wire && !carried && each.bandwidth() == 0) {
        assume("LAN interfaces without a written bandwidth run at 10 Gbit/s");
        each.set_bandwidth(kAssumedLan);
      }
    }
  }

  void rest() {
    if (node_.shm() == 0) node_.set_shm(node_.memory() / 2);
    for (auto& pair : *node_.mutable_nvlinks()) {
      if (pair.links() == 0) pair.set_links(1);
    }
    int i = 0;
    for (auto& each : *node_.mutable_storage()) {
      if (each.name().empty()) each.set_name(fmt::format("disk{}", i));
      ++i;
    }
  }

  pb::Node& node_;
  std::vector<std::string>& assumptions_;
  std::map<std::string, uint32_t> counters_;
  uint32_t index_ = 0;
};

}  // namespace

void expand_devices(pb::Node& node, std::vector<std::string>& assumptions) {
  Expansion(node, assumptions).run();
}

}  // namespace rehearse::platforms
