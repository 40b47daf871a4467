// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "platforms/model/topology.hpp"

namespace rehearse::platforms {
namespace {

constexpr uint64_t kMaxFabricLinks = 4u << 20;

class FabricBuilder {
 public:
  FabricBuilder(const pb::Platform& platform, Draft& draft)
      : platform_(platform),
        fabric_(platform.fabric()),
        draft_(draft),
        out_(draft.topology.fabric) {}

  Result<void> run() {
    out_.kind = fabric_.kind();
    if (out_.kind == pb::FABRIC_KIND_UNSPECIFIED) out_.kind = pb::NO_FABRIC;
    assign_leaves();
    switch (out_.kind) {
      case pb::NO_FABRIC:
        if (platform_.nodes_size() > 1) out_.none = add_missing("no-fabric");
        return {};
      case pb::RAIL_ONLY:
        if (below_.size() > 1) out_.none = add_missing("no-spine");
        return {};
      case pb::SINGLE_SWITCH:
        return {};
      default:
        break;
    }
    if (auto ok = add_leaves(); !ok) return ok;
    if (out_.kind == pb::FAT_TREE) add_pods();
    return out_.kind == pb::DRAGONFLY ? add_bundles() : Result<void>{};
  }

 private:
  // Which leaf each NIC is cabled to, and the sum of what hangs below each leaf.
  void assign_leaves() {
    const auto nodes = static_cast<uint32_t>(platform_.nodes_size());
    const uint32_t per_leaf =
        fabric_.nodes_per_leaf() ? std::min(fabric_.nodes_per_leaf(), nodes) : nodes;
    int32_t rails = 1;
    if (out_.kind == pb::RAIL_OPTIMISED || out_.kind == pb::RAIL_ONLY) {
      for (const auto& node : platform_.nodes()) {
        for (const auto& nic : node.nics()) rails = std::max(rails, nic.rail() + 1);
      }
    }
    const uint32_t groups = per_leaf ? (nodes + per_leaf - 1) / per_leaf : 1;
    if (out_.kind != pb::NO_FABRIC && out_.kind != pb::SINGLE_SWITCH) {
      below_.assign(static_cast<size_t>(groups) * static_cast<size_t>(rails), 0);
    }
    for (uint32_t n = 0; n < nodes; ++n) {
      NodeTopology& node = draft_.topology.nodes[n];
      for (const auto& nic : platform_.nodes(static_cast<int>(n)).nics()) {
        uint32_t leaf = 0;
        if (!below_.empty()) {
          const int32_t rail = rails > 1 ? std::max(nic.rail(), 0) : 0;
          leaf = n / per_leaf * static_cast<uint32_t>(rails) + static_cast<uint32_t>(rail);
          below_[leaf] += nic.bandwidth();
          widest_ = std::max(widest_, nic.bandwidth());
        }
        node.leaf.push_back(leaf);
      }
    }
  }

  [[nodiscard]] double oversubscription() const {
    return std::max(fabric_.oversubscription(), 1.0);
  }

  // Stands where there is no wire.
  LinkId add_missing(std::string name) {
    return draft_.add(
        {.name = std::move(name), .kind = LinkKind::kSwitch, .capacity = 0, .down = true});
  }

  LinkId add(std::string name, BytesPerSec capacity) {
    return draft_.add({.name = std::move(name),
                       .kind = LinkKind::kSwitch,
                       .capacity = capacity,
                       .latency = fabric_.hop_latency()});
  }

  // One uplink as fast as the fastest NIC per spine, where the number of spines is not written.
  [[nodiscard]] uint32_t count_spines() const {
    if (fabric_.spines()) return fabric_.spines();
    const double most = below_.empty() ? 0 : *std::max_element(below_.begin(), below_.end());
    const double ports = widest_ > 0 ? most / oversubscription() / widest_ : 1;
    return static_cast<uint32_t>(std::clamp(ports, 1.0, 1024.0));
  }

  Result<void> add_leaves() {
    const uint32_t spines = count_spines();
    const bool adaptive = fabric_.adaptive() && spines > 1;
    const bool hashed = adaptive || (fabric_.ecmp() && spines > 1);
    out_.spines = hashed ? spines : 1;
    if (below_.size() * out_.spines > kMaxFabricLinks) {
      return fail(Code::kLimit,
                  fmt::format("{} leaves with {} spines are too many links", below_.size(), spines),
                  "fabric.spines", "write fewer spines, or ecmp: false to bundle them");
    }
    for (size_t leaf = 0; leaf < below_.size(); ++leaf) {
      const BytesPerSec up = below_[leaf] / oversubscription();
      if (!hashed) {
        const LinkId out = add(fmt::format("leaf{}-up", leaf), up);
        out_.leaves.push_back({out, add(fmt::format("leaf{}-down", leaf), up)});
        continue;
      }
      if (adaptive) {
        const LinkId out = add(fmt::format("leaf{}-up", leaf), up);
        out_.bundled.push_back({out, add(fmt::format("leaf{}-down", leaf), up)});
      }
      for (uint32_t spine = 0; spine < spines; ++spine) {
        const LinkId out = add(fmt::format("leaf{}-spine{}", leaf, spine), up / spines);
        const LinkId in = add(fmt::format("spine{}-leaf{}", spine, leaf), up / spines);
        // The bundle carries the latency of the hop.
        if (adaptive) draft_.links[out].latency = draft_.links[in].latency = 0;
        out_.leaves.push_back({out, in});
      }
    }
    return {};
  }

  size_t group_leaves() {
    const auto all = static_cast<uint32_t>(below_.size());
    out_.leaves_per_group = fabric_.leaves_per_group() ? fabric_.leaves_per_group() : all;
    out_.groups = (all + out_.leaves_per_group - 1) / out_.leaves_per_group;
    return out_.groups;
  }

  [[nodiscard]] BytesPerSec up_of_group(uint32_t group) const {
    BytesPerSec sum = 0;
    for (size_t leaf = size_t{group} * out_.leaves_per_group;
         leaf < std::min<size_t>(below_.size(), (size_t{group} + 1) * out_.leaves_per_group);
         ++leaf) {
      sum += below_[leaf] / oversubscription();
    }
    return sum;
  }

  // The core layer: as much as the leaves of a pod send up.
  void add_pods() {
    if (group_leaves() < 2) return;
    for (uint32_t pod = 0; pod < out_.groups; ++pod) {
      const LinkId out = add(fmt::format("pod{}-up", pod), up_of_group(pod));
      out_.pods.push_back({out, add(fmt::format("pod{}-down", pod), up_of_group(pod))});
    }
  }

  Result<void> add_bundles() {
    const size_t groups = group_leaves();
    if (groups < 2) return {};
    if (groups * groups > kMaxFabricLinks) {
      return fail(Code::kLimit, fmt::format("{} dragonfly groups are too many links", groups),
                  "fabric.leaves_per_group", "put more leaves into a group");
    }
    out_.bundles = static_cast<LinkId>(draft_.links.size());
    for (uint32_t a = 0; a < groups; ++a) {
      const BytesPerSec share = up_of_group(a) / static_cast<double>(groups - 1);
      for (uint32_t b = 0; b < groups; ++b) {
        if (a == b) continue;
        add(fmt::format("group{}-group{}", a, b),
            fabric_.global_bandwidth() > 0 ? fabric_.global_bandwidth() : share);
      }
    }
    return {};
  }

  const pb::Platform& platform_;
  const pb::Fabric& fabric_;
  Draft& draft_;
  FabricTopology& out_;
  std::vector<BytesPerSec> below_;
  BytesPerSec widest_ = 0;
};

}  // namespace

Result<void> add_fabric(const pb::Platform& platform, Draft& draft) {
  return FabricBuilder(platform, draft).run();
}

}  // namespace rehearse::platforms
