// SPDX-License-Identifier: Apache-2.0
#include "sim/efficiency.hpp"

namespace rehearse::sim {
namespace {

using platforms::LinkKind;

double prior(LinkKind kind) {
  switch (kind) {
    case LinkKind::kNvlink:
    case LinkKind::kPcie:
    case LinkKind::kC2c:
      return 0.80;
    case LinkKind::kHost:
      return 0.70;
    case LinkKind::kNic:
    case LinkKind::kSwitch:
      return 0.97;
    case LinkKind::kInterface:
    case LinkKind::kStorage:
      return 0.90;
  }
  return 1;
}

double stated(const pb::Efficiency& efficiency, LinkKind kind) {
  switch (kind) {
    case LinkKind::kNvlink:
      return efficiency.nvlink();
    case LinkKind::kPcie:
    case LinkKind::kHost:
    case LinkKind::kC2c:
      return efficiency.pcie();
    case LinkKind::kNic:
    case LinkKind::kSwitch:
      return efficiency.network();
    case LinkKind::kInterface:
      return efficiency.socket();
    case LinkKind::kStorage:
      return 0;
  }
  return 0;
}

}  // namespace

BytesPerSec effective_capacity(const pb::Platform& platform, const platforms::Link& link) {
  if (link.down) return 0;
  const double given = stated(platform.efficiency(), link.kind);
  return link.capacity * (given > 0 ? given : prior(link.kind));
}

std::vector<BytesPerSec> effective_capacities(const pb::Platform& platform,
                                              const platforms::Links& links) {
  std::vector<BytesPerSec> out;
  out.reserve(links.size());
  for (size_t l = 0; l < links.size(); ++l) {
    out.push_back(effective_capacity(platform, links[static_cast<platforms::LinkId>(l)]));
  }
  return out;
}

}  // namespace rehearse::sim
