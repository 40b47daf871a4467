// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/alike.hpp"

namespace rehearse::faults {
namespace {

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

bool look_the_same(const Trial& a, const Trial& b, const Changes& evidence) {
  return a.verdict == b.verdict &&
         likeness(as_measured(a.changes, evidence), as_measured(b.changes, evidence)).score >
             kSameWithinNoise;
}

void say_who_is_alike(const std::vector<Suspected>& all, const FaultClasses* classes,
                      const Clues& clues, pb::Diagnosis& diagnosis) {
  if (all.empty() || !all[0].trial) return;
  const Trial& first = *all[0].trial;
  for (size_t i = 1; i < all.size(); ++i) {
    if (!all[i].trial || all[0].rank() - all[i].rank() > kClose) break;
    const Trial& other = *all[i].trial;
    const std::string& id = other.use.fault().id();
    const bool joined = classes && classes->joining(first.use.fault().id(), id);
    const bool by_logs = clues.logs_only && all[0].rank() - all[i].rank() < kNoBetter;
    if ((joined || by_logs) && look_the_same(first, other, clues.changes)) {
      diagnosis.mutable_causes(0)->add_alike(id);
    }
  }
}

}  // namespace rehearse::faults
