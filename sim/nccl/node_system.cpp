// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/node_system.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "sim/nccl/path_finder.hpp"

namespace rehearse::sim {
namespace {

// GB/s of one NVLink as NCCL counts it (§7.1).
float nvlink_speed(int cc) {
  if (cc >= 100) return 40.1F;
  if (cc >= 90) return 20.6F;
  if (cc == 86) return 12.0F;
  return cc >= 70 ? 20.0F : 18.0F;
}

// GB/s of a link between GPUs. Infinity Fabric by RCCL's figures, 36 of 50 and 48 of 64 (src/graph/topo.h): three
// quarters of the data sheet.
float link_speed(const pb::Gpu& gpu) {
  const pb::Nvlink& link = gpu.nvlink();
  const bool infinity_fabric = gpu.compute_capability() == 0 && link.generation() == 0;
  if (infinity_fabric && link.bandwidth() > 0) return static_cast<float>(link.bandwidth() * .75e-9);
  return nvlink_speed(std::max(70, static_cast<int>(gpu.compute_capability())));
}

// GB/s of a PCIe link as NCCL counts it: Gen3 x16 is 12, Gen4 24, Gen5 48.
float pcie_speed(const pb::PcieLink& link) {
  static constexpr std::array<float, 8> kSpeed = {60, 15, 30, 60, 120, 240, 480, 960};
  const float s = kSpeed[std::min<size_t>(link.generation(), 7)];
  return static_cast<float>(link.width() == 0 ? 16 : link.width()) * s / 80;
}

CpuArch arch_of(const pb::NumaDomain& numa) {
  if (numa.arch() == "arm") return CpuArch::kArm;
  return numa.arch() == "power" ? CpuArch::kPower : CpuArch::kX86;
}

CpuVendor vendor_of(const pb::NumaDomain& numa) {
  if (numa.vendor() == "amd") return CpuVendor::kAmd;
  return numa.vendor() == "zhaoxin" ? CpuVendor::kZhaoxin : CpuVendor::kIntel;
}

// GB/s between processors (§7.1).
float processor_speed(const pb::NumaDomain& numa) {
  switch (arch_of(numa)) {
    case CpuArch::kPower:
      return 32;
    case CpuArch::kArm:
      return 6;
    case CpuArch::kX86:
      break;
  }
  if (vendor_of(numa) == CpuVendor::kAmd) return 16;
  if (vendor_of(numa) == CpuVendor::kZhaoxin) return numa.model_id() == 0x5B ? 9 : 6;
  if (numa.model_id() >= 0xCF) return 40;
  if (numa.model_id() >= 0x8F) return 22;
  return numa.model_id() >= 0x55 ? 10 : 6;
}

constexpr float kLocal = 5000;

// Two levels of these switches are one for NCCL: Broadcom of generation 4 and 5 (PCI ids).
bool is_flattened(const std::string& lower, const std::string& upper) {
  const auto both = [&](const char* low, const char* high) {
    return lower.starts_with(low) && upper.starts_with(high);
  };
  return both("1000:c010:1000:a", "1000:c010:1000:a") ||
         both("1000:c030:1000:1", "1000:c030:1000:0");
}

}  // namespace

class SystemBuilder {
 public:
  SystemBuilder(const pb::Platform& platform, const NodeOf& nodes, const SystemScope& scope,
                NodeSystem& out)
      : platform_(platform), nodes_(nodes), scope_(scope), settings_(out.settings_), out_(out) {}

  void run() {
    std::set<uint32_t> hosts;
    for (const platforms::GpuRef& gpu : scope_.gpus) hosts.insert(gpu.node);
    out_.hosts.assign(hosts.begin(), hosts.end());
    for (const uint32_t host : hosts) processors(host);
    for (const platforms::GpuRef& gpu : scope_.gpus) add_gpu(gpu);
    nvlinks();
    for (size_t n = 0; n < scope_.nets.size(); ++n) {
      if (!is_merged(n)) add_net(n);
    }
    order_wires();
  }

 private:
  [[nodiscard]] const pb::Node& host(uint32_t index) const { return nodes_(index); }

  [[nodiscard]] uint32_t position(uint32_t node) const {
    const auto at = std::lower_bound(out_.hosts.begin(), out_.hosts.end(), node);
    return static_cast<uint32_t>(at - out_.hosts.begin());
  }

  DeviceId add(SystemDevice device) {
    out_.devices.push_back(std::move(device));
    return static_cast<DeviceId>(out_.devices.size() - 1);
  }

  // Wires leave a device fastest first; equal ones in the order they were added.
  void half(DeviceId from, DeviceId to, WireType type, float bandwidth) {
    for (const uint32_t w : out_.devices[from].wires) {
      Wire& wire = out_.wires[w];
      if (wire.to == to && wire.type == type && type == WireType::kNvlink) {
        wire.bandwidth += bandwidth;
        return;
      }
    }
    out_.wires.push_back({from, to, type, bandwidth});
    out_.devices[from].wires.push_back(static_cast<uint32_t>(out_.wires.size() - 1));
  }
  void join(DeviceId a, DeviceId b, WireType type, float bandwidth) {
    half(a, b, type, bandwidth);
    half(b, a, type, bandwidth);
  }

  void processors(uint32_t index) {
    const pb::Node& node = host(index);
    std::vector<DeviceId> domains;
    for (int i = 0; i < node.numa_size(); ++i) {
      SystemDevice cpu;
      cpu.type = DeviceType::kCpu;
      cpu.host = position(index);
      cpu.index = static_cast<uint32_t>(i);
      cpu.arch = arch_of(node.numa(i));
      cpu.vendor = vendor_of(node.numa(i));
      domains.push_back(add(cpu));
      cpus_[{index, static_cast<uint32_t>(i)}] = domains.back();
      out_.cpus.push_back(domains.back());
    }
    for (size_t a = 0; a < domains.size(); ++a) {
      for (size_t b = a + 1; b < domains.size(); ++b) {
        join(domains[a], domains[b], WireType::kSystem,
             processor_speed(node.numa(static_cast<int>(a))));
      }
    }
  }

  [[nodiscard]] const pb::PcieSwitch* find_switch(const pb::Node& node,
                                                  const std::string& name) const {
    for (const auto& each : node.switches()) {
      if (each.name() == name) return &each;
    }
    return nullptr;
  }

  // The switch above `link`, made when it is first needed; the processor at the top.
  DeviceId above(uint32_t index, const pb::PcieLink& link) {
    const pb::Node& node = host(index);
    const pb::PcieSwitch* bridge = find_switch(node, link.parent());
    if (bridge == nullptr) return cpus_[{index, link.numa()}];
    // The lower of two flattened levels is not there for NCCL.
    const pb::PcieSwitch* upper = find_switch(node, bridge->pcie().parent());
    if (upper != nullptr && is_flattened(bridge->device(), upper->device())) {
      bridge = upper;
    }
    const auto [at, fresh] = switches_.emplace(std::pair(index, bridge->name()), kNoDevice);
    if (!fresh) return at->second;
    SystemDevice device;
    device.type = DeviceType::kPci;
    device.host = position(index);
    const DeviceId id = add(device);
    switches_[{index, bridge->name()}] = id;
    join(id, above(index, bridge->pcie()), WireType::kPci, pcie_speed(bridge->pcie()));
    return id;
  }

  void add_gpu(const platforms::GpuRef& ref) {
    const pb::Gpu& gpu = host(ref.node).gpus(static_cast<int>(ref.gpu));
    SystemDevice device;
    device.host = position(ref.node);
    device.index = ref.gpu;
    device.compute_capability = std::max(70, static_cast<int>(gpu.compute_capability()));
    const DeviceId id = add(device);
    out_.gpus.push_back(id);
    out_.refused_peer_.push_back(gpu.no_peer_access());
    if (gpu.pcie().generation() > 0 || gpu.pcie().bandwidth() > 0) {
      join(id, above(ref.node, gpu.pcie()), WireType::kPci, pcie_speed(gpu.pcie()));
    }
    if (gpu.c2c() > 0) {
      join(id, cpus_[{ref.node, gpu.pcie().numa()}], WireType::kC2c,
           static_cast<float>(gpu.c2c() / 1e9));
    }
  }

  void nvlinks() {
    for (size_t i = 0; i < scope_.gpus.size(); ++i) {
      const pb::Node& node = host(scope_.gpus[i].node);
      const pb::Gpu& gpu = node.gpus(static_cast<int>(scope_.gpus[i].gpu));
      if (node.nvswitch().count() == 0 || gpu.nvlink().links() == 0) continue;
      if (out_.nvswitch == kNoDevice) {
        SystemDevice device;
        device.type = DeviceType::kNvSwitch;
        out_.nvswitch = add(device);
      }
      join(out_.gpus[i], out_.nvswitch, WireType::kNvlink,
           static_cast<float>(gpu.nvlink().links()) * link_speed(gpu));
    }
    std::map<platforms::GpuRef, DeviceId> known;
    for (size_t i = 0; i < scope_.gpus.size(); ++i) known[scope_.gpus[i]] = out_.gpus[i];
    std::set<uint32_t> hosts;
    for (const platforms::GpuRef& gpu : scope_.gpus) hosts.insert(gpu.node);
    for (const uint32_t index : hosts) {
      for (const pb::NvlinkPair& pair : host(index).nvlinks()) {
        const auto a = known.find({index, pair.a()}), b = known.find({index, pair.b()});
        if (a == known.end() || b == known.end()) continue;
        const pb::Gpu& one = host(index).gpus(static_cast<int>(pair.a()));
        const pb::Gpu& other = host(index).gpus(static_cast<int>(pair.b()));
        if (one.nvlink().links() == 0 || other.nvlink().links() == 0) continue;
        join(a->second, b->second, WireType::kNvlink,
             static_cast<float>(pair.links()) * std::min(link_speed(one), link_speed(other)));
      }
    }
  }

  // Are two network devices ports of one adapter that NCCL takes for one (NCCL_IB_MERGE_NICS)?
  [[nodiscard]] bool are_one(const SystemScope::Net& a, const SystemScope::Net& b) const {
    if (!settings_.merge_ports || scope_.sockets || a.host != b.host) return false;
    const pb::Nic& x = host(a.host).nics(static_cast<int>(a.index));
    const pb::Nic& y = host(b.host).nics(static_cast<int>(b.index));
    const auto verbs = [](pb::NicKind kind) { return kind == pb::INFINIBAND || kind == pb::ROCE; };
    return !x.adapter().empty() && x.adapter() == y.adapter() && verbs(x.kind()) && verbs(y.kind());
  }

  [[nodiscard]] bool is_merged(size_t n) const {
    for (size_t before = 0; before < n; ++before) {
      if (are_one(scope_.nets[before], scope_.nets[n])) return true;
    }
    return false;
  }

  void add_net(size_t n) {
    const SystemScope::Net& net = scope_.nets[n];
    const pb::Node& node = host(net.host);
    const pb::Nic* nic = nullptr;
    float bandwidth = 1.25F;
    std::vector<uint32_t> ports;
    if (!scope_.sockets) {
      nic = &node.nics(static_cast<int>(net.index));
      double rate = 0;
      for (size_t other = n; other < scope_.nets.size(); ++other) {
        if (other != n && !are_one(net, scope_.nets[other])) continue;
        ports.push_back(scope_.nets[other].index);
        rate += node.nics(static_cast<int>(ports.back())).bandwidth();
      }
      bandwidth = static_cast<float>(rate / 1e9);
    } else {
      const pb::Interface& interface = node.interfaces(static_cast<int>(net.index));
      for (const pb::Nic& each : node.nics()) {
        if (each.interface() == interface.name()) nic = &each;
      }
      const double rate = interface.bandwidth() > 0 ? interface.bandwidth()
                          : nic != nullptr          ? nic->bandwidth()
                                                    : 0;
      if (rate > 0) bandwidth = static_cast<float>(rate / 1e9);
    }
    const std::string adapter = nic == nullptr           ? "interface"
                                : nic->adapter().empty() ? "nic " + nic->name()
                                                         : "adapter " + nic->adapter();
    const auto [at, fresh] = adapters_.emplace(std::pair(net.host, adapter), kNoDevice);
    if (fresh) {
      SystemDevice device;
      device.type = DeviceType::kNic;
      device.host = position(net.host);
      at->second = add(device);
      // An interface without an adapter hangs at the first processor.
      if (nic == nullptr) {
        join(at->second, cpus_[{net.host, 0}], WireType::kPci, kLocal);
      } else {
        join(at->second, above(net.host, nic->pcie()), WireType::kPci, pcie_speed(nic->pcie()));
      }
    }
    const DeviceId holder = adapters_[{net.host, adapter}];
    SystemNet out;
    SystemDevice device;
    device.type = DeviceType::kNet;
    device.host = position(net.host);
    device.index = net.index;
    out.device = add(device);
    out.host = position(net.host);
    out.index = net.index;
    out.bandwidth = bandwidth;
    out.adapter = holder;
    out.ports = ports.empty() ? std::vector<uint32_t>{net.index} : std::move(ports);
    const bool handed = settings_.dma_buffers || node.gpudirect_way() != pb::DMABUF;
    out.direct = !scope_.sockets && nic->gpudirect() && handed;
    out.collnet = platform_.fabric().sharp() && !scope_.sockets && nic->kind() == pb::INFINIBAND;
    join(holder, out.device, WireType::kNetwork, bandwidth);
    out_.nets.push_back(std::move(out));
  }

  void order_wires() {
    for (SystemDevice& device : out_.devices) {
      std::stable_sort(device.wires.begin(), device.wires.end(), [&](uint32_t a, uint32_t b) {
        return out_.wires[a].bandwidth > out_.wires[b].bandwidth;
      });
    }
    // From the processors down: the wire up comes last.
    std::vector<std::pair<DeviceId, DeviceId>> open;
    for (const DeviceId cpu : out_.cpus) open.emplace_back(cpu, kNoDevice);
    while (!open.empty()) {
      const auto [id, up] = open.back();
      open.pop_back();
      auto& wires = out_.devices[id].wires;
      std::stable_partition(wires.begin(), wires.end(),
                            [&, up = up](uint32_t w) { return out_.wires[w].to != up; });
      for (const uint32_t w : wires) {
        const Wire& wire = out_.wires[w];
        if (wire.type == WireType::kPci && wire.to != up) open.emplace_back(wire.to, id);
      }
    }
  }

  const pb::Platform& platform_;
  const NodeOf& nodes_;
  const SystemScope& scope_;
  const TopologySettings& settings_;
  NodeSystem& out_;
  std::map<std::pair<uint32_t, uint32_t>, DeviceId> cpus_;
  std::map<std::pair<uint32_t, std::string>, DeviceId> switches_;
  std::map<std::pair<uint32_t, std::string>, DeviceId> adapters_;
};

NodeSystem::NodeSystem(const pb::Platform& platform, const SystemScope& scope,
                       const TopologySettings& settings)
    : NodeSystem(
          platform,
          [&](uint32_t node) -> const pb::Node& { return platform.nodes(static_cast<int>(node)); },
          scope, settings) {}

NodeSystem::NodeSystem(const pb::Platform& platform, const NodeOf& nodes, const SystemScope& scope,
                       const TopologySettings& settings)
    : settings_(settings) {
  SystemBuilder(platform, nodes, scope, *this).run();
  PathFinder(*this, settings_).run();
  finish();
}

void NodeSystem::finish() {
  if (nets.empty() && gpus.size() == 1) {
    max_bandwidth = total_bandwidth = kLocal;
    return;
  }
  for (size_t g = 0; g < gpus.size(); ++g) {
    const size_t others = nets.empty() ? gpus.size() : nets.size();
    for (size_t i = 0; i < others; ++i) {
      if (nets.empty() && i == g) continue;
      const Path& path = nets.empty() ? gpu_path(g, i) : to_net(g, i);
      if (!path.wires.empty()) max_bandwidth = std::max(max_bandwidth, path.bandwidth);
    }
    float nvlink = 0, pcie = 0;
    for (const uint32_t w : devices[gpus[g]].wires) {
      if (wires[w].type == WireType::kNvlink) nvlink += wires[w].bandwidth;
      if (wires[w].type == WireType::kPci) pcie = wires[w].bandwidth;
    }
    total_bandwidth = std::max({total_bandwidth, nvlink, pcie});
  }
  // Two groups of GPUs, each joined by NVLink, with nothing of the kind between them.
  if (nvswitch != kNoDevice) return;
  std::vector<int> island(gpus.size(), -1);
  int count = 0;
  std::vector<int> size;
  for (size_t g = 0; g < gpus.size(); ++g) {
    if (island[g] >= 0) continue;
    size.push_back(0);
    for (size_t p = 0; p < gpus.size(); ++p) {
      if (p != g && gpu_path(g, p).type != PathType::kNvl) continue;
      if (island[p] < 0) {
        island[p] = count;
        ++size.back();
      }
    }
    ++count;
  }
  split_nvlink = count == 2 && size[0] > 1 && size[1] > 1;
}

int NodeSystem::lowest_capability() const {
  int lowest = 1000;
  for (const DeviceId gpu : gpus) lowest = std::min(lowest, devices[gpu].compute_capability);
  return lowest;
}

}  // namespace rehearse::sim
