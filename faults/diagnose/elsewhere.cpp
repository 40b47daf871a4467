// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/elsewhere.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "faults/diagnose/alike.hpp"

namespace rehearse::faults {
namespace {

// Values of a parameter that says where, the one it has first; none: it does not.
std::vector<std::string> places_for(const pb::Parameter& p, const FaultUse& use,
                                    const pb::Scenario& document) {
  const auto& nodes = document.platform().nodes();
  const auto node = [&]() -> const pb::Node* {
    for (const pb::Parameter& other : use.fault().parameters()) {
      if (other.kind() != pb::Parameter::NODE) continue;
      const auto index = std::stoul(use.values.at(other.name()));
      return index < static_cast<size_t>(nodes.size()) ? &nodes[static_cast<int>(index)] : nullptr;
    }
    return nullptr;
  };
  int count = 0;
  if (p.kind() == pb::Parameter::NODE) count = nodes.size();
  if (p.kind() == pb::Parameter::GPU && node()) count = node()->gpus_size();
  if (p.kind() == pb::Parameter::NIC && node()) count = node()->nics_size();
  std::vector<uint32_t> places(static_cast<size_t>(count));
  std::iota(places.begin(), places.end(), 0u);
  if (p.kind() == pb::Parameter::RANK) places = ranks_of(document.launch());
  if (places.empty()) return {};
  std::vector<std::string> out{use.values.at(p.name())};
  for (const uint32_t place : places) {
    if (std::string value = std::to_string(place); value != out.front()) {
      out.push_back(std::move(value));
    }
  }
  return out;
}

// The same fault at any other place, at most so many: those first that differ in one value, and of these by turns in each.
std::vector<FaultUse> at_other_places(const FaultUse& use, const pb::Scenario& document,
                                      size_t most) {
  struct Moved {
    FaultUse use;
    size_t differ = 0, far = 0;
  };
  std::vector<Moved> all{{.use = use}};
  for (const pb::Parameter& p : use.fault().parameters()) {
    std::vector<Moved> next;
    for (const Moved& placed : all) {
      const std::vector<std::string> values = places_for(p, placed.use, document);
      if (values.empty()) next.push_back(placed);
      for (size_t i = 0; i < values.size(); ++i) {
        auto other = with_value(placed.use, p.name(), values[i]);
        if (other) next.push_back({std::move(*other), placed.differ + (i > 0), placed.far + i});
      }
    }
    all = std::move(next);
  }
  std::stable_sort(all.begin(), all.end(), [](const Moved& a, const Moved& b) {
    return std::pair(a.differ, a.far) < std::pair(b.differ, b.far);
  });
  std::vector<FaultUse> out;
  for (Moved& placed : all) {
    if (placed.differ > 0 && out.size() < most) out.push_back(std::move(placed.use));
  }
  return out;
}

// From logs: the places at which it was tried, then all others.
std::vector<FaultUse> at_any_place(const Suspected& first, const pb::Scenario& document) {
  const FaultUse& own = first.trial->use;
  std::vector<FaultUse> out;
  for (const Candidate& candidate : first.places) {
    FaultUse use = candidate.use;
    for (const pb::Parameter& p : use.fault().parameters()) {
      if (p.strength() || p.kind() == pb::Parameter::MOMENT) {
        use.values[p.name()] = own.values.at(p.name());
      }
    }
    if (use.text() != own.text()) out.push_back(std::move(use));
  }
  for (FaultUse& use : at_other_places(own, document, kElsewhereInLogs)) {
    const bool known = std::any_of(
        out.begin(), out.end(), [&](const FaultUse& other) { return other.text() == use.text(); });
    if (!known) out.push_back(std::move(use));
  }
  return out;
}

// Ranks of which nothing is known, in the run or in the healthy one that it is compared with.
std::set<uint32_t> unrecorded(const pb::Outcome& evidence, const Changes& changes) {
  std::set<uint32_t> out(evidence.not_recorded().begin(), evidence.not_recorded().end());
  const auto compute = changes.find(Aspect::kCompute);
  for (uint32_t rank = 0; compute != changes.end() && rank < evidence.ranks(); ++rank) {
    if (!compute->second.contains(fmt::format("rank {}", rank))) out.insert(rank);
  }
  return out;
}

// The same fault on the other ranks of which nothing is known, where it is on one of them.
std::vector<FaultUse> at_other_unrecorded(const FaultUse& use, const std::set<uint32_t>& ranks) {
  std::vector<FaultUse> out;
  for (const pb::Parameter& p : use.fault().parameters()) {
    if (p.kind() != pb::Parameter::RANK) continue;
    const auto own = static_cast<uint32_t>(std::stoul(use.values.at(p.name())));
    if (!ranks.contains(own)) continue;
    for (const uint32_t rank : ranks) {
      if (rank == own || out.size() >= kElsewhereTried) continue;
      if (auto other = with_value(use, p.name(), std::to_string(rank))) {
        out.push_back(std::move(*other));
      }
    }
  }
  return out;
}

// The places at which a cause would look the same as where it is.
std::vector<FaultUse> same_elsewhere(const Suspected& suspected, const DiagnoseRequest& request,
                                     const Clues& clues, Laboratory& laboratory) {
  const FaultUse& use = suspected.trial->use;
  const bool unseen = request.classes && request.classes->unseen_place(use.fault().id());
  const bool settings = suspected.places[suspected.best].configured;  // they stand where it is
  const bool by_logs = clues.logs_only && !settings;
  std::vector<FaultUse> others =
      by_logs  ? at_any_place(suspected, clues.healthy)
      : unseen ? at_other_places(use, clues.healthy, kElsewhereTried)
               : at_other_unrecorded(use, unrecorded(clues.outcome, clues.changes));
  // Another call, or another device where the whole node is the culprit, is no other place.
  const std::set<std::string> here = places_of(use, clues.healthy);
  std::erase_if(others,
                [&](const FaultUse& other) { return places_of(other, clues.healthy) == here; });
  laboratory.allow(by_logs ? kElsewhereInLogs : kElsewhereTried);
  std::vector<FaultUse> out;
  size_t tried = 0;
  for (const FaultUse& other_use : others) {
    if (++tried > kElsewhereTried + suspected.places.size() && out.empty()) break;
    const auto other = laboratory.once(other_use);
    if (other && other->likeness.score > suspected.trial->likeness.score - kNoBetter &&
        look_the_same(*suspected.trial, *other, clues.changes)) {
      out.push_back(other_use);
    }
  }
  return out;
}

}  // namespace

void say_where_else(const std::vector<Suspected>& all, const DiagnoseRequest& request,
                    const Clues& clues, Laboratory& laboratory, pb::Diagnosis& diagnosis) {
  if (all.empty() || !all[0].trial) return;
  const pb::Scenario& job = request.healthy.document;
  pb::Cause& first = *diagnosis.mutable_causes(0);
  const FaultUse& use = all[0].trial->use;
  const std::set<std::string> here = places_of(use, job);
  const std::vector<FaultUse> own = same_elsewhere(all[0], request, clues, laboratory);
  for (const FaultUse& other : own) first.add_elsewhere(other.text());
  // Where the faults are that look the same.
  for (size_t i = 1; i < all.size(); ++i) {
    const std::string& id = all[i].places.front().use.fault().id();
    if (std::find(first.alike().begin(), first.alike().end(), id) == first.alike().end()) continue;
    std::vector<FaultUse> uses = same_elsewhere(all[i], request, clues, laboratory);
    uses.insert(uses.begin(), all[i].trial->use);
    const std::set<std::string> there = places_of(uses[0], job);
    const bool told = here.empty() || there.empty() || (uses.size() == 1 && there == here);
    if (told && own.empty()) continue;
    for (const FaultUse& other : uses) first.add_elsewhere(other.text());
  }
  if (first.elsewhere().empty()) return;
  first.clear_culprits();
  const pb::UnseenPlace* row =
      request.classes ? request.classes->unseen_place(use.fault().id()) : nullptr;
  first.add_against("the place is not known: " +
                    (row               ? row->why()
                     : clues.logs_only ? "at other places the same logs would be left"
                     : own.empty()     ? "faults that look the same are at other places"
                                       : "nothing was recorded of the ranks that it may be"));
  diagnosis.add_collect_next(row               ? row->collect()
                             : clues.logs_only ? "the state of each of these nodes, or a profile"
                                               : "profiles and dumps of the ranks without any");
}

}  // namespace rehearse::faults
