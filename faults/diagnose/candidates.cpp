// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/candidates.hpp"

#include <fmt/format.h>
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <optional>

#include "base/document.hpp"
#include "faults/diagnose/suspects.hpp"

namespace rehearse::faults {
namespace {

using google::protobuf::util::MessageDifferencer;
using Kinds = pb::Parameter;

constexpr std::string_view kLaunch = "launch.";
constexpr std::string_view kJobEnv = "launch.env.";
constexpr size_t kNodesTried = 8;

struct Placed {
  FaultUse use;
  bool suspected = false;  // a suspect of the evidence decided at least one parameter
};

// The node chosen so far, for devices inside it.
std::optional<uint32_t> node_in(const FaultUse& use) {
  for (const pb::Parameter& p : use.fault().parameters()) {
    if (p.kind() == Kinds::NODE) return static_cast<uint32_t>(std::stoul(use.values.at(p.name())));
  }
  return std::nullopt;
}

std::vector<std::string> devices_on(const std::set<std::pair<uint32_t, uint32_t>>& devices,
                                    std::optional<uint32_t> node) {
  std::vector<std::string> out;
  for (const auto& [n, index] : devices) {
    if (!node || n == *node) out.push_back(std::to_string(index));
  }
  return out;
}

template <typename Set>
std::vector<std::string> texts(const Set& values) {
  std::vector<std::string> out;
  out.reserve(values.size());
  for (const auto& value : values) out.push_back(fmt::format("{}", value));
  return out;
}

// Values of a parameter that the evidence suggests; empty: it suggests none.
std::vector<std::string> suggested(const pb::Parameter& p, const FaultUse& use,
                                   const Suspects& suspects) {
  switch (p.kind()) {
    case Kinds::RANK:
      return texts(suspects.ranks);
    case Kinds::NODE:
      return texts(suspects.nodes);
    case Kinds::GPU:
      return devices_on(suspects.gpus, node_in(use));
    case Kinds::NIC:
      return devices_on(suspects.nics, node_in(use));
    case Kinds::LINK:
      return texts(suspects.links);
    case Kinds::COLLECTIVE:
      if (suspects.sequence && *suspects.sequence >= 0) return {std::to_string(*suspects.sequence)};
      return {};
    default:
      return {};
  }
}

// Those the evidence suggests first. Nodes are few and evidence points at them badly (a slow
// transport is slow everywhere), so the others are tried too.
std::vector<std::string> values_to_try(const pb::Parameter& p, std::vector<std::string> likely,
                                       const pb::Scenario& healthy) {
  if (p.kind() == Kinds::NODE) {
    const auto count = static_cast<size_t>(healthy.platform().nodes_size());
    for (size_t n = 0; n < std::min(count, kNodesTried); ++n) {
      const std::string node = std::to_string(n);
      if (std::find(likely.begin(), likely.end(), node) == likely.end()) likely.push_back(node);
    }
  }
  if (!likely.empty()) return likely;
  if (p.choices_size() > 0) return {p.choices().begin(), p.choices().end()};
  return {p.default_()};
}

std::vector<Placed> placements(const std::shared_ptr<const FaultEntry>& entry,
                               const Suspects& suspects, const pb::Scenario& healthy) {
  std::vector<Placed> all{{with_defaults(entry), false}};
  for (const pb::Parameter& p : entry->fault.parameters()) {
    if (p.strength()) continue;
    std::vector<Placed> next;
    for (const Placed& placed : all) {
      const std::vector<std::string> likely = suggested(p, placed.use, suspects);
      for (const std::string& value : values_to_try(p, likely, healthy)) {
        const bool suspected = std::find(likely.begin(), likely.end(), value) != likely.end();
        auto use = with_value(placed.use, p.name(), value);
        if (!use || next.size() >= kPlacesPerFault) continue;
        next.push_back({std::move(*use), placed.suspected || suspected});
      }
    }
    all = std::move(next);
  }
  return all;
}

// Takes over values of job variables that the configuration shows (NCCL_MAX_NCHANNELS=2).
FaultUse adopt_configured(FaultUse use, const pb::Launch& configured, const pb::Scenario& healthy) {
  const auto patches = patches_of(use, healthy);
  if (!patches) return use;
  for (const pb::Patch& patch : *patches) {
    for (const auto& [path, value] : patch.set()) {
      if (!path.starts_with(kJobEnv)) continue;
      const auto found = configured.env().find(path.substr(kJobEnv.size()));
      if (found == configured.env().end() || found->second.empty()) continue;
      for (const pb::Parameter& p : use.fault().parameters()) {
        if (use.values.at(p.name()) != value) continue;
        if (auto changed = with_value(use, p.name(), found->second)) use = std::move(*changed);
        break;
      }
    }
  }
  return use;
}

enum class Shown { kNothingToSee, kConfigured, kContradicted };

// Whether the fault's assignments to the launch are what the job was really started with.
Shown configuration_shows(const std::vector<pb::Patch>& patches, const pb::Launch& configured,
                          std::vector<std::string>& evidence) {
  Shown shown = Shown::kNothingToSee;
  for (const pb::Patch& patch : patches) {
    std::vector<std::pair<std::string, std::string>> edits(patch.set().begin(), patch.set().end());
    std::sort(edits.begin(), edits.end());
    for (const auto& [path, value] : edits) {
      if (!path.starts_with(kLaunch)) continue;
      pb::Scenario changed;
      *changed.mutable_launch() = configured;
      if (!set_path(changed, path, value) ||
          !MessageDifferencer::Equals(changed.launch(), configured)) {
        return Shown::kContradicted;
      }
      evidence.push_back(fmt::format("the configuration has {}={}", path, value));
      shown = Shown::kConfigured;
    }
  }
  return shown;
}

}  // namespace

Result<std::vector<Candidate>> find_candidates(const Clues& clues,
                                               const FaultCatalogue& catalogue) {
  const Suspects suspects = find_suspects(clues.outcome, clues.healthy);
  std::vector<Candidate> out;
  for (const auto& entry : catalogue.entries()) {
    const auto& symptoms = entry->fault.symptoms();
    const auto listed = std::find(symptoms.begin(), symptoms.end(), clues.symptom.id());
    if (listed == symptoms.end()) continue;
    for (Placed& placed : placements(entry, suspects, clues.healthy)) {
      Candidate candidate{
          .use = std::move(placed.use),
          .prior = listed == symptoms.begin() ? 1.0 : 0.8,
          .evidence = {fmt::format("symptom {} ({})", clues.symptom.id(), clues.symptom.label())}};
      if (clues.configured) {
        candidate.use =
            adopt_configured(std::move(candidate.use), *clues.configured, clues.healthy);
      }
      const auto patches = patches_of(candidate.use, clues.healthy);
      if (!patches) continue;
      if (clues.configured) {
        const Shown shown = configuration_shows(*patches, *clues.configured, candidate.evidence);
        if (shown == Shown::kContradicted) continue;
        if (shown == Shown::kConfigured) candidate.prior += 1;
      }
      if (placed.suspected) candidate.prior += 0.5;
      out.push_back(std::move(candidate));
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const Candidate& a, const Candidate& b) {
    return a.prior != b.prior ? a.prior > b.prior : a.use.text() < b.use.text();
  });
  const auto same = [](const Candidate& a, const Candidate& b) {
    return a.use.text() == b.use.text();
  };
  out.erase(std::unique(out.begin(), out.end(), same), out.end());
  return out;
}

}  // namespace rehearse::faults
