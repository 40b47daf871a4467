// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/suspects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "base/text.hpp"

namespace rehearse::faults {
namespace {

// A rank or node this much of a step busier than the median is looked at.
constexpr double kBusier = 0.02;
// A link used this many times as much as the median of its kind is looked at.
constexpr double kOverused = 1.3;
constexpr size_t kFew = 4;

template <typename T>
T median(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? T{} : values[values.size() / 2];
}

// "node1/mlx5_0/tx" and "node1/gpu3/nvlink-out": the device at the link's end.
void add_link(const std::string& link, const pb::Scenario& document, Suspects& out) {
  out.links.insert(link);
  const std::vector<std::string> parts = split(link, '/');
  if (parts.size() < 2) return;
  const auto& nodes = document.platform().nodes();
  for (int n = 0; n < nodes.size(); ++n) {
    const auto node = static_cast<uint32_t>(n);
    if (parts[0] != nodes[n].name() && parts[0] != fmt::format("node{}", n)) continue;
    out.nodes.insert(node);
    for (int i = 0; i < nodes[n].nics_size(); ++i) {
      if (nodes[n].nics(i).name() == parts[1]) out.nics.emplace(node, i);
    }
    for (int i = 0; i < nodes[n].gpus_size(); ++i) {
      if (nodes[n].gpus(i).name() == parts[1] || parts[1] == fmt::format("gpu{}", i)) {
        out.gpus.emplace(node, i);
      }
    }
  }
}

void from_culprits(const pb::Outcome& outcome, const pb::Scenario& document, Suspects& out) {
  for (const pb::Culprit& culprit : outcome.culprits()) {
    if (culprit.has_rank()) out.ranks.insert(culprit.rank());
    if (culprit.has_node()) out.nodes.insert(culprit.node());
    if (!culprit.link().empty()) add_link(culprit.link(), document, out);
  }
}

void from_waits(const pb::Outcome& outcome, Suspects& out) {
  std::set<uint32_t> waiting;
  for (const pb::Wait& wait : outcome.waits()) waiting.insert(wait.rank());
  for (const pb::Wait& wait : outcome.waits()) {
    for (const uint32_t rank : wait.for_ranks()) {
      if (!waiting.count(rank)) out.ranks.insert(rank);
    }
    if (!out.sequence || wait.sequence() < *out.sequence) out.sequence = wait.sequence();
  }
}

void from_breakdown(const pb::Outcome& outcome, const pb::Scenario& document, Suspects& out) {
  std::map<uint32_t, uint32_t> node_of;
  for (const pb::RankLaunch& rank : document.launch().ranks()) node_of[rank.rank()] = rank.node();
  std::vector<int64_t> busy;
  std::map<uint32_t, int64_t> least;  // of each node
  for (const pb::RankBreakdown& rank : outcome.breakdown()) {
    busy.push_back(rank.compute());
    const auto [entry, fresh] = least.try_emplace(node_of[rank.rank()], rank.compute());
    if (!fresh) entry->second = std::min(entry->second, rank.compute());
  }
  // The lower quartile: a whole slow node of two must not become the norm.
  std::sort(busy.begin(), busy.end());
  const int64_t normal = busy.empty() ? 0 : busy[busy.size() / 4];
  std::vector<std::pair<int64_t, uint32_t>> late;
  for (const pb::RankBreakdown& rank : outcome.breakdown()) {
    const int64_t excess = rank.compute() - normal;
    if (static_cast<double>(excess) > kBusier * static_cast<double>(rank.step())) {
      late.emplace_back(-excess, rank.rank());
    }
  }
  std::sort(late.begin(), late.end());
  for (size_t i = 0; i < std::min(late.size(), kFew); ++i) out.ranks.insert(late[i].second);
  for (const auto& [node, compute] : least) {
    if (static_cast<double>(compute - normal) > kBusier * static_cast<double>(normal)) {
      out.nodes.insert(node);
    }
  }
}

void from_links(const pb::Outcome& outcome, const pb::Scenario& document, Suspects& out) {
  std::map<std::string, std::vector<double>> by_kind;
  const auto kind = [](const std::string& name) { return name.substr(name.rfind('/') + 1); };
  for (const pb::LinkUse& link : outcome.links())
    by_kind[kind(link.name())].push_back(link.utilisation());
  std::string worst;
  double most = 0;
  for (const pb::LinkUse& link : outcome.links()) {
    const auto& like = by_kind[kind(link.name())];
    const double normal = median(like);
    if (like.size() < 3 || normal <= 0 || link.utilisation() < kOverused * normal) continue;
    if (link.utilisation() / normal > most) {
      most = link.utilisation() / normal;
      worst = link.name();
    }
  }
  if (!worst.empty()) add_link(worst, document, out);
}

// NICs that carry nothing although most do.
void from_unused_nics(const pb::Outcome& outcome, const pb::Scenario& document, Suspects& out) {
  std::set<std::string> used;  // "node1/mlx5_0"
  for (const pb::LinkUse& link : outcome.links()) {
    if (link.bytes() > 0) used.insert(link.name().substr(0, link.name().rfind('/')));
  }
  std::vector<std::pair<uint32_t, uint32_t>> unused;
  size_t all = 0;
  const auto& nodes = document.platform().nodes();
  for (int n = 0; n < nodes.size(); ++n) {
    for (int i = 0; i < nodes[n].nics_size(); ++i, ++all) {
      const std::string& nic = nodes[n].nics(i).name();
      if (used.count(nodes[n].name() + "/" + nic) || used.count(fmt::format("node{}/{}", n, nic))) {
        continue;
      }
      unused.emplace_back(n, i);
    }
  }
  if (unused.size() * 2 < all) out.nics.insert(unused.begin(), unused.end());
}

}  // namespace

Suspects find_suspects(const pb::Outcome& outcome, const pb::Scenario& document) {
  Suspects out;
  from_culprits(outcome, document, out);
  from_waits(outcome, out);
  from_breakdown(outcome, document, out);
  from_links(outcome, document, out);
  from_unused_nics(outcome, document, out);
  for (const pb::RankLaunch& rank : document.launch().ranks()) {
    if (!out.ranks.count(rank.rank())) continue;
    out.nodes.insert(rank.node());
    out.gpus.emplace(rank.node(), rank.gpu());
  }
  return out;
}

}  // namespace rehearse::faults
