// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/candidates.hpp"

#include <fmt/format.h>
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/document.hpp"
#include "base/text.hpp"
#include "faults/diagnose/mechanism.hpp"
#include "faults/diagnose/observable.hpp"
#include "faults/diagnose/suspects.hpp"
#include "sim/scenario/scenario.hpp"

namespace rehearse::faults {
namespace {

using google::protobuf::util::MessageDifferencer;
using Kinds = pb::Parameter;
using Device = std::pair<uint32_t, uint32_t>;

constexpr size_t kNodesTried = 8;
constexpr double kCountsTried = 12;
constexpr std::array kFirstCalls = {"0", "1", "3", "7", "15"};

struct Placed {
  FaultUse use;
  bool suspected = false;  // a suspect of the evidence decided at least one parameter
  size_t far = 0;          // how many more likely values there are, over all parameters
};

// The node chosen so far, for devices inside it.
std::optional<uint32_t> node_in(const FaultUse& use) {
  for (const pb::Parameter& p : use.fault().parameters()) {
    if (p.kind() == Kinds::NODE) return static_cast<uint32_t>(std::stoul(use.values.at(p.name())));
  }
  return std::nullopt;
}

std::vector<std::string> devices_on(const std::vector<Device>& devices,
                                    std::optional<uint32_t> node) {
  std::vector<std::string> out;
  for (const auto& [n, index] : devices) {
    if (!node || n == *node) out.push_back(std::to_string(index));
  }
  return out;
}

template <typename List>
std::vector<std::string> texts(const List& values) {
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
      return suspects.links;
    case Kinds::RANKS:
      return suspects.groups;
    case Kinds::MOMENT:
      if (suspects.moment) return {fmt::format("{}ns", *suspects.moment)};
      return {};
    case Kinds::STEP:
      // Logs tell none.
      if (suspects.steps.value_or(0) > 0) return {std::to_string(*suspects.steps)};
      return {};
    case Kinds::PAIR:
      if (suspects.pair) return {std::to_string(*suspects.pair)};
      return {};
    case Kinds::SIZE_RATIO:
      if (suspects.size_ratio) return {fmt::format("{:.4g}", *suspects.size_ratio)};
      return {};
    case Kinds::COLLECTIVE: {
      // Evidence counts calls per communicator, programs count all: the first few are tried too.
      std::vector<std::string> out;
      if (suspects.sequence && *suspects.sequence >= 0) {
        // Calls that differ may pair for a while before one does not.
        for (const int64_t before : {0, 1, 2, 3}) {
          if (*suspects.sequence >= before) {
            out.push_back(std::to_string(*suspects.sequence - before));
          }
        }
      }
      for (const char* nth : kFirstCalls) {
        if (std::find(out.begin(), out.end(), nth) == out.end()) out.emplace_back(nth);
      }
      return out;
    }
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
  // And one that nobody suspects: what a fault leaves may be the same at all of them.
  if (p.kind() == Kinds::RANK && !likely.empty() &&
      std::find(likely.begin(), likely.end(), p.default_()) == likely.end()) {
    likely.push_back(p.default_());
  }
  if (!likely.empty()) return likely;
  // A stage of a job that has none.
  if (p.kind() == Kinds::RANKS && healthy.trace().has_synth() && healthy.trace().synth().pp() < 2) {
    return {};
  }
  if (p.choices_size() > 0) return {p.choices().begin(), p.choices().end()};
  std::vector<std::string> out{p.default_()};
  for (const std::string& value : p.usual()) {
    if (value != p.default_()) out.push_back(value);
  }
  const auto from = parse_value(p, p.usual_from()), to = parse_value(p, p.usual_to());
  // Of a quantity that is not fitted both ends of what is usual.
  const bool quantity =
      p.kind() == Kinds::NUMBER || p.kind() == Kinds::BYTES || p.kind() == Kinds::DURATION;
  if (quantity && from && to) {
    out.push_back(p.usual_from());
    out.push_back(p.usual_to());
  }
  const bool counted = p.kind() == Kinds::COUNT || p.kind() == Kinds::PAIR;
  if (!counted || !from || !to || *to - *from > kCountsTried) return out;
  for (double count = *from; count <= *to; ++count) {
    const std::string value = format_value(p, count);
    if (value != p.default_()) out.push_back(value);
  }
  return out;
}

bool is_device(const pb::Parameter& p) { return p.kind() == Kinds::GPU || p.kind() == Kinds::NIC; }

// Logs point at nodes and adapters, and badly at GPUs: of a device there all others of the node are tried too.
void add_other_devices(const FaultUse& use, const pb::Parameter& p, const pb::Scenario& healthy,
                       std::vector<std::string>& values) {
  const auto node = node_in(use);
  if (!is_device(p) || !node) return;
  if (*node >= static_cast<uint32_t>(healthy.platform().nodes_size())) return;
  const pb::Node& where = healthy.platform().nodes(static_cast<int>(*node));
  const int count = p.kind() == Kinds::GPU ? where.gpus_size() : where.nics_size();
  for (int i = 0; i < count; ++i) {
    const std::string device = std::to_string(i);
    if (std::find(values.begin(), values.end(), device) == values.end()) values.push_back(device);
  }
}

// How many places of a fault are tried.
size_t most_places(const pb::Fault& fault, const Clues& clues) {
  const auto& parameters = fault.parameters();
  const bool device = std::any_of(parameters.begin(), parameters.end(), is_device);
  return clues.logs_only && device ? kDevicesPerFault : kPlacesPerFault;
}

std::vector<Placed> placements(const std::shared_ptr<const FaultEntry>& entry,
                               const Suspects& suspects, const Clues& clues) {
  const size_t most = 4 * most_places(entry->fault, clues);
  std::vector<Placed> all{{.use = with_defaults(entry)}};
  for (const pb::Parameter& p : entry->fault.parameters()) {
    if (p.strength()) continue;
    std::vector<Placed> next;
    for (const Placed& placed : all) {
      const std::vector<std::string> likely = suggested(p, placed.use, suspects);
      size_t far = placed.far;
      std::vector<std::string> values = values_to_try(p, likely, clues.healthy);
      if (clues.logs_only) add_other_devices(placed.use, p, clues.healthy, values);
      for (const std::string& value : values) {
        const bool suspected = std::find(likely.begin(), likely.end(), value) != likely.end();
        auto use = with_value(placed.use, p.name(), value);
        if (!use) continue;
        next.push_back({std::move(*use), placed.suspected || suspected, far++});
      }
    }
    // The second place with the first values before the first place with the tenth.
    std::stable_sort(next.begin(), next.end(),
                     [](const Placed& a, const Placed& b) { return a.far < b.far; });
    if (next.size() > most) next.resize(most);
    all = std::move(next);
  }
  return all;
}

using Assigned = std::map<std::string, std::string>;

Assigned assignments(const FaultUse& use, const pb::Scenario& healthy) {
  Assigned out;
  const auto patches = patches_of(use, healthy);
  if (!patches) return out;
  for (const pb::Patch& patch : *patches) out.insert(patch.set().begin(), patch.set().end());
  return out;
}

// Assignments with another value of the parameter, to see which it decides; empty: no other is accepted here.
Assigned with_other_value(const FaultUse& use, const pb::Parameter& p,
                          const pb::Scenario& healthy) {
  std::vector<std::string> others(p.choices().begin(), p.choices().end());
  for (const std::string& value :
       {p.at_least(), p.at_most(), std::string("0"), std::string("1"), p.default_() + "1"}) {
    others.push_back(value);
  }
  for (const std::string& value : others) {
    if (value.empty() || value == use.values.at(p.name())) continue;
    const auto other = with_value(use, p.name(), value);
    if (!other) continue;
    if (Assigned then = assignments(*other, healthy); !then.empty()) return then;
  }
  return {};
}

// The first line of what the configuration has at a path.
std::string configured_at(const pb::Launch& configured, const std::string& path) {
  pb::Scenario document;
  *document.mutable_launch() = configured;
  const auto value = get_path(document, path);
  if (!value) return {};
  std::string line = value->substr(0, value->find('\n'));
  if (line.size() > 1 && line.front() == '"' && line.back() == '"') {
    line = line.substr(1, line.size() - 2);
  }
  return line;
}

// Whether anybody could have read what stands at a path.
bool known(const std::string& path, const Clues& clues) {
  return readable(path) && (!clues.logs_only || path.find(".env.NCCL_") != std::string::npos);
}

// Takes over values that the configuration shows where the fault would assign them.
FaultUse adopt_configured(FaultUse use, const Clues& clues) {
  const pb::Launch& configured = *clues.configured;
  const pb::Scenario& healthy = clues.healthy;
  const Assigned now = assignments(use, healthy);
  // Most faults set nothing that anybody could have read; what their parameters decide need not be found out.
  const auto is_known = [&](const auto& entry) { return known(entry.first, clues); };
  if (std::none_of(now.begin(), now.end(), is_known)) return use;
  for (const pb::Parameter& p : use.fault().parameters()) {
    const Assigned then = with_other_value(use, p, healthy);
    // A parameter that decides where is a place, not a value.
    const auto paths = [](const auto& a, const auto& b) { return a.first == b.first; };
    if (!std::equal(now.begin(), now.end(), then.begin(), then.end(), paths)) continue;
    for (const auto& [path, value] : now) {
      const auto found = then.find(path);
      if (found == then.end() || found->second == value || !known(path, clues)) continue;
      const std::string shown = configured_at(configured, path);
      if (shown.empty()) continue;
      if (auto changed = with_value(use, p.name(), shown)) use = std::move(*changed);
      break;
    }
  }
  return use;
}

enum class Shown { kNothingToSee, kConfigured, kContradicted };

// Whether the fault's assignments to the launch are what the job was really started with, and not what it
// should be started with.
Shown configuration_shows(const std::vector<pb::Patch>& patches, const Clues& clues,
                          std::vector<std::string>& evidence) {
  Shown shown = Shown::kNothingToSee;
  const auto holds = [](const pb::Launch& launch, const std::string& path,
                        const std::string& value) {
    pb::Scenario changed;
    *changed.mutable_launch() = launch;
    return set_path(changed, path, value) && MessageDifferencer::Equals(changed.launch(), launch);
  };
  for (const pb::Patch& patch : patches) {
    for (const auto& [path, value] : sim::sorted_assignments(patch.set())) {
      if (!known(path, clues)) continue;
      if (!holds(*clues.configured, path, value)) return Shown::kContradicted;
      if (holds(clues.healthy.launch(), path, value)) continue;
      evidence.push_back(fmt::format("the configuration has {}={}", path, value));
      shown = Shown::kConfigured;
    }
  }
  return shown;
}

double prior_of(const pb::Fault& fault, const std::string& symptom) {
  const auto& listed = fault.symptoms();
  const auto found = std::find(listed.begin(), listed.end(), symptom);
  if (found == listed.end()) return prior::kUnlisted;
  return found == listed.begin() ? prior::kTypical : prior::kListed;
}

void add_candidates(const std::shared_ptr<const FaultEntry>& entry, const Suspects& suspects,
                    const Clues& clues, std::vector<Candidate>& out) {
  std::vector<Candidate> found;
  for (Placed& placed : placements(entry, suspects, clues)) {
    const double symptom = prior_of(entry->fault, clues.symptom.id());
    Candidate candidate{
        .use = std::move(placed.use),
        .prior = symptom,
        .expected = symptom > prior::kUnlisted,
        .evidence = {fmt::format("symptom {} ({})", clues.symptom.id(), clues.symptom.label())}};
    if (clues.configured) {
      candidate.use = adopt_configured(std::move(candidate.use), clues);
    }
    const auto patches = patches_of(candidate.use, clues.healthy);
    if (!patches) continue;
    // Logs have nothing of what the rules of mechanisms look at.
    if (!clues.logs_only && !plausible(*patches, clues.outcome.verdict(), clues.changes)) continue;
    if (clues.configured) {
      const Shown shown = configuration_shows(*patches, clues, candidate.evidence);
      if (shown == Shown::kContradicted) continue;
      candidate.configured = shown == Shown::kConfigured;
      if (candidate.configured) candidate.prior += prior::kConfigured;
      candidate.expected = candidate.expected || candidate.configured;
    }
    if (placed.suspected) candidate.prior += prior::kSuspected;
    const auto same = [&](const Candidate& other) {
      return other.use.text() == candidate.use.text();
    };
    if (std::none_of(found.begin(), found.end(), same)) found.push_back(std::move(candidate));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Candidate& a, const Candidate& b) { return a.prior > b.prior; });
  const size_t most = most_places(entry->fault, clues);
  if (found.size() > most) found.resize(most);
  std::move(found.begin(), found.end(), std::back_inserter(out));
}

}  // namespace

Result<std::vector<Candidate>> find_candidates(const Clues& clues,
                                               const FaultCatalogue& catalogue) {
  Suspects suspects = find_suspects(clues.outcome, clues.changes, clues.healthy, clues.pace);
  if (clues.configured) add_configured(*clues.configured, clues.healthy.launch(), suspects);
  std::vector<Candidate> out;
  for (const auto& entry : catalogue.entries()) add_candidates(entry, suspects, clues, out);
  std::stable_sort(out.begin(), out.end(),
                   [](const Candidate& a, const Candidate& b) { return a.prior > b.prior; });
  return out;
}

}  // namespace rehearse::faults
