// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "platforms/model/address.hpp"
#include "platforms/model/catalogue.hpp"
#include "platforms/model/check.hpp"
#include "platforms/model/devices.hpp"
#include "platforms/model/ip.hpp"

namespace rehearse::platforms {
namespace {

constexpr uint64_t kMaxNodes = 65536;
constexpr uint64_t kMaxDevices = 4u << 20;
constexpr uint64_t kMaxPerNode = 2048;

template <typename List>
Result<void> check_count(const List& list, const char* field, const std::string& path) {
  uint64_t sum = 0;
  for (const auto& each : list) sum += std::max(each.count(), 1u);
  if (sum <= kMaxPerNode) return {};
  return fail(Code::kLimit,
              fmt::format("{} {} in one node, at most {} are supported", sum, field, kMaxPerNode),
              fmt::format("{}.{}", path, field), "lower the counts");
}

Result<void> check_counts(const pb::Node& node, const std::string& path) {
  if (auto ok = check_count(node.switches(), "switches", path); !ok) return ok;
  if (auto ok = check_count(node.gpus(), "gpus", path); !ok) return ok;
  if (auto ok = check_count(node.nics(), "nics", path); !ok) return ok;
  return check_count(node.interfaces(), "interfaces", path);
}

// For each node wanted, the written node it is a copy of.
Result<std::vector<int>> layout(const pb::Platform& platform, const std::string& where) {
  std::vector<int> order;
  for (int i = 0; i < platform.nodes_size(); ++i) {
    const uint32_t count = std::max(platform.nodes(i).count(), 1u);
    if (order.size() + count > kMaxNodes) {
      return fail(Code::kLimit, fmt::format("more than {} nodes", kMaxNodes),
                  fmt::format("{}: nodes[{}].count", where, i), "simulate a part of the cluster");
    }
    order.insert(order.end(), count, i);
  }
  if (platform.scale() > kMaxNodes) {
    return fail(Code::kLimit, fmt::format("more than {} nodes", kMaxNodes), where + ": scale",
                "simulate a part of the cluster");
  }
  const size_t written = order.size();
  if (platform.scale()) order.resize(platform.scale());
  for (size_t i = written; i < order.size(); ++i) order[i] = order[i % written];
  return order;
}

Result<void> fill_node(pb::Node& node, uint64_t index, const std::string& path) {
  node.clear_count();
  node.clear_like();
  node.set_name(fill(node.name(), 'i', index));
  if (!node.nvswitch().domain().empty()) {
    node.mutable_nvswitch()->set_domain(fill(node.nvswitch().domain(), 'i', index));
  }
  for (int i = 0; i < node.interfaces_size(); ++i) {
    auto& interface = *node.mutable_interfaces(i);
    for (int k = 0; k < interface.addresses_size(); ++k) {
      std::string& text = *interface.mutable_addresses(k);
      std::string filled = nth_address(text, index);
      if (filled.empty()) {
        return fail(Code::kBadInput,
                    fmt::format("there is no address left for node {} in '{}'", index, text),
                    fmt::format("{}.interfaces[{}].addresses[{}]", path, i, k),
                    "write a shorter prefix, e.g. /16");
      }
      text = std::move(filled);
    }
  }
  for (auto& each : *node.mutable_hosts()) {
    each.set_name(fill(each.name(), 'i', index));
    each.set_address(nth_address(each.address(), index));
  }
  return {};
}

void collect_sources(pb::Node& node, pb::Platform& platform) {
  for (auto& gpu : *node.mutable_gpus()) {
    for (auto& source : *gpu.mutable_sources()) {
      const bool known = std::any_of(
          platform.sources().begin(), platform.sources().end(), [&](const pb::Source& other) {
            return other.figure() == source.figure() && other.url() == source.url();
          });
      if (!known) *platform.add_sources() = std::move(source);
    }
    gpu.clear_sources();
  }
}

void fabric(pb::Platform& platform, std::vector<std::string>& assumptions) {
  pb::Fabric& fabric = *platform.mutable_fabric();
  if (fabric.kind() == pb::FABRIC_KIND_UNSPECIFIED) {
    const bool alone = platform.nodes_size() == 1;
    fabric.set_kind(alone ? pb::NO_FABRIC : pb::SINGLE_SWITCH);
    if (!alone)
      assumptions.push_back("all NICs are on one non-blocking switch: no fabric is written");
  }
  if (fabric.oversubscription() == 0) fabric.set_oversubscription(1);
  if (fabric.hop_latency() == 0 && fabric.kind() != pb::NO_FABRIC) {
    bool infiniband = false;
    for (const auto& nic : platform.nodes(0).nics()) {
      infiniband = infiniband || nic.kind() == pb::INFINIBAND;
    }
    fabric.set_hop_latency(infiniband ? 130 : 500);
    assumptions.push_back(fmt::format("one switch takes {} ns", fabric.hop_latency()));
  }
}

}  // namespace

Result<void> expand(pb::Platform& platform, const std::string& where) {
  if (platform.nodes().empty()) {
    return fail(Code::kBadInput, "the platform has no nodes", where + ": nodes",
                "write nodes:, or like: with a catalogue id");
  }
  RH_TRY(const std::vector<int> order, layout(platform, where));
  std::vector<std::string> assumptions(platform.assumptions().begin(),
                                       platform.assumptions().end());
  std::vector<uint32_t> uses(platform.nodes_size());
  for (const int each : order) ++uses[each];

  google::protobuf::RepeatedPtrField<pb::Node> written;
  written.Swap(platform.mutable_nodes());
  for (int i = 0; i < written.size(); ++i) {
    pb::Node& node = written[i];
    if (auto ok = check_counts(node, fmt::format("{}: nodes[{}]", where, i)); !ok) return ok;
    collect_sources(node, platform);
    expand_devices(node, assumptions);
    if (node.name().empty()) node.set_name("node");
    if (node.name().find("{i") == std::string::npos && (uses[i] > 1 || node.name() == "node")) {
      node.set_name(node.name() + "{i}");
    }
  }
  uint64_t devices = 0;
  for (const int each : order) devices += written[each].gpus_size() + written[each].nics_size();
  if (devices > kMaxDevices) {
    return fail(Code::kLimit,
                fmt::format("{} GPUs and NICs, at most {} are supported", devices, kMaxDevices),
                where + ": nodes", "simulate a part of the cluster");
  }
  std::vector<bool> checked(written.size());
  platform.mutable_nodes()->Reserve(static_cast<int>(order.size()));
  for (size_t i = 0; i < order.size(); ++i) {
    pb::Node& node = *platform.add_nodes();
    node = written[order[i]];
    const std::string path = fmt::format("{}: nodes[{}]", where, i);
    if (auto ok = fill_node(node, i, path); !ok) return ok;
    if (auto ok = check_addresses(node, path); !ok) return ok;
    if (checked[order[i]]) continue;
    if (auto ok = check_devices(node, path); !ok) return ok;
    checked[order[i]] = true;
  }
  platform.clear_scale();
  if (platform.name().empty()) platform.set_name(platform.like());
  platform.clear_like();
  if (auto ok = check_between(platform, where); !ok) return ok;
  int i = 0;
  for (auto& each : *platform.mutable_storage()) {
    if (each.name().empty()) each.set_name(fmt::format("storage{}", i));
    ++i;
  }
  if (auto ok = check_networks(platform, where); !ok) return ok;
  add_host_names(platform);
  add_default_routes(platform);
  fabric(platform, assumptions);
  platform.clear_assumptions();
  for (auto& each : assumptions) platform.add_assumptions(std::move(each));
  return {};
}

}  // namespace rehearse::platforms
