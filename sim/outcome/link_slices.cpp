// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "sim/outcome/loads.hpp"

namespace rehearse::sim {

std::vector<std::vector<double>> use_over_time(const Evidence& evidence,
                                               std::span<const LinkId> links, int slices) {
  const Replayed& replayed = evidence.replayed;
  const double slice = static_cast<double>(replayed.end_time) / slices;
  if (!(slice > 0) || links.empty()) return {};
  std::map<LinkId, size_t> rows;
  for (size_t i = 0; i < links.size(); ++i) rows[links[i]] = i;
  // By shape: the rows it loads, with bytes.
  std::vector<std::vector<std::pair<size_t, double>>> loads;
  std::vector<Nanos> latency;
  for (const ShapeLoad& load : shape_loads(evidence)) {
    auto& row = loads.emplace_back();
    latency.push_back(load.latency);
    for (const auto& [link, bytes] : load.bytes) {
      if (const auto at = rows.find(link); at != rows.end()) row.emplace_back(at->second, bytes);
    }
  }
  std::vector<std::vector<double>> out(links.size(),
                                       std::vector<double>(static_cast<size_t>(slices), 0));
  const auto spread = [&](double from, double end,
                          const std::vector<std::pair<size_t, double>>& on) {
    if (on.empty()) return;
    from = std::min(from, end - 1);
    const int first = std::clamp(static_cast<int>(from / slice), 0, slices - 1);
    const int last = std::clamp(static_cast<int>(end / slice), first, slices - 1);
    for (int s = first; s <= last; ++s) {
      const double part =
          std::max(0.0, std::min(end, (s + 1) * slice) - std::max(from, s * slice)) / (end - from);
      for (const auto& [row, load] : on) out[row][static_cast<size_t>(s)] += load * part;
    }
  };
  for (size_t id = 0; id < replayed.meetings.size(); ++id) {
    const Meeting& meeting = replayed.meetings[id];
    const uint32_t shape = replayed.shape_of[id];
    if (meeting.end < 0 || shape == UINT32_MAX) continue;
    spread(static_cast<double>(meeting.last_arrival + latency[shape]),
           static_cast<double>(meeting.end), loads[shape]);
  }
  for (size_t r = 0; r < replayed.transfer_begin.size(); ++r) {
    const auto& transfers = evidence.program.ranks[r].transfers;
    for (size_t i = 0; i < replayed.transfer_begin[r].size(); ++i) {
      const Nanos begin = replayed.transfer_begin[r][i];
      const Nanos end = replayed.end[r][transfers[i].op];
      if (begin < 0 || end < 0) continue;
      std::vector<std::pair<size_t, double>> on;
      for (const auto& [link, load] : transfer_load(evidence, r, transfers[i]).bytes) {
        if (const auto at = rows.find(link); at != rows.end()) on.emplace_back(at->second, load);
      }
      spread(static_cast<double>(begin), static_cast<double>(end), on);
    }
  }
  for (size_t i = 0; i < links.size(); ++i) {
    const double full = evidence.links[links[i]].capacity * slice * 1e-9;
    for (double& load : out[i]) load /= full;
  }
  return out;
}

}  // namespace rehearse::sim
