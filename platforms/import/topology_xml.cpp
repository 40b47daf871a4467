// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "base/units.hpp"
#include "platforms/import/import.hpp"
#include "platforms/import/topology_draft.hpp"
#include "platforms/model/pcie.hpp"

namespace rehearse::platforms {
namespace {

// NCCL counts a PCIe link of unknown speed as generation 3 x16.
constexpr uint32_t kUnknownGeneration = 3;

class Completion {
 public:
  Completion(const Machines& machines, const ImportSettings& settings, std::string file,
             ImportedPlatform& out)
      : machines_(machines), settings_(settings), file_(std::move(file)), out_(out) {}

  Result<void> run(std::vector<NodeDraft> drafts) {
    for (NodeDraft& draft : drafts) {
      if (auto ok = node(draft); !ok) return ok;
    }
    return {};
  }

 private:
  void assume(const std::string& text) {
    const auto& known = out_.platform.assumptions();
    if (std::find(known.begin(), known.end(), text) == known.end()) {
      out_.platform.add_assumptions(text);
    }
    out_.findings.add("assumed", Severity::kInfo, fmt::format("{}: {}", file_, text),
                      "check the assumptions of the platform and correct them");
  }

  Result<void> node(NodeDraft& draft) {
    class_unknown(draft);
    if (draft.gpus.empty()) {
      return fail(Code::kBadInput, "the topology has no GPU", file_,
                  "dump it with NCCL_TOPO_DUMP_FILE while a job runs");
    }
    if (auto ok = number(draft); !ok) return ok;
    const Seen seen = facts(draft);
    RH_TRY(const Match match, best_match(machines_, seen));
    if (auto ok = data_sheets(draft, match); !ok) return ok;
    if (auto ok = nvlinks(draft, match); !ok) return ok;
    adapters(draft);
    surroundings(draft, match);
    pb::Node& node = *out_.platform.add_nodes();
    node = std::move(draft.node);
    for (GpuDraft& gpu : draft.gpus) *node.add_gpus() = std::move(gpu.gpu);
    for (NicDraft& nic : draft.nics) *node.add_nics() = std::move(nic.nic);
    if (out_.platform.nodes_size() == 1) {
      *out_.platform.mutable_fabric() = match.platform.fabric();
      *out_.platform.mutable_storage() = match.platform.storage();
      assume(fmt::format("fabric, storage, memory and LAN are those of {}", match.id));
    }
    return {};
  }

  // Files for virtual machines may leave out what a device is: NCCL asks the machine.
  void class_unknown(NodeDraft& draft) {
    if (draft.unknown.empty()) return;
    if (!draft.gpus.empty()) {
      out_.findings.add("unknown-device", Severity::kWarning, draft.unknown[0].place,
                        "a PCI device without class is left out; write its class",
                        draft.unknown.size());
      return;
    }
    std::vector<size_t> per_numa(static_cast<size_t>(draft.node.numa_size()));
    for (const UnknownDraft& each : draft.unknown) ++per_numa[each.pcie.numa()];
    size_t fewest = SIZE_MAX;
    for (const size_t n : per_numa) {
      if (n > 0) fewest = std::min(fewest, n);
    }
    std::vector<size_t> taken(per_numa.size());
    for (UnknownDraft& each : draft.unknown) {
      if (taken[each.pcie.numa()]++ < fewest) {
        GpuDraft gpu;
        gpu.place = each.place;
        gpu.gpu.set_bus_id(each.bus_id);
        *gpu.gpu.mutable_pcie() = each.pcie;
        draft.gpus.push_back(std::move(gpu));
      } else {
        NicDraft nic;
        nic.place = each.place;
        nic.nic.set_name(fmt::format("nic{}", draft.nics.size()));
        nic.nic.set_kind(pb::ETHERNET);
        *nic.nic.mutable_pcie() = each.pcie;
        draft.nics.push_back(std::move(nic));
      }
    }
    assume(
        fmt::format("the file does not say what its devices are: {} GPUs per processor, the rest "
                    "are network adapters",
                    fewest));
  }

  Result<void> number(NodeDraft& draft) {
    const bool all = std::all_of(draft.gpus.begin(), draft.gpus.end(),
                                 [](const GpuDraft& gpu) { return gpu.number >= 0; });
    if (!all) return {};
    std::stable_sort(draft.gpus.begin(), draft.gpus.end(),
                     [](const GpuDraft& a, const GpuDraft& b) { return a.number < b.number; });
    for (size_t i = 0; i < draft.gpus.size(); ++i) {
      if (i > 0 && draft.gpus[i].number == draft.gpus[i - 1].number) {
        return fail(Code::kBadInput,
                    fmt::format("two GPUs have the device number {}", draft.gpus[i].number),
                    draft.gpus[i].place,
                    fmt::format("the other is at {}; renumber one", draft.gpus[i - 1].place));
      }
      if (draft.gpus[i].number != static_cast<int64_t>(i)) {
        out_.findings.add(
            "gpu-numbers", Severity::kInfo,
            fmt::format("{}: device {} is GPU {}", draft.gpus[i].place, draft.gpus[i].number, i),
            "GPUs of a platform count from 0 without gaps");
      }
    }
    return {};
  }

  [[nodiscard]] Seen facts(const NodeDraft& draft) const {
    Seen seen;
    seen.gpus = static_cast<uint32_t>(draft.gpus.size());
    const GpuDraft& gpu = draft.gpus.front();
    seen.compute_capability = gpu.gpu.compute_capability();
    seen.pcie_generation = gpu.gpu.pcie().generation();
    seen.numa = static_cast<uint32_t>(draft.node.numa_size());
    if (!draft.node.numa().empty()) seen.cpu_vendor = draft.node.numa(0).vendor();
    seen.nics = static_cast<uint32_t>(draft.nics.size());
    if (!draft.nics.empty()) {
      seen.nic_bandwidth = draft.nics[0].nic.bandwidth();
      seen.nic_kind = draft.nics[0].nic.kind();
    }
    if (gpu.described) {
      seen.nvlink = !gpu.nvlinks.empty();
      seen.nvswitch = std::any_of(gpu.nvlinks.begin(), gpu.nvlinks.end(),
                                  [](const NvlinkDraft& each) { return each.to_switch; });
    }
    const std::string sheet = sheet_of(gpu);
    if (!sheet.empty()) {
      if (const pb::Gpu* known = machines_.gpu(sheet)) seen.gpu_model = known->model();
    }
    return seen;
  }

  [[nodiscard]] std::string sheet_of(const GpuDraft& gpu) const {
    if (std::string id = gpu_by_pci_id(gpu.vendor, gpu.device); !id.empty()) return id;
    const std::string& arch = gpu.architecture;  // "gfx942", or in older files "910"
    if (arch.starts_with("gfx94") || arch.starts_with("94")) return "mi300x";
    if (arch.starts_with("gfx90a") || arch == "910") return "mi250x-gcd";
    return settings_.gpu;
  }

  Result<void> data_sheets(NodeDraft& draft, const Match& match) {
    for (GpuDraft& gpu : draft.gpus) {
      std::string id = sheet_of(gpu);
      const bool foreign = !gpu.architecture.empty() || gpu.vendor == 0x1002;
      if (id.empty() && !foreign) {
        id = gpu_by_name(machines_, match.node.gpus(0).model(), match.node.gpus(0).memory());
        const uint32_t told = gpu.gpu.compute_capability();
        if (told > 0 && told != match.node.gpus(0).compute_capability()) {
          id.clear();
        } else {
          assume(fmt::format("GPUs are {}, as in {}: the file does not name them", id, match.id));
        }
      }
      if (id.empty()) {
        gpu.gpu.set_model(
            foreign ? fmt::format("AMD GPU {:04x} {}", gpu.device, gpu.architecture)
                    : fmt::format("GPU of compute capability {}", gpu.gpu.compute_capability()));
        assume(
            fmt::format("the data sheet of {} is not known: FLOPs, memory and clocks are left out",
                        gpu.gpu.model()));
        out_.findings.add("unknown-gpu", Severity::kWarning, gpu.place,
                          "write its data sheet into the platform, or give --gpu ID");
      } else {
        const pb::Gpu* known = machines_.gpu(id);
        if (known == nullptr) {
          return fail(Code::kMissingInput,
                      fmt::format("there is no GPU {} in the catalogue", in_quotes(id)), file_,
                      "platforms/catalogue/gpus lists the data sheets");
        }
        const pb::Gpu& sheet = *known;
        gpu.gpu.set_like(id);
        if (gpu.gpu.compute_capability() == sheet.compute_capability()) {
          gpu.gpu.clear_compute_capability();
        }
        rate(*gpu.gpu.mutable_pcie(), bandwidth_of(sheet.pcie()));
      }
      if (gpu.gpu.pcie().generation() == 0 && gpu.gpu.pcie().bandwidth() == 0) {
        rate(*gpu.gpu.mutable_pcie(), 0);
      }
    }
    return {};
  }

  // NCCL's view of a link of unknown speed, and what it really carries where that is known.
  void rate(pb::PcieLink& link, BytesPerSec real) {
    if (link.generation() != 0) return;
    link.set_generation(kUnknownGeneration);
    if (link.width() == 0) link.set_width(16);
    if (real > bandwidth_of(link)) link.set_bandwidth(real);
    assume(
        "PCIe links without a speed in the file: NCCL counts generation 3 x16, the data sheet is "
        "what they carry");
  }

  Result<void> nvlinks(NodeDraft& draft, const Match& match) {
    if (!draft.gpus.front().described) return nvlinks_like(draft, match);
    std::set<std::string> switches;
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> pairs;
    for (uint32_t i = 0; i < draft.gpus.size(); ++i) {
      uint32_t links = 0;
      for (const NvlinkDraft& each : draft.gpus[i].nvlinks) {
        if (each.to_switch) {
          switches.insert(each.target);
          links += each.links;
          continue;
        }
        const auto peer =
            std::find_if(draft.gpus.begin(), draft.gpus.end(),
                         [&](const GpuDraft& gpu) { return gpu.gpu.bus_id() == each.target; });
        if (peer == draft.gpus.end()) {
          out_.findings.add("nvlink-elsewhere", Severity::kInfo,
                            fmt::format("{}: to {}", each.place, in_quotes(each.target)),
                            "its other end is no GPU of this file; the link is left out");
          continue;
        }
        const auto to = static_cast<uint32_t>(peer - draft.gpus.begin());
        if (to == i) {
          out_.findings.add("nvlink-to-itself", Severity::kWarning, each.place,
                            "a link from a GPU to itself joins nothing; it is left out");
          continue;
        }
        links += each.links;
        uint32_t& known = pairs[{std::min(i, to), std::max(i, to)}];
        known = std::max(known, each.links);
      }
      if (links > 64) {
        return fail(Code::kBadInput, fmt::format("a GPU has {} NVLinks", links),
                    draft.gpus[i].place, "no GPU has more than 64; correct the counts");
      }
      set_nvlink(draft.gpus[i].gpu, links);
    }
    for (const auto& [pair, links] : pairs) {
      pb::NvlinkPair& added = *draft.node.add_nvlinks();
      added.set_a(pair.first);
      added.set_b(pair.second);
      added.set_links(links);
    }
    if (switches.empty()) return {};
    const uint32_t cc = draft.gpus.front().gpu.compute_capability() != 0
                            ? draft.gpus.front().gpu.compute_capability()
                            : match.node.gpus(0).compute_capability();
    pb::NvSwitch& added = *draft.node.mutable_nvswitch();
    added.set_count(static_cast<uint32_t>(std::min<size_t>(switches.size(), 64)));
    added.set_generation(cc >= 100 ? 4 : cc >= 90 ? 3 : cc >= 80 ? 2 : 1);
    added.set_sharp(cc >= 90);
    if (cc >= 90) assume("NVSwitches of this generation reduce in the switch (NVLink SHARP)");
    return {};
  }

  void set_nvlink(pb::Gpu& gpu, uint32_t links) {
    if (links == 0) return;
    gpu.mutable_nvlink()->set_links(links);
    if (!gpu.like().empty()) {
      const pb::Gpu* sheet = machines_.gpu(gpu.like());
      if (sheet != nullptr && (sheet->nvlink().bandwidth() > 0 || sheet->nvlink().generation() > 0))
        return;
    }
    gpu.mutable_nvlink()->set_bandwidth(25e9);
    assume("links between GPUs whose data sheet has none carry 25 GB/s each");
  }

  Result<void> nvlinks_like(NodeDraft& draft, const Match& match) {
    const bool same = match.node.gpus_size() == static_cast<int>(draft.gpus.size());
    if (match.node.nvswitch().count() > 0) {
      *draft.node.mutable_nvswitch() = match.node.nvswitch();
      assume(fmt::format("NVSwitches as in {}: the file does not tell NVLinks", match.id));
    } else if (same && !match.node.nvlinks().empty()) {
      *draft.node.mutable_nvlinks() = match.node.nvlinks();
      assume(fmt::format("NVLinks as in {}: the file does not tell them", match.id));
    }
    return {};
  }

  void adapters(NodeDraft& draft) {
    // Graph files name adapters by the plugin's number.
    std::stable_sort(draft.nics.begin(), draft.nics.end(),
                     [](const NicDraft& a, const NicDraft& b) { return a.number < b.number; });
    const bool direct = std::all_of(draft.gpus.begin(), draft.gpus.end(),
                                    [](const GpuDraft& gpu) { return gpu.gdr; });
    for (NicDraft& each : draft.nics) {
      pb::Nic& nic = each.nic;
      if (!direct) nic.set_gpudirect(false);
      if (nic.bandwidth() == 0) {
        const BytesPerSec limit = bandwidth_of(nic.pcie());
        nic.set_bandwidth(limit >= 50e9 ? 50e9 : limit >= 25e9 ? 25e9 : 12.5e9);
        assume(
            fmt::format("adapters without a speed in the file run at {}, as much as their PCIe "
                        "link carries",
                        format_bandwidth(nic.bandwidth())));
        out_.findings.add("unknown-speed", Severity::kWarning, each.place,
                          "the file does not tell the adapter's speed; correct its bandwidth");
      } else if (!each.rate_told) {
        assume(fmt::format("adapter speed of {} by its PCI id", format_bandwidth(nic.bandwidth())));
      }
      if (nic.pcie().generation() == 0) rate(*nic.mutable_pcie(), nic.bandwidth());
    }
  }

  // What no topology file has: memory, disks, addresses.
  void surroundings(NodeDraft& draft, const Match& match) {
    pb::Node& node = draft.node;
    node.set_model(match.node.model());
    node.set_memory(match.node.memory());
    *node.mutable_storage() = match.node.storage();
    for (auto& numa : *node.mutable_numa()) {
      if (match.node.numa().empty()) break;
      numa.set_memory_bandwidth(match.node.numa(0).memory_bandwidth());
      numa.set_interconnect(match.node.numa(0).interconnect());
      if (numa.vendor().empty()) numa.set_vendor(match.node.numa(0).vendor());
      if (numa.arch().empty()) numa.set_arch(match.node.numa(0).arch());
    }
    const bool lan = std::any_of(node.interfaces().begin(), node.interfaces().end(),
                                 [](const pb::Interface& each) { return each.kind() == pb::LAN; });
    if (!lan) {
      pb::Interface& added = *node.add_interfaces();
      added.set_name("eth0");
      added.set_kind(pb::LAN);
      added.set_bandwidth(1.25e9);
      assume("a LAN interface eth0 of 10 Gbit/s");
    }
    int next = 0;
    for (auto& each : *node.mutable_interfaces()) {
      if (each.kind() == pb::LAN) each.add_addresses(fmt::format("10.{}.0.{{i}}/16", next++));
    }
  }

  const Machines& machines_;
  const ImportSettings& settings_;
  std::string file_;
  ImportedPlatform& out_;
};

}  // namespace

Result<ImportedPlatform> import_nccl_topology(const ImportText& file, const Machines& machines,
                                              const ImportSettings& settings) {
  RH_TRY(const XmlFile xml, XmlFile::parse(file.text, file.name));
  if (std::string_view(xml.root().name()) != "system") {
    return fail(Code::kBadInput, fmt::format("the root is <{}>, not <system>", xml.root().name()),
                xml.place(xml.root()), "give a file written by NCCL_TOPO_DUMP_FILE");
  }
  ImportedPlatform out;
  out.format = "NCCL topology";
  RH_TRY(std::vector<NodeDraft> drafts, read_topology(xml, out.findings));
  if (auto ok = Completion(machines, settings, file.name, out).run(std::move(drafts)); !ok) {
    return tl::unexpected(ok.error());
  }
  return out;
}

}  // namespace rehearse::platforms
