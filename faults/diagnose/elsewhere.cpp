// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/elsewhere.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace rehearse::faults {
namespace {

// Places whose scores are closer than this are not told apart by the evidence.
constexpr double kNoBetter = 0.01;

// The same fault with another rank or node, at most so many.
std::vector<FaultUse> at_other_places(const FaultUse& use, const pb::Scenario& document,
                                      size_t most) {
  std::vector<FaultUse> out;
  for (const pb::Parameter& p : use.fault().parameters()) {
    const int count = p.kind() == pb::Parameter::RANK   ? document.launch().ranks_size()
                      : p.kind() == pb::Parameter::NODE ? document.platform().nodes_size()
                                                        : 0;
    for (int place = 0; place < count && out.size() < most; ++place) {
      const std::string value = std::to_string(place);
      if (value == use.values.at(p.name())) continue;
      if (auto other = with_value(use, p.name(), value)) out.push_back(std::move(*other));
    }
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

// What is left of changes where only that is looked at which the evidence has measured.
Changes as_measured(Changes changes, const Changes& evidence) {
  for (auto& [aspect, of_aspect] : changes) {
    if (!is_measured(aspect)) continue;
    const auto seen = evidence.find(aspect);
    std::erase_if(of_aspect, [&](const auto& change) {
      return seen == evidence.end() || !seen->second.contains(change.first);
    });
  }
  return changes;
}

}  // namespace

void say_where_else(const Suspected& first, const DiagnoseRequest& request, const Clues& clues,
                    Laboratory& laboratory, pb::Diagnosis& diagnosis) {
  if (!first.trial) return;
  const FaultUse& use = first.trial->use;
  const pb::UnseenPlace* row =
      request.classes ? request.classes->unseen_place(use.fault().id()) : nullptr;
  pb::Cause& cause = *diagnosis.mutable_causes(0);
  const Changes here = as_measured(first.trial->changes, clues.changes);
  const bool settings = first.places[first.best].configured;  // they stand where it is
  const bool by_logs = clues.logs_only && !settings;
  const std::vector<FaultUse> others =
      by_logs ? at_any_place(first, clues.healthy)
      : row   ? at_other_places(use, clues.healthy, kElsewhereTried)
              : at_other_unrecorded(use, unrecorded(clues.outcome, clues.changes));
  laboratory.allow(by_logs ? kElsewhereInLogs : kElsewhereTried);
  size_t tried = 0;
  for (const FaultUse& other_use : others) {
    if (++tried > kElsewhereTried + first.places.size() && cause.elsewhere().empty()) break;
    const auto other = laboratory.once(other_use);
    if (other && other->verdict == first.trial->verdict &&
        other->likeness.score > first.trial->likeness.score - kNoBetter &&
        likeness(here, as_measured(other->changes, clues.changes)).score > kSameWithinNoise) {
      cause.add_elsewhere(other_use.text());
    }
  }
  if (cause.elsewhere().empty()) return;
  cause.clear_culprits();
  cause.add_against("the place is not known: " +
                    (row               ? row->why()
                     : clues.logs_only ? "at other places it would leave the same logs"
                                       : "nothing was recorded of the ranks that it may be"));
  diagnosis.add_collect_next(row               ? row->collect()
                             : clues.logs_only ? "the state of each of these nodes, or a profile"
                                               : "profiles and dumps of the ranks without any");
}

}  // namespace rehearse::faults
