// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <unordered_map>

#include "sim/outcome/link_traffic.hpp"

namespace rehearse::sim {

std::vector<std::vector<double>> use_over_time(LinkTraffic& traffic, Nanos end_time,
                                               std::span<const LinkId> links, int slices) {
  const double slice = static_cast<double>(end_time) / slices;
  if (!(slice > 0) || links.empty()) return {};
  std::map<LinkId, size_t> rows;
  for (size_t i = 0; i < links.size(); ++i) rows[links[i]] = i;
  // By load: the rows it is on, with bytes. Calls of a shape have one.
  std::unordered_map<const ShapeLoad*, std::vector<std::pair<size_t, double>>> loads;
  std::vector<std::vector<double>> out(links.size(),
                                       std::vector<double>(static_cast<size_t>(slices), 0));
  for (const LinkTraffic::Mover& mover : traffic.movers()) {
    const auto [at, fresh] = loads.try_emplace(mover.load);
    for (size_t i = 0; fresh && i < mover.load->bytes.size(); ++i) {
      const auto& [link, load] = mover.load->bytes[i];
      if (const auto row = rows.find(link); row != rows.end()) {
        at->second.emplace_back(row->second, load);
      }
    }
    if (at->second.empty()) continue;
    const int first = std::clamp(static_cast<int>(mover.from / slice), 0, slices - 1);
    const int last = std::clamp(static_cast<int>(mover.until / slice), first, slices - 1);
    for (int s = first; s <= last; ++s) {
      for (const auto& [row, load] : at->second) {
        out[row][static_cast<size_t>(s)] +=
            load * traffic.part(mover, links[row], s * slice, (s + 1) * slice);
      }
    }
  }
  for (size_t i = 0; i < links.size(); ++i) {
    for (int s = 0; s < slices; ++s) {
      double& load = out[i][static_cast<size_t>(s)];
      const double room = traffic.history().nominal_room(links[i], s * slice, (s + 1) * slice);
      load = load > 0 && room > 0 ? load / room : 0;
    }
  }
  return out;
}

}  // namespace rehearse::sim
