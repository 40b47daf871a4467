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
      return 0.92;
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

std::vector<BytesPerSec> effective_capacities(const pb::Platform& platform,
                                              const platforms::Links& links) {
  std::vector<BytesPerSec> out;
  out.reserve(links.size());
  for (size_t l = 0; l < links.size(); ++l) {
    const platforms::Link& link = links[static_cast<platforms::LinkId>(l)];
    const double given = stated(platform.efficiency(), link.kind);
    out.push_back(link.down ? 0 : link.capacity * (given > 0 ? given : prior(link.kind)));
  }
  return out;
}

}  // namespace rehearse::sim
