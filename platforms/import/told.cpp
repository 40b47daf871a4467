// SPDX-License-Identifier: Apache-2.0
#include "platforms/import/told.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "platforms/import/topology_draft.hpp"

namespace rehearse::platforms {
namespace {

using GpuDrafts =
    std::vector<const GpuDraft*>;  // of the node's GPUs, in their order; null: not in the file

// NCCL counts a link of unknown speed as generation 3 x16.
pb::PcieLink as_counted(pb::PcieLink link) {
  if (link.generation() == 0) {
    link.set_generation(3);
    link.set_width(16);
  }
  return link;
}

// Empty when no GPU of the node is in the draft.
GpuDrafts by_bus_id(const pb::Node& node, const NodeDraft& draft) {
  GpuDrafts out;
  bool any = false;
  for (const pb::Gpu& gpu : node.gpus()) {
    const auto at = std::find_if(draft.gpus.begin(), draft.gpus.end(), [&](const GpuDraft& each) {
      return lower_case(each.gpu.bus_id()) == lower_case(gpu.bus_id());
    });
    out.push_back(at == draft.gpus.end() ? nullptr : &*at);
    any |= out.back() != nullptr;
  }
  return any ? out : GpuDrafts{};
}

GpuDrafts by_order(const pb::Node& node, const NodeDraft& draft) {
  if (static_cast<int>(draft.gpus.size()) != node.gpus_size()) return {};
  GpuDrafts out;
  for (const GpuDraft& each : draft.gpus) out.push_back(&each);
  std::stable_sort(out.begin(), out.end(),
                   [](const GpuDraft* a, const GpuDraft* b) { return a->number < b->number; });
  return out;
}

void take_processors(const NodeDraft& draft, const pb::Node& real, pb::Node& out) {
  *out.mutable_numa() = draft.node.numa();
  *out.mutable_switches() = draft.node.switches();
  for (int i = 0; i < out.numa_size() && real.numa_size() > 0; ++i) {
    const pb::NumaDomain& own = real.numa(std::min(i, real.numa_size() - 1));
    pb::NumaDomain& told = *out.mutable_numa(i);
    if (told.arch().empty()) told.set_arch(own.arch());
    if (told.vendor().empty()) told.set_vendor(own.vendor());
    if (told.family() == 0) told.set_family(own.family());
    if (told.model_id() == 0) told.set_model_id(own.model_id());
  }
}

// GPUs that the file does not know NCCL finds itself: below their own processors and switches.
void keep_unknown(const pb::Node& real, const GpuDrafts& drafts, pb::Node& out) {
  if (std::find(drafts.begin(), drafts.end(), nullptr) == drafts.end()) return;
  for (int i = out.numa_size(); i < real.numa_size(); ++i) *out.add_numa() = real.numa(i);
  const auto own_name = [](const std::string& name) {
    return name.empty() ? name : "found-" + name;
  };
  for (const pb::PcieSwitch& each : real.switches()) {
    pb::PcieSwitch& kept = *out.add_switches();
    kept = each;
    kept.set_name(own_name(each.name()));
    kept.mutable_pcie()->set_parent(own_name(each.pcie().parent()));
  }
  for (size_t i = 0; i < drafts.size(); ++i) {
    if (drafts[i] != nullptr) continue;
    pb::PcieLink& pcie = *out.mutable_gpus(static_cast<int>(i))->mutable_pcie();
    pcie.set_parent(own_name(pcie.parent()));
  }
}

// A file that describes GPUs tells all of their NVLinks; of the others NCCL finds them.
void take_nvlinks(const GpuDrafts& drafts, pb::Node& out) {
  const auto first = std::find_if(drafts.begin(), drafts.end(),
                                  [](const GpuDraft* each) { return each != nullptr; });
  if (first == drafts.end() || !(*first)->described) return;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> pairs;
  bool switched = false;
  for (const pb::NvlinkPair& pair : out.nvlinks()) {
    if (drafts[pair.a()] == nullptr || drafts[pair.b()] == nullptr) {
      pairs[{pair.a(), pair.b()}] = pair.links();
    }
  }
  for (uint32_t i = 0; i < drafts.size(); ++i) {
    if (drafts[i] == nullptr) {
      switched |= out.nvswitch().count() > 0;
      continue;
    }
    uint32_t links = 0;
    for (const NvlinkDraft& each : drafts[i]->nvlinks) {
      switched |= each.to_switch;
      if (each.to_switch) {
        links += each.links;
        continue;
      }
      const auto peer = std::find_if(drafts.begin(), drafts.end(), [&](const GpuDraft* other) {
        return other != nullptr && other->gpu.bus_id() == each.target;
      });
      if (peer == drafts.end() || *peer == drafts[i]) continue;
      const auto to = static_cast<uint32_t>(peer - drafts.begin());
      uint32_t& known = pairs[{std::min(i, to), std::max(i, to)}];
      known = std::max(known, each.links);
      links += each.links;
    }
    out.mutable_gpus(static_cast<int>(i))->mutable_nvlink()->set_links(std::min(links, 64U));
  }
  out.clear_nvlinks();
  for (const auto& [pair, links] : pairs) {
    pb::NvlinkPair& added = *out.add_nvlinks();
    added.set_a(pair.first);
    added.set_b(pair.second);
    added.set_links(links);
  }
  if (!switched) out.clear_nvswitch();
  if (switched && out.nvswitch().count() == 0) out.mutable_nvswitch()->set_count(1);
}

void take_adapters(const NodeDraft& draft, pb::Node& out) {
  for (pb::Nic& nic : *out.mutable_nics()) {
    const auto told = std::find_if(draft.nics.begin(), draft.nics.end(), [&](const NicDraft& each) {
      return each.nic.name() == nic.name();
    });
    if (told != draft.nics.end()) {
      *nic.mutable_pcie() = as_counted(told->nic.pcie());
      if (told->rate_told) nic.set_bandwidth(told->nic.bandwidth());
      continue;
    }
    nic.mutable_pcie()->clear_parent();
    const auto last = static_cast<uint32_t>(std::max(0, out.numa_size() - 1));
    nic.mutable_pcie()->set_numa(std::min(nic.pcie().numa(), last));
  }
}

}  // namespace

Result<pb::Node> told_topology(const pb::Node& node, const ImportText& file, Findings& findings) {
  RH_TRY(const XmlFile xml, XmlFile::parse(file.text, file.name));
  if (std::string_view(xml.root().name()) != "system") {
    return bad_input(fmt::format("the root is <{}>, not <system>", xml.root().name()),
                     xml.place(xml.root()), "give a file written by NCCL_TOPO_DUMP_FILE");
  }
  RH_TRY(const std::vector<NodeDraft> drafts, read_topology(xml, findings));
  for (const NodeDraft& draft : drafts) {
    GpuDrafts gpus = by_bus_id(node, draft);
    const bool all_known =
        !gpus.empty() && std::find(gpus.begin(), gpus.end(), nullptr) == gpus.end();
    if (!all_known && drafts.size() == 1) {
      if (GpuDrafts in_order = by_order(node, draft); !in_order.empty()) {
        gpus = std::move(in_order);
        findings.add("nccl-file", Severity::kInfo, file.name,
                     "it does not know all bus ids of the platform; its GPUs are taken in order");
      }
    }
    if (gpus.empty()) continue;
    const auto unknown = std::count(gpus.begin(), gpus.end(), nullptr);
    if (unknown > 0) {
      findings.add("nccl-file", Severity::kWarning, file.name,
                   fmt::format("it does not have {} of the {} GPUs of the node, which NCCL then "
                               "looks for itself",
                               unknown, node.gpus_size()));
    }
    pb::Node out = node;
    take_processors(draft, node, out);
    keep_unknown(node, gpus, out);
    for (int i = 0; i < out.gpus_size(); ++i) {
      if (gpus[static_cast<size_t>(i)] == nullptr) continue;
      const pb::Gpu& told = gpus[static_cast<size_t>(i)]->gpu;
      *out.mutable_gpus(i)->mutable_pcie() = as_counted(told.pcie());
      if (told.compute_capability() > 0) {
        out.mutable_gpus(i)->set_compute_capability(told.compute_capability());
      }
    }
    take_nvlinks(gpus, out);
    take_adapters(draft, out);
    return out;
  }
  findings.add("nccl-file", Severity::kWarning, file.name,
               "it does not have the GPUs of the node, which NCCL then looks "
               "for itself; what it says of others it leaves out, and it changes nothing");
  return node;
}

}  // namespace rehearse::platforms
