// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.hpp"
#include "platforms/model/draw.hpp"
#include "platforms/model/links.hpp"
#include "sim/outcome/link_traffic.hpp"
#include "sim/outcome/pictures.hpp"

namespace rehearse::sim {
namespace {

constexpr size_t kLinksDrawn = 6000;
constexpr int kPictureSlices = 60;

void fill_nodes(const pb::Scenario& scenario, pb::ClusterPicture& out) {
  std::map<std::pair<uint32_t, uint32_t>, std::vector<uint32_t>> ranks;  // by node and GPU
  for (const pb::RankLaunch& rank : scenario.launch().ranks()) {
    ranks[{rank.node(), rank.gpu()}].push_back(rank.rank());
  }
  for (int n = 0; n < scenario.platform().nodes_size(); ++n) {
    const pb::Node& node = scenario.platform().nodes(n);
    pb::NodePicture& row = *out.add_nodes();
    row.set_name(node.name());
    row.set_model(node.model());
    row.set_nvswitches(node.nvswitch().count());
    for (int g = 0; g < node.gpus_size(); ++g) {
      pb::DevicePicture& gpu = *row.add_gpus();
      gpu.set_name(node.gpus(g).name());
      gpu.set_what(platforms::describe(node.gpus(g)));
      for (uint32_t rank : ranks[{static_cast<uint32_t>(n), static_cast<uint32_t>(g)}]) {
        gpu.add_ranks(rank);
      }
    }
    for (const pb::Nic& nic : node.nics()) {
      pb::DevicePicture& device = *row.add_nics();
      device.set_name(nic.name());
      device.set_what(platforms::describe(nic));
      device.set_down(nic.down());
    }
  }
}

}  // namespace

void fill_cluster(const Scenario& scenario, const Evidence& evidence, pb::ClusterPicture& out) {
  out.set_name(scenario.document.platform().name());
  out.set_fabric(platforms::describe_fabric(scenario.document.platform().fabric()));
  fill_nodes(scenario.document, out);
  const Nanos end = evidence.replayed.end_time;
  out.set_slice_ns(end / kPictureSlices);
  std::vector<std::pair<double, LinkId>> used;
  for (LinkId link = 0; link < evidence.links.size(); ++link) {
    const double bytes =
        link < evidence.replayed.link_bytes.size() ? evidence.replayed.link_bytes[link] : 0;
    const bool down = evidence.links[link].down;
    if ((bytes <= 0 && !down) || end <= 0) continue;
    used.emplace_back(bytes / (evidence.links[link].capacity * static_cast<double>(end) * 1e-9),
                      link);
  }
  std::sort(used.begin(), used.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  if (used.size() > kLinksDrawn) {
    out.set_links_left_out(static_cast<uint32_t>(used.size() - kLinksDrawn));
    used.resize(kLinksDrawn);
  }
  std::vector<LinkId> drawn;
  drawn.reserve(used.size());
  for (const auto& [share, link] : used) drawn.push_back(link);
  LinkTraffic traffic(evidence);
  const auto slices = use_over_time(traffic, evidence.replayed.end_time, drawn, kPictureSlices);
  for (size_t i = 0; i < used.size(); ++i) {
    const platforms::Link& link = evidence.links[used[i].second];
    pb::LinkPicture& row = *out.add_links();
    row.set_name(link.name);
    row.set_kind(platforms::name_of(link.kind));
    row.set_down(link.down);
    row.set_capacity(link.capacity);
    row.set_utilisation(std::isfinite(used[i].first) ? used[i].first : 0);
    if (link.node != UINT32_MAX) {
      row.set_node(link.node);
      const std::vector<std::string> parts = split(link.name, '/');  // node/device/part
      if (parts.size() == 3) {
        row.set_device(parts[1]);
        row.set_part(parts[2]);
      }
    }
    if (i >= slices.size()) continue;
    for (const double share : slices[i]) {
      const double level = std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0;
      row.mutable_over_time()->push_back(static_cast<char>(std::lround(255 * level)));
    }
  }
}

}  // namespace rehearse::sim
