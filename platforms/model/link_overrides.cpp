// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "base/text.hpp"
#include "platforms/model/topology.hpp"

namespace rehearse::platforms {
namespace {

// "leaf3-spine1" and "spine1-leaf3" of a fabric that bundles its spines.
struct SpineLink {
  uint32_t leaf = 0, spine = 0;
  bool up = true;
};

std::optional<SpineLink> parse_spine_link(std::string_view name) {
  SpineLink link;
  const auto take = [&](std::string_view word, uint32_t& value) {
    if (!name.starts_with(word)) return false;
    name.remove_prefix(word.size());
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
    if (error != std::errc{}) return false;
    name.remove_prefix(static_cast<size_t>(end - name.data()));
    return true;
  };
  link.up = name.starts_with("leaf");
  const bool ok = link.up ? take("leaf", link.leaf) && take("-spine", link.spine)
                          : take("spine", link.spine) && take("-leaf", link.leaf);
  if (!ok || !name.empty()) return std::nullopt;
  return link;
}

// Adaptive: the bundle that a link between leaf and spine is part of.
LinkId bundle_of(const FabricTopology& fabric, LinkId id) {
  for (size_t i = 0; i < fabric.leaves.size() && !fabric.bundled.empty(); ++i) {
    if (fabric.leaves[i].out == id) return fabric.bundled[i / fabric.spines].out;
    if (fabric.leaves[i].in == id) return fabric.bundled[i / fabric.spines].in;
  }
  return kNoLink;
}

}  // namespace

Result<void> override_links(const pb::Platform& platform, const Links& index,
                            const FabricTopology& fabric, std::vector<Link>& links) {
  const uint32_t spines = platform.fabric().spines();
  std::map<LinkId, BytesPerSec> whole;  // capacity of a bundle before its parts are overridden
  for (int i = 0; i < platform.fabric().links_size(); ++i) {
    const auto& change = platform.fabric().links(i);
    LinkId id = index.find(change.name());
    const auto part = id == kNoLink ? parse_spine_link(change.name()) : std::nullopt;
    if (part && fabric.spines == 1 && part->leaf < fabric.leaves.size() && part->spine < spines) {
      id = part->up ? fabric.leaves[part->leaf].out : fabric.leaves[part->leaf].in;
      Link& bundle = links[id];
      const BytesPerSec one = whole.emplace(id, bundle.capacity).first->second / spines;
      const BytesPerSec now = change.down() ? 0 : change.bandwidth() > 0 ? change.bandwidth() : one;
      bundle.capacity = std::max(0.0, bundle.capacity - one + now);
      if (bundle.capacity < one * 1e-9) bundle.down = true;
      continue;
    }
    if (id == kNoLink) {
      std::vector<std::string> names;
      names.reserve(links.size());
      for (const Link& link : links) names.push_back(link.name);
      const std::string close = nearest(change.name(), names);
      return fail(Code::kBadInput, fmt::format("there is no link '{}'", change.name()),
                  fmt::format("fabric.links[{}].name", i),
                  close.empty() ? "links are named like node0/mlx5_0/tx or leaf0-up"
                                : fmt::format("did you mean '{}'?", close));
    }
    Link& link = links[id];
    if (const LinkId bundle = bundle_of(fabric, id); bundle != kNoLink) {
      const BytesPerSec now = change.down() ? 0 : change.bandwidth();
      if (change.down() || change.bandwidth() > 0) {
        links[bundle].capacity = std::max(0.0, links[bundle].capacity - link.capacity + now);
      }
    }
    if (change.bandwidth() > 0) link.capacity = change.bandwidth();
    if (change.latency() > 0) link.latency = change.latency();
    link.down = link.down || change.down();
  }
  return {};
}

}  // namespace rehearse::platforms
