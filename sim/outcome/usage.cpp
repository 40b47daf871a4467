// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/outcome/loads.hpp"

namespace rehearse::sim {
namespace {

constexpr size_t kLinksShown = 64;
constexpr int kSlices = 50;

// What calls and transfers put on the links that are shown, slice by slice of the run: each spreads its bytes evenly
// over the time in which it moved them.
void fill_over_time(const Evidence& evidence, const std::vector<std::pair<double, LinkId>>& used,
                    pb::Outcome& out) {
  const Replayed& replayed = evidence.replayed;
  const double slice = static_cast<double>(replayed.end_time) / kSlices;
  if (!(slice > 0) || used.empty()) return;
  std::map<LinkId, size_t> rows;
  for (size_t i = 0; i < used.size(); ++i) rows[used[i].second] = i;
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
  std::vector<std::vector<double>> bytes(used.size(), std::vector<double>(kSlices, 0));
  const auto spread = [&](double from, double end,
                          const std::vector<std::pair<size_t, double>>& on) {
    if (on.empty()) return;
    from = std::min(from, end - 1);
    const int first = std::clamp(static_cast<int>(from / slice), 0, kSlices - 1);
    const int last = std::clamp(static_cast<int>(end / slice), first, kSlices - 1);
    for (int s = first; s <= last; ++s) {
      const double part =
          std::max(0.0, std::min(end, (s + 1) * slice) - std::max(from, s * slice)) / (end - from);
      for (const auto& [row, load] : on) bytes[row][static_cast<size_t>(s)] += load * part;
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
  for (size_t i = 0; i < used.size(); ++i) {
    const double full = evidence.links[used[i].second].capacity * slice * 1e-9;
    for (double load : bytes[i]) out.mutable_links(static_cast<int>(i))->add_over_time(load / full);
  }
}

void fill_links(const Evidence& evidence, pb::Outcome& out) {
  const double seconds = static_cast<double>(evidence.replayed.end_time) * 1e-9;
  std::vector<std::pair<double, LinkId>> used;
  for (LinkId link = 0; link < evidence.replayed.link_bytes.size(); ++link) {
    const double bytes = evidence.replayed.link_bytes[link];
    if (bytes <= 0 || seconds <= 0) continue;
    used.emplace_back(bytes / (evidence.links[link].capacity * seconds), link);
  }
  std::sort(used.begin(), used.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  if (used.size() > kLinksShown) used.resize(kLinksShown);
  for (const auto& [share, link] : used) {
    pb::LinkUse& row = *out.add_links();
    row.set_name(evidence.links[link].name);
    row.set_bytes(evidence.replayed.link_bytes[link]);
    row.set_utilisation(share);
  }
  fill_over_time(evidence, used, out);
}

void fill_communicators(const Evidence& evidence, pb::Outcome& out) {
  struct Use {
    std::map<std::string, uint64_t> algorithms;
    uint64_t calls = 0;
    double bytes = 0, bus_bytes = 0;
    Nanos time = 0;
  };
  std::vector<Use> uses(evidence.program.communicators.size());
  for (const Replayed::Shape& shape : evidence.replayed.shapes) {
    Use& use = uses[shape.communicator];
    use.algorithms[shape.algorithm] += shape.calls;
    use.calls += shape.calls;
    use.bytes += shape.bytes * static_cast<double>(shape.calls);
    use.bus_bytes += shape.bus_bytes * static_cast<double>(shape.calls);
    use.time += shape.time;
  }
  for (size_t c = 0; c < uses.size(); ++c) {
    const Use& use = uses[c];
    if (use.calls == 0) continue;
    pb::CommunicatorUse& row = *out.add_communicators();
    row.set_id(evidence.program.communicators[c].id);
    row.set_ranks(static_cast<uint32_t>(evidence.program.communicators[c].members.size()));
    row.set_nodes(evidence.models[c].nodes());
    row.set_transport(evidence.models[c].transport());
    row.set_offered(evidence.models[c].offered());
    std::string algorithms;
    for (const auto& [name, calls] : use.algorithms) {
      if (calls == 0) continue;
      if (!algorithms.empty()) algorithms += ", ";
      algorithms += fmt::format("{} x{}", name, calls);
    }
    row.set_algorithms(algorithms);
    row.set_calls(static_cast<int64_t>(use.calls));
    row.set_bytes(static_cast<int64_t>(use.bytes));
    if (use.time > 0) row.set_busbw(use.bus_bytes / (static_cast<double>(use.time) * 1e-9));
  }
}

}  // namespace

void fill_usage(const Evidence& evidence, pb::Outcome& out) {
  fill_links(evidence, out);
  fill_communicators(evidence, out);
}

}  // namespace rehearse::sim
