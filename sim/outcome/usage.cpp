// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/outcome/link_traffic.hpp"

namespace rehearse::sim {
namespace {

constexpr size_t kLinksShown = 64;
constexpr int kSlices = 50;

}  // namespace

void fill_links(const Evidence& evidence, pb::Outcome& out) {
  const auto time = static_cast<double>(evidence.replayed.end_time);
  LinkTraffic traffic(evidence);
  std::vector<std::pair<double, LinkId>> used;
  for (LinkId link = 0; link < evidence.replayed.link_bytes.size(); ++link) {
    const double bytes = evidence.replayed.link_bytes[link];
    if (bytes <= 0 || time <= 0) continue;
    const double room = traffic.history().nominal_room(link, 0, time);
    used.emplace_back(room > 0 ? bytes / room : 0, link);
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
  std::vector<LinkId> shown;
  shown.reserve(used.size());
  for (const auto& [share, link] : used) shown.push_back(link);
  const auto slices = use_over_time(traffic, evidence.replayed.end_time, shown, kSlices);
  for (size_t i = 0; i < slices.size(); ++i) {
    for (const double share : slices[i])
      out.mutable_links(static_cast<int>(i))->add_over_time(share);
  }
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

}  // namespace rehearse::sim
