// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/text.hpp"
#include "platforms/import/import.hpp"
#include "platforms/import/smi_table.hpp"

namespace rehearse::platforms {
namespace {

// Devices joined by `closest` or closer, as the smallest index of their set.
std::vector<size_t> groups(const std::vector<SmiDevice>& devices, SmiWay closest) {
  std::vector<size_t> set(devices.size());
  std::iota(set.begin(), set.end(), 0);
  for (size_t a = 0; a < devices.size(); ++a) {
    for (size_t b = 0; b < devices.size(); ++b) {
      const SmiWay way = devices[a].row[b].way;
      if (way < SmiWay::kPix || way > closest || set[a] == set[b]) continue;
      const size_t from = std::max(set[a], set[b]), to = std::min(set[a], set[b]);
      for (size_t& each : set) each = each == from ? to : each;
    }
  }
  return set;
}

pb::NicKind kind_of(std::string_view name) {
  if (name.starts_with("roce")) return pb::ROCE;
  if (name.starts_with("efa") || name.starts_with("rdmap")) return pb::EFA;
  if (name.starts_with("cxi")) return pb::SLINGSHOT;
  if (name.starts_with("en") || name.starts_with("eth")) return pb::ETHERNET;
  return pb::INFINIBAND;
}

class Building {
 public:
  Building(const ImportText& file, std::vector<SmiDevice> devices, ImportedPlatform& out)
      : file_(file), devices_(std::move(devices)), out_(out) {}

  Result<void> run(const Machines& machines, const ImportSettings& settings) {
    domains();
    Seen seen;
    for (const SmiDevice& each : devices_) ++(each.gpu ? seen.gpus : seen.nics);
    links();
    seen.numa = static_cast<uint32_t>(numa_);
    seen.nvlink = most_ > 0;
    seen.nvswitch = switched_;
    for (const SmiDevice& each : devices_) {
      if (!each.gpu && seen.nic_kind == pb::NIC_KIND_UNSPECIFIED)
        seen.nic_kind = kind_of(each.name);
    }
    const bool coherent = std::any_of(devices_.begin(), devices_.end(),
                                      [](const SmiDevice& each) { return each.coherent; });
    if (coherent) seen.cpu_vendor = "arm";
    std::string sheet = settings.gpu;
    if (!sheet.empty()) {
      if (machines.gpu(sheet) == nullptr) return unknown_sheet(sheet);
      seen.gpu_model = machines.gpu(sheet)->model();
    } else if (most_ > 0) {
      const uint32_t total = switched_ ? most_ : sum_;
      // Eight links through switches are those of the H800; a V100 has six.
      const bool reduced = switched_ && total == 8;
      // Memory that is a NUMA domain is Grace's way: Blackwell where switches join the GPUs, Hopper where they are joined
      // directly.
      seen.compute_capability = coherent && switched_    ? 100
                                : total >= 18 || reduced ? 90
                                : total >= 12            ? 80
                                : total >= 5             ? 70
                                                         : 86;
      assume(fmt::format("compute capability {} by {} NVLinks per GPU{}: the table names no GPU",
                         seen.compute_capability, total,
                         coherent ? " whose memory the processor shares" : ""));
    }
    RH_TRY(const Match match, best_match(machines, seen));
    if (sheet.empty()) {
      sheet = gpu_by_name(machines, match.node.gpus(0).model(), match.node.gpus(0).memory());
      assume(
          fmt::format("GPUs are {}, as in {}; give --gpu ID where it is another", sheet, match.id));
    }
    if (machines.gpu(sheet) == nullptr) return unknown_sheet(sheet);
    fill(match, sheet, *machines.gpu(sheet));
    return {};
  }

 private:
  [[nodiscard]] Result<void> unknown_sheet(const std::string& id) const {
    return fail(Code::kMissingInput,
                fmt::format("there is no GPU {} in the catalogue", in_quotes(id)), file_.name,
                "platforms/catalogue/gpus lists the data sheets");
  }

  void assume(const std::string& text) {
    out_.platform.add_assumptions(text);
    out_.findings.add("assumed", Severity::kInfo, fmt::format("{}: {}", file_.name, text),
                      "check the assumptions of the platform and correct them");
  }

  // Tables of old drivers have no NUMA domains: GPUs near the same processors are in one, else those that are closer than
  // through the link between sockets.
  void tell_domains() {
    const auto told = [](const SmiDevice& each) { return each.numa >= 0; };
    if (std::any_of(devices_.begin(), devices_.end(), told)) return;
    const bool processors =
        std::all_of(devices_.begin(), devices_.end(),
                    [](const SmiDevice& each) { return !each.gpu || !each.processors.empty(); });
    const std::vector<size_t> near = groups(devices_, SmiWay::kNode);
    std::map<std::string, int> number;
    for (size_t i = 0; i < devices_.size(); ++i) {
      SmiDevice& each = devices_[i];
      if (processors && !each.gpu) continue;
      const std::string key = processors ? each.processors : std::to_string(near[i]);
      each.numa = number.emplace(key, static_cast<int>(number.size())).first->second;
    }
    if (number.size() < 2 || number.size() > 64 || (!processors && has_nvlinks())) {
      for (SmiDevice& each : devices_) each.numa = -1;
      return;
    }
    assume(fmt::format("{} NUMA domains by {}: the table names none", number.size(),
                       processors ? "the processors beside each GPU"
                                  : "which devices are joined closer than SYS"));
  }

  [[nodiscard]] bool has_nvlinks() const {
    return std::any_of(devices_.begin(), devices_.end(), [](const SmiDevice& each) {
      return std::any_of(each.row.begin(), each.row.end(),
                         [](const SmiCell& cell) { return cell.links > 0; });
    });
  }

  void domains() {
    tell_domains();
    numa_ = 1;
    for (const SmiDevice& each : devices_) numa_ = std::max(numa_, each.numa + 1);
    for (SmiDevice& each : devices_) {
      for (size_t b = 0; b < devices_.size() && each.numa < 0; ++b) {
        const SmiWay way = each.row[b].way;
        if (way >= SmiWay::kPix && way <= SmiWay::kNode && devices_[b].numa >= 0) {
          each.numa = devices_[b].numa;
        }
      }
      if (each.numa < 0) {
        each.numa = 0;
        out_.findings.add("unknown-numa", Severity::kInfo, each.place,
                          "no NUMA domain is told; domain 0 is taken");
      }
    }
  }

  void links() {
    size_t joined = 0, gpus = 0;
    for (const SmiDevice& each : devices_) {
      if (!each.gpu) continue;
      ++gpus;
      uint32_t sum = 0;
      for (const SmiCell& cell : each.row) {
        sum += cell.links;
        most_ = std::max(most_, cell.links);
        joined += cell.links > 0 ? 1 : 0;
      }
      sum_ = std::max(sum_, sum);
    }
    // Through a switch every pair shows all links of a GPU; no GPU has more than 18 of its own.
    switched_ = most_ > 0 && joined == gpus * (gpus - 1) && (sum_ > 18 || most_ >= 18);
  }

  void fill(const Match& match, const std::string& sheet, const pb::Gpu& card) {
    pb::Node& node = *out_.platform.add_nodes();
    node.set_model(match.node.model());
    for (int i = 0; i < numa_; ++i) {
      *node.add_numa() = match.node.numa(std::min(i, match.node.numa_size() - 1));
    }
    parents(node, card.pcie().generation());
    for (size_t i = 0; i < devices_.size(); ++i) {
      const SmiDevice& each = devices_[i];
      pb::PcieLink link;
      link.set_generation(card.pcie().generation());
      link.set_width(16);
      link.set_parent(parent_[i]);
      if (parent_[i].empty()) link.set_numa(static_cast<uint32_t>(each.numa));
      if (each.gpu) {
        pb::Gpu& gpu = *node.add_gpus();
        gpu.set_like(sheet);
        *gpu.mutable_pcie() = link;
      } else {
        add_nic(node, i, link, match);
      }
    }
    if (switched_) {
      *node.mutable_nvswitch() = match.node.nvswitch();
      if (node.nvswitch().count() == 0) node.mutable_nvswitch()->set_count(1);
    } else {
      pairs(node, card.nvlink().bandwidth() == 0 && card.nvlink().generation() == 0);
    }
    node.set_memory(match.node.memory());
    *node.mutable_storage() = match.node.storage();
    pb::Interface& lan = *node.add_interfaces();
    lan.set_name("eth0");
    lan.set_kind(pb::LAN);
    lan.set_bandwidth(1.25e9);
    lan.add_addresses("10.0.0.{i}/16");
    *out_.platform.mutable_fabric() = match.platform.fabric();
    *out_.platform.mutable_storage() = match.platform.storage();
    assume(fmt::format(
        "processors, memory, LAN, storage, fabric and PCIe generation are those of {}", match.id));
  }

  // PIX: below one switch. PXB: below one switch that has switches below it.
  void parents(pb::Node& node, uint32_t generation) {
    const std::vector<size_t> near = groups(devices_, SmiWay::kPix);
    const std::vector<size_t> far = groups(devices_, SmiWay::kPxb);
    std::map<size_t, size_t> near_size, far_size;
    for (const size_t each : near) ++near_size[each];
    for (const size_t each : far) ++far_size[each];
    std::map<size_t, std::string> top, below;
    const auto add = [&](const std::string& parent, int numa) {
      pb::PcieSwitch& added = *node.add_switches();
      added.set_name(fmt::format("plx{}", node.switches_size() - 1));
      added.mutable_pcie()->set_generation(generation);
      added.mutable_pcie()->set_width(16);
      added.mutable_pcie()->set_parent(parent);
      if (parent.empty()) added.mutable_pcie()->set_numa(static_cast<uint32_t>(numa));
      return added.name();
    };
    parent_.resize(devices_.size());
    for (size_t i = 0; i < devices_.size(); ++i) {
      if (far_size[far[i]] == 1 || dual_port(i)) continue;
      if (near_size[near[i]] == far_size[far[i]]) {
        if (!top.contains(far[i])) top[far[i]] = add("", devices_[i].numa);
        parent_[i] = top[far[i]];
        continue;
      }
      if (!top.contains(far[i])) top[far[i]] = add("", devices_[i].numa);
      if (!below.contains(near[i])) below[near[i]] = add(top[far[i]], devices_[i].numa);
      parent_[i] = below[near[i]];
    }
  }

  // Two functions of one card ("rocep42s0f0", "rocep42s0f1") are PIX without a switch above them.
  [[nodiscard]] std::string card_of(size_t i) const {
    const std::string& name = devices_[i].name;
    const size_t f = name.rfind('f');
    if (devices_[i].gpu || f == std::string::npos || f + 2 != name.size() || f == 0) return {};
    return name.substr(0, f);
  }
  [[nodiscard]] bool dual_port(size_t i) const {
    const std::string card = card_of(i);
    if (card.empty()) return false;
    bool other = false;
    for (size_t b = 0; b < devices_.size(); ++b) {
      const SmiWay way = devices_[i].row[b].way;
      if (b == i || way < SmiWay::kPix || way > SmiWay::kPxb) continue;
      if (card_of(b) != card) return false;
      other = true;
    }
    return other;
  }

  void add_nic(pb::Node& node, size_t i, const pb::PcieLink& link, const Match& match) {
    pb::Nic& nic = *node.add_nics();
    nic.set_name(devices_[i].name);
    nic.set_kind(kind_of(devices_[i].name));
    nic.set_bandwidth(match.node.nics().empty() ? 12.5e9 : match.node.nics(0).bandwidth());
    nic.set_gpudirect(nic.kind() != pb::ETHERNET);
    *nic.mutable_pcie() = link;
    if (dual_port(i)) nic.set_adapter(card_of(i));
    if (std::exchange(rate_assumed_, true)) return;
    assume("speed of the network adapters as in the matching machine; their kind by their names");
    out_.findings.add("unknown-speed", Severity::kWarning, devices_[i].place,
                      "the table does not tell adapter speeds; correct nics[*].bandwidth");
  }

  // `bridged`: the data sheet of the card has no NVLink.
  void pairs(pb::Node& node, bool bridged) {
    uint32_t a = 0;
    for (size_t i = 0; i < devices_.size(); ++i) {
      if (!devices_[i].gpu) continue;
      uint32_t b = 0;
      for (size_t k = 0; k < devices_.size(); ++k) {
        if (!devices_[k].gpu) continue;
        if (k > i && devices_[i].row[k].links > 0) {
          pb::NvlinkPair& pair = *node.add_nvlinks();
          pair.set_a(a);
          pair.set_b(b);
          pair.set_links(devices_[i].row[k].links);
        }
        ++b;
      }
      ++a;
    }
    for (auto& gpu : *node.mutable_gpus()) {
      if (sum_ == 0) break;
      gpu.mutable_nvlink()->set_links(sum_);
      if (!bridged) continue;
      gpu.mutable_nvlink()->set_bandwidth(25e9);
    }
    if (bridged && sum_ > 0) assume("NVLinks of cards sold without them carry 25 GB/s each");
  }

  const ImportText& file_;
  std::vector<SmiDevice> devices_;
  ImportedPlatform& out_;
  int numa_ = 1;
  uint32_t most_ = 0, sum_ = 0;
  bool switched_ = false;
  bool rate_assumed_ = false;
  std::vector<std::string> parent_;
};

}  // namespace

Result<ImportedPlatform> import_nvidia_smi(const ImportText& file, const Machines& machines,
                                           const ImportSettings& settings) {
  RH_TRY(std::vector<SmiDevice> devices, read_smi_table(file));
  std::map<std::string, std::string> names;
  for (const SmiDevice& each : devices) {
    const auto [other, fresh] = names.emplace(each.name, each.place);
    if (!fresh) {
      return bad_input(fmt::format("two devices have the name {}", in_quotes(each.name)),
                       each.place,
                       fmt::format("the first is at {}; run nvidia-smi again", other->second));
    }
  }
  ImportedPlatform out;
  out.format = "nvidia-smi topo -m";
  if (auto ok = Building(file, std::move(devices), out).run(machines, settings); !ok) {
    return tl::unexpected(ok.error());
  }
  return out;
}

}  // namespace rehearse::platforms
