// SPDX-License-Identifier: Apache-2.0
// Subjects of machines: the GPU each rank takes, cards that differ from the others, software that differs.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.hpp"
#include "faults/check/subjects.hpp"
#include "faults/check/usual.hpp"

namespace rehearse::faults {
namespace {

// The GPU of a rank as CUDA would number it.
struct Choice {
  std::optional<std::vector<std::string>> mask;  // CUDA_VISIBLE_DEVICES
  uint32_t ordinal = 0;
  std::optional<std::string> physical;  // unset: there is no such device
};

Choice choice_of(const Facts& facts, size_t rank, bool one_each) {
  Choice out;
  const FactMap& env = facts.environment(rank);
  const pb::RankLaunch& launch = facts.document().launch().ranks(static_cast<int>(rank));
  const auto given = env.find("LOCAL_RANK");
  const auto local = given != env.end()
                         ? whole_number(given->second)
                         : whole_number(*facts.get({.node = {}, .rank = rank}, "local_rank"));
  out.ordinal = one_each ? 0 : local.value_or(0);
  const auto mask = env.find("CUDA_VISIBLE_DEVICES");
  if (mask == env.end()) {
    // Without a mask a rank takes the device the scenario gives it.
    out.physical = std::to_string(launch.gpu());
    return out;
  }
  out.mask = split(mask->second, ',');
  // CUDA ignores everything from the first device that does not exist on.
  const auto nodes = facts.document().platform().nodes_size();
  const uint32_t gpus =
      launch.node() < static_cast<uint32_t>(nodes)
          ? static_cast<uint32_t>(
                facts.document().platform().nodes(static_cast<int>(launch.node())).gpus_size())
          : 0;
  for (size_t i = 0; i < out.mask->size(); ++i) {
    const auto index = whole_number((*out.mask)[i]);
    const bool absent = (*out.mask)[i] == "-1" || (index && gpus > 0 && *index >= gpus);
    if (!absent) continue;
    out.mask->resize(i);
    break;
  }
  if (out.ordinal < out.mask->size()) out.physical = (*out.mask)[out.ordinal];
  return out;
}

// On this node every process sees one GPU: its ordinal is 0.
bool sees_one_each(const Facts& facts, size_t node) {
  std::set<std::string> masks;
  size_t ranks = 0;
  for (size_t r = 0; r < facts.ranks(); ++r) {
    if (facts.node_of(r) != node) continue;
    ++ranks;
    const auto at = facts.environment(r).find("CUDA_VISIBLE_DEVICES");
    if (at == facts.environment(r).end() || at->second.find(',') != std::string::npos) return false;
    masks.insert(at->second);
  }
  return ranks > 1 && masks.size() > 1;
}

}  // namespace

void list_devices(const Facts& facts, const pb::CheckTables&, const Emit& emit) {
  std::map<std::pair<size_t, std::string>, std::vector<uint32_t>> users;  // by node and device
  std::vector<Choice> choices;
  std::vector<bool> one_each(facts.nodes() + 1, false);
  for (size_t n = 0; n < facts.nodes(); ++n) one_each[n] = sees_one_each(facts, n);
  for (size_t r = 0; r < facts.ranks(); ++r) {
    choices.push_back(choice_of(facts, r, one_each[facts.node_of(r)]));
    if (choices.back().physical) {
      users[{facts.node_of(r), *choices.back().physical}].push_back(
          facts.document().launch().ranks(static_cast<int>(r)).rank());
    }
  }
  for (size_t r = 0; r < facts.ranks(); ++r) {
    const Choice& choice = choices[r];
    FactMap extra{{"device.ordinal", std::to_string(choice.ordinal)},
                  {"device.one_each", one_each[facts.node_of(r)] ? "true" : "false"}};
    if (choice.mask) {
      extra["device.mask"] = facts.environment(r).find("CUDA_VISIBLE_DEVICES")->second;
      extra["device.visible"] = std::to_string(choice.mask->size());
    } else if (const Value gpus = facts.get({.node = facts.node_of(r), .rank = r}, "node.gpus")) {
      extra["device.visible"] = *gpus;
    }
    if (choice.physical) {
      extra["device.physical"] = *choice.physical;
      const auto& sharing = users[{facts.node_of(r), *choice.physical}];
      if (sharing.size() > 1) extra["device.shared_with"] = format_ranks(sharing);
    }
    emit({.node = facts.node_of(r), .rank = r}, std::move(extra));
  }
}

void list_gpus(const Facts& facts, const pb::CheckTables&, const Emit& emit) {
  const pb::Platform& platform = facts.document().platform();
  std::vector<std::string> models;
  std::vector<uint32_t> widths, generations, links;
  for (const pb::Node& node : platform.nodes()) {
    for (const pb::Gpu& gpu : node.gpus()) {
      models.push_back(gpu.model());
      widths.push_back(gpu.pcie().width());
      generations.push_back(gpu.pcie().generation());
      links.push_back(gpu.nvlink().links());
    }
  }
  if (models.empty()) return;
  const std::string model = usual(models);
  const uint32_t width = usual(widths), generation = usual(generations), link = usual(links);
  for (size_t n = 0; n < facts.nodes(); ++n) {
    const pb::Node& node = platform.nodes(static_cast<int>(n));
    for (int g = 0; g < node.gpus_size(); ++g) {
      const pb::Gpu& gpu = node.gpus(g);
      FactMap extra{{"card.index", std::to_string(g)},
                    {"card.width", std::to_string(gpu.pcie().width())},
                    {"card.usual_width", std::to_string(width)},
                    {"card.generation", std::to_string(gpu.pcie().generation())},
                    {"card.usual_generation", std::to_string(generation)},
                    {"card.links", std::to_string(gpu.nvlink().links())},
                    {"card.usual_links", std::to_string(link)},
                    {"card.speed", number_text(gpu.speed() > 0 ? gpu.speed() : 1)}};
      if (!gpu.model().empty()) extra["card.model"] = gpu.model();
      if (!model.empty()) extra["card.usual_model"] = model;
      emit({.node = n, .rank = {}}, std::move(extra));
    }
  }
}

void list_components(const Facts& facts, const pb::CheckTables&, const Emit& emit) {
  const pb::Platform& platform = facts.document().platform();
  std::map<std::string, std::vector<std::string>> versions;  // by component
  for (const pb::Node& node : platform.nodes()) {
    for (const auto& [name, version] : node.versions()) versions[name].push_back(version);
  }
  for (const auto& [name, all] : versions) {
    const std::string common = usual(all);
    for (size_t n = 0; n < facts.nodes(); ++n) {
      const auto& own = platform.nodes(static_cast<int>(n)).versions();
      const auto at = own.find(name);
      if (at == own.end()) continue;
      emit({.node = n, .rank = {}}, {{"component.name", name},
                                     {"component.version", at->second},
                                     {"component.usual", common}});
    }
  }
}

}  // namespace rehearse::faults
