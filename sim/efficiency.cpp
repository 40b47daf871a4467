// SPDX-License-Identifier: Apache-2.0
#include "sim/efficiency.hpp"

namespace rehearse::sim {

using platforms::LinkKind;

double prior_link_share(LinkKind kind) {
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

double link_share(const pb::Efficiency& stated, LinkKind kind) {
  const double prior = prior_link_share(kind);
  double given = 0;
  switch (kind) {
    case LinkKind::kNvlink:
      given = stated.nvlink();
      break;
    case LinkKind::kPcie:
    case LinkKind::kHost:
    case LinkKind::kC2c:
      given = stated.pcie() * prior / prior_link_share(LinkKind::kPcie);
      break;
    case LinkKind::kNic:
    case LinkKind::kSwitch:
      given = stated.network();
      break;
    case LinkKind::kInterface:
      given = stated.socket();
      break;
    case LinkKind::kStorage:
      break;
  }
  return given > 0 ? given : prior;
}

BytesPerSec effective_capacity(const pb::Platform& platform, const platforms::Link& link) {
  if (link.down) return 0;
  return link.capacity * link_share(platform.efficiency(), link.kind) * link.payload;
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
