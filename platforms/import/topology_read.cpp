// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "platforms/import/topology_draft.hpp"
#include "platforms/import/topology_words.hpp"

namespace rehearse::platforms {
namespace {

constexpr size_t kMaxGpus = 1024, kMaxNics = 256, kMaxSwitches = 2048, kMaxNuma = 64;
constexpr double kFastestPort = 3.2e6;  // Mbit/s

class TopologyReader {
 public:
  TopologyReader(const XmlFile& file, Findings& findings) : file_(file), findings_(findings) {}

  Result<std::vector<NodeDraft>> run() {
    const pugi::xml_node system = file_.root();
    for (const pugi::xml_node& child : system.children()) {
      if (child.type() != pugi::node_element) continue;
      const std::string_view kind = child.name();
      if (kind == "cpu") {
        if (auto ok = cpu(child); !ok) return tl::unexpected(ok.error());
      } else if (kind == "pci" || kind == "gpu" || kind == "nic") {
        return bad_input(fmt::format("<{}> stands outside any <cpu>: no path leads to it", kind),
                         file_.place(child), "move it into the <cpu> whose root port it hangs at");
      } else {
        ignore(child);
      }
    }
    if (nodes_.empty()) {
      return bad_input("the topology has no <cpu>", file_.place(system),
                       "dump it again with NCCL_TOPO_DUMP_FILE");
    }
    return std::move(nodes_);
  }

 private:
  struct Above {
    std::string parent;  // switch, empty at the root complex
    uint32_t numa = 0;
  };

  void ignore(const pugi::xml_node& element) {
    findings_.add("unknown-element", Severity::kWarning,
                  fmt::format("{}: <{}>", file_.place(element), element.name()),
                  "the element is not used; it may be of a newer NCCL");
  }

  Result<void> cpu(const pugi::xml_node& element) {
    const std::string host = element.attribute("host_hash").value();
    auto at = std::find_if(nodes_.begin(), nodes_.end(),
                           [&](const NodeDraft& each) { return each.host == host; });
    if (at == nodes_.end()) {
      nodes_.emplace_back();
      nodes_.back().host = host;
      at = nodes_.end() - 1;
    }
    node_ = static_cast<size_t>(at - nodes_.begin());
    RH_TRY(const int64_t id, whole(file_, element, "numaid", -1, 4095));
    if (!numa_ids_.emplace(std::pair(node_, id), file_.place(element)).second) {
      return bad_input(
          fmt::format("a second <cpu> has numaid {}", id), file_.place(element),
          fmt::format("the first is at {}; give each its own", numa_ids_[{node_, id}]));
    }
    pb::Node& node = nodes_[node_].node;
    if (static_cast<size_t>(node.numa_size()) >= kMaxNuma) {
      return fail(Code::kLimit, fmt::format("more than {} <cpu>", kMaxNuma), file_.place(element),
                  "no machine has as many NUMA domains; check the file");
    }
    pb::NumaDomain& numa = *node.add_numa();
    numa.set_vendor(vendor_word(element.attribute("vendor").value()));
    numa.set_arch(arch_word(element.attribute("arch").value()));
    if (!element.attribute("familyid").empty()) {
      RH_TRY(const int64_t family, whole(file_, element, "familyid", -1, 1 << 20));
      numa.set_family(static_cast<uint32_t>(std::max<int64_t>(family, 0)));
    }
    if (!element.attribute("modelid").empty()) {
      RH_TRY(const int64_t model, whole(file_, element, "modelid", -1, 1 << 20));
      numa.set_model_id(static_cast<uint32_t>(std::max<int64_t>(model, 0)));
    }
    numa.set_cores(threads_in(element.attribute("affinity").value()));
    return children(element, {"", static_cast<uint32_t>(node.numa_size() - 1)});
  }

  Result<void> children(const pugi::xml_node& element, const Above& above) {
    for (const pugi::xml_node& child : element.children()) {
      if (child.type() != pugi::node_element) continue;
      const std::string_view kind = child.name();
      Result<void> done;
      if (kind == "pci") {
        done = pci(child, above);
      } else if (kind == "nic") {
        pb::PcieLink none;
        none.set_numa(above.numa);
        done = nets(child, none, nullptr);
      } else if (kind == "gpu") {
        done = bad_input("<gpu> stands outside a <pci>: no path leads to it", file_.place(child),
                         "put it into the <pci> of its bus id");
      } else {
        ignore(child);
      }
      if (!done) return done;
    }
    return {};
  }

  Result<void> claim(const std::string& bus_id, const pugi::xml_node& element) {
    const std::string place = file_.place(element);
    for (pugi::xml_node up = element.parent(); up; up = up.parent()) {
      if (bus_id == up.attribute("busid").value()) {
        return bad_input(fmt::format("PCI device {} is above itself", bus_id), place,
                         fmt::format("a cycle; its other place is {}", file_.place(up)));
      }
    }
    auto& claimed = nodes_[node_].bus_ids;
    const bool endpoint = element.child("pci").empty();
    const auto [other, fresh] = claimed.emplace(bus_id, std::pair(place, endpoint));
    if (fresh) return {};
    if (!endpoint || !std::exchange(other->second.second, endpoint)) {
      findings_.add("repeated-bridge", Severity::kWarning,
                    fmt::format("{}: {}", place, in_quotes(bus_id)),
                    "a switch and another device have one bus id; they are taken for two");
      return {};
    }
    return bad_input(fmt::format("PCI device {} is there twice", bus_id), place,
                     fmt::format("the first is at {}; remove one", other->second.first));
  }

  Result<void> pci(const pugi::xml_node& element, const Above& above) {
    const std::string bus_id = element.attribute("busid").value();
    if (bus_id.empty()) {
      return bad_input("<pci> has no busid", file_.place(element), "write busid=\"0000:0f:00.0\"");
    }
    if (auto ok = claim(bus_id, element); !ok) return ok;
    pb::PcieLink link;
    link.set_generation(generation_of(element.attribute("link_speed").value()));
    if (!element.attribute("link_width").empty()) {
      RH_TRY(const int64_t width, whole(file_, element, "link_width", 0, 32));
      link.set_width(static_cast<uint32_t>(width));
    }
    link.set_parent(above.parent);
    if (above.parent.empty()) link.set_numa(above.numa);
    const std::string_view kind = element.attribute("class").value();
    const bool has_gpu = !element.child("gpu").empty(), has_nic = !element.child("nic").empty();
    const bool has_pci = !element.child("pci").empty();
    if (has_gpu || kind.starts_with("0x03") || kind.starts_with("0x12")) return gpu(element, link);
    if (has_nic || kind.starts_with("0x02")) return nets(element.child("nic"), link, &element);
    if (has_pci || kind.starts_with("0x0604")) return bridge(element, link, above);
    if (!kind.empty() && !kind.starts_with("0x0680")) {
      findings_.add("unknown-class", Severity::kInfo,
                    fmt::format("{}: class {}", file_.place(element), kind),
                    "neither GPU, NIC nor switch; the device is left out");
    } else if (kind.empty()) {
      nodes_[node_].unknown.push_back({bus_id, link, file_.place(element)});
    }
    return {};
  }

  Result<void> bridge(const pugi::xml_node& element, const pb::PcieLink& link, const Above& above) {
    pb::Node& node = nodes_[node_].node;
    if (static_cast<size_t>(node.switches_size()) >= kMaxSwitches) {
      return fail(Code::kLimit, fmt::format("more than {} PCIe switches", kMaxSwitches),
                  file_.place(element), "check the file");
    }
    pb::PcieSwitch& added = *node.add_switches();
    added.set_name(fmt::format("plx{}", node.switches_size() - 1));
    *added.mutable_pcie() = link;
    if (link.generation() == 0) added.mutable_pcie()->set_generation(3);
    if (hexadecimal(element, "vendor") != 0) {
      added.set_device(fmt::format("{:04x}:{:04x}:{:04x}:{:04x}", hexadecimal(element, "vendor"),
                                   hexadecimal(element, "device"),
                                   hexadecimal(element, "subsystem_vendor"),
                                   hexadecimal(element, "subsystem_device")));
    }
    return children(element, {added.name(), above.numa});
  }

  Result<void> gpu(const pugi::xml_node& element, const pb::PcieLink& link) {
    NodeDraft& node = nodes_[node_];
    if (node.gpus.size() >= kMaxGpus) {
      return fail(Code::kLimit, fmt::format("more than {} GPUs", kMaxGpus), file_.place(element),
                  "check the file");
    }
    GpuDraft draft;
    draft.place = file_.place(element);
    draft.vendor = hexadecimal(element, "vendor");
    draft.device = hexadecimal(element, "device");
    draft.gpu.set_bus_id(element.attribute("busid").value());
    *draft.gpu.mutable_pcie() = link;
    if (const pugi::xml_node told = element.child("gpu")) {
      draft.described = true;
      if (!told.attribute("dev").empty()) {
        RH_TRY(draft.number, whole(file_, told, "dev", 0, 4095));
      }
      draft.architecture = told.attribute("gcn").value();
      if (!told.attribute("sm").empty() && draft.architecture.empty()) {
        RH_TRY(const int64_t sm, whole(file_, told, "sm", 0, 9999));
        draft.gpu.set_compute_capability(static_cast<uint32_t>(sm));
      }
      draft.gdr = std::string_view(told.attribute("gdr").value()) != "0";
      for (const pugi::xml_node& child : told.children()) {
        const std::string_view kind = child.name();
        if (kind == "nvlink" || kind == "xgmi") {
          RH_TRY(NvlinkDraft nvlink, read_nvlink(child));
          draft.nvlinks.push_back(std::move(nvlink));
        } else if (kind == "c2c") {
          RH_TRY(const double bandwidth, decimal(file_, child, "bw", 0));
          RH_TRY(const int64_t count, whole(file_, child, "count", 1, 64));
          draft.gpu.set_c2c(static_cast<double>(count) * bandwidth * 1e6);
        } else if (child.type() == pugi::node_element) {
          ignore(child);
        }
      }
    }
    node.gpus.push_back(std::move(draft));
    return {};
  }

  Result<NvlinkDraft> read_nvlink(const pugi::xml_node& element) {
    NvlinkDraft out;
    out.place = file_.place(element);
    out.target = element.attribute("target").value();
    RH_TRY(const int64_t count, whole(file_, element, "count", 1, 64));
    out.links = static_cast<uint32_t>(count);
    out.to_switch = std::string_view(element.attribute("tclass").value()).starts_with("0x0680");
    return out;
  }

  // `holder` is <nic>, possibly absent; `pci` the device it belongs to, null for one at a <cpu>.
  Result<void> nets(const pugi::xml_node& holder, const pb::PcieLink& link,
                    const pugi::xml_node* pci) {
    size_t ports = 0;
    for (const pugi::xml_node& child : holder.children()) {
      if (child.type() != pugi::node_element) continue;
      if (std::string_view(child.name()) != "net") {
        ignore(child);
        continue;
      }
      ++ports;
      if (auto ok = net(child, link, pci); !ok) return ok;
    }
    if (ports > 0 || pci == nullptr) return {};
    NicDraft draft;
    draft.place = file_.place(*pci);
    draft.nic.set_name(fmt::format("nic{}", nodes_[node_].nics.size()));
    draft.nic.set_kind(nic_kind_of(pci, "", hexadecimal(*pci, "vendor") == 0x15b3));
    draft.nic.set_bandwidth(port_rate_of(hexadecimal(*pci, "vendor"), hexadecimal(*pci, "device")));
    draft.nic.set_gpudirect(draft.nic.kind() != pb::ETHERNET);
    *draft.nic.mutable_pcie() = link;
    return keep(std::move(draft));
  }

  Result<void> net(const pugi::xml_node& element, const pb::PcieLink& link,
                   const pugi::xml_node* pci) {
    NodeDraft& node = nodes_[node_];
    NicDraft draft;
    draft.place = file_.place(element);
    std::string name = element.attribute("name").value();
    if (name.empty()) {
      return bad_input("<net> has no name", draft.place, "write the name of the adapter");
    }
    std::replace(name.begin(), name.end(), '/', '-');
    RH_TRY(draft.number, whole(file_, element, "dev", 0, 4095));
    RH_TRY(double speed, decimal(file_, element, "speed", 0));
    if (speed > 1e9) {
      return bad_input(fmt::format("a speed of {} Mbit/s", speed), draft.place,
                       "write the port's speed in Mbit/s");
    }
    if (speed > kFastestPort) {
      findings_.add("unlikely-speed", Severity::kWarning,
                    fmt::format("{}: {} Mbit/s", draft.place, speed),
                    "no port is as fast; the figure is taken for kbit/s");
      speed /= 1000;
    }
    // Socket devices report port 0; verbs ports count from 1.
    const bool rdma = std::string_view(element.attribute("port").value()) != "0";
    for (const NicDraft& other : node.nics) {
      if (other.number == draft.number && other.nic.name() == name) {
        findings_.add("repeated-net", Severity::kInfo, draft.place,
                      "one device is listed under several processors; the first is taken");
        return {};
      }
    }
    for (const auto& each : node.node.interfaces()) {
      if (each.name() == name && seen_virtual_[{node_, name}] == draft.number) {
        findings_.add("repeated-net", Severity::kInfo, draft.place,
                      "one device is listed under several processors; the first is taken");
        return {};
      }
    }
    const double rate = speed > 0 ? speed * 1e6 / 8 : 1.25e9;  // NCCL takes 10 Gbit/s for unknown
    if (pci == nullptr && !rdma) {
      pb::Interface& interface = *node.node.add_interfaces();
      interface.set_name(name);
      interface.set_kind(is_virtual(name) ? pb::BRIDGE : pb::LAN);
      interface.set_bandwidth(rate);
      seen_virtual_[{node_, name}] = draft.number;
      return {};
    }
    draft.rate_told = true;
    draft.nic.set_name(name);
    draft.nic.set_kind(nic_kind_of(pci, name, rdma));
    draft.nic.set_bandwidth(rate);
    draft.nic.set_gpudirect(std::string_view(element.attribute("gdr").value()) == "1");
    *draft.nic.mutable_pcie() = link;
    if (pci != nullptr && (element.next_sibling("net") || element.previous_sibling("net"))) {
      draft.nic.set_adapter(pci->attribute("busid").value());
    }
    if (draft.nic.kind() == pb::ETHERNET) draft.nic.set_interface(name);
    return keep(std::move(draft));
  }

  Result<void> keep(NicDraft draft) {
    NodeDraft& node = nodes_[node_];
    if (node.nics.size() >= kMaxNics) {
      return fail(Code::kLimit, fmt::format("more than {} NICs", kMaxNics), draft.place,
                  "check the file");
    }
    for (const NicDraft& other : node.nics) {
      if (other.nic.name() == draft.nic.name()) {
        return bad_input(fmt::format("two NICs have the name {}", in_quotes(draft.nic.name())),
                         draft.place, fmt::format("the first is at {}; rename one", other.place));
      }
      if (draft.number >= 0 && other.number == draft.number) {
        findings_.add(
            "repeated-device-number", Severity::kWarning,
            fmt::format("{}: {} has the number {} of {}", draft.place, in_quotes(draft.nic.name()),
                        draft.number, in_quotes(other.nic.name())),
            "NICs are numbered in the order of the file");
      }
    }
    if (draft.nic.kind() == pb::ETHERNET && !draft.nic.interface().empty()) {
      pb::Interface& interface = *node.node.add_interfaces();
      interface.set_name(draft.nic.interface());
      interface.set_kind(pb::LAN);
    }
    node.nics.push_back(std::move(draft));
    return {};
  }

  const XmlFile& file_;
  Findings& findings_;
  std::vector<NodeDraft> nodes_;
  size_t node_ = 0;
  std::map<std::pair<size_t, int64_t>, std::string> numa_ids_;
  std::map<std::pair<size_t, std::string>, int64_t> seen_virtual_;
};

}  // namespace

Result<std::vector<NodeDraft>> read_topology(const XmlFile& file, Findings& findings) {
  return TopologyReader(file, findings).run();
}

}  // namespace rehearse::platforms
