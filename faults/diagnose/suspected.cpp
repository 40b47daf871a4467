// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/suspected.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "faults/diagnose/alike.hpp"

namespace rehearse::faults {
namespace {

// Faults this close to the most alike are looked at again, and at most so many.
constexpr double kWorthwhile = 0.3;
constexpr size_t kLookedAtAgain = 6, kFitted = 5;
// A likeness that no other place betters.
constexpr double kExact = 0.9999;
// Places of a fault that are tried when the first has no effect.
constexpr size_t kWithoutEffect = 4;

template <typename Key>
void sort_by(std::vector<Suspected>& all, Key key) {
  std::stable_sort(all.begin(), all.end(), [&](const Suspected& a, const Suspected& b) {
    // Closer than a thousandth is equal; the prior decides, in the order of which they were tried.
    return std::round(1000 * key(a)) > std::round(1000 * key(b));
  });
}

// No other place can be better.
bool is_found(const Suspected& suspected) {
  return suspected.trial && suspected.trial->likeness.score > kExact &&
         suspected.trial->shape > kExact;
}

bool is_expected(const Suspected& suspected) {
  return std::any_of(suspected.places.begin(), suspected.places.end(),
                     [](const Candidate& candidate) { return candidate.expected; });
}

Result<void> try_place(Suspected& suspected, size_t place, Laboratory& laboratory) {
  // With the strength found so far: effects are not linear, and places would not be comparable.
  FaultUse use = suspected.places[place].use;
  for (const pb::Parameter& p : use.fault().parameters()) {
    if (p.strength() && suspected.trial) {
      use.values[p.name()] = suspected.trial->use.values.at(p.name());
    }
  }
  auto trial = laboratory.once(use);
  if (!trial) {
    if (trial.error().code == Code::kInterrupted) return tl::unexpected(trial.error());
    if (suspected.refused.empty()) suspected.refused = trial.error().message();
    return {};
  }
  if (!suspected.trial || trial->shape > suspected.trial->shape + 1e-6) {
    suspected.trial = std::move(*trial);
    suspected.best = place;
  }
  return {};
}

// Of those of which more than noise was seen: scaled up to the size of the evidence, noise looks like anything.
double most_promise(const std::vector<Suspected>& all) {
  double most = 0;
  for (const Suspected& one : all) {
    if (one.trial && is_clear(one.trial->changes)) most = std::max(most, one.promise());
  }
  return most;
}

// Of a fault whose first place ends otherwise than the evidence, or has no effect. From logs the ways of an end are less well
// told apart, and those that the symptom lets expect are tried everywhere.
size_t places_to_try(const Suspected& empty_handed, bool from_logs) {
  if (!from_logs) return kWithoutEffect;
  return is_expected(empty_handed) ? kPlacesPerFault : 1;
}

// From logs nothing tells how strong a fault is, and its places were compared at one strength: of those nearest the best of its
// usual ones is taken, and places are tried with that.
Result<void> try_other_strengths(std::vector<Suspected>& all, Laboratory& laboratory) {
  for (Suspected& suspected : all) {
    if (!suspected.trial || suspected.promise() < all.front().promise() - kClose) break;
    if (is_found(all.front())) break;
    laboratory.allow(static_cast<uint32_t>(suspected.places.size()) + 2);
    Trial other = laboratory.at_either_end(*suspected.trial);
    if (other.use.text() == suspected.trial->use.text()) continue;
    suspected.trial = std::move(other);
    for (size_t place = 0; place < suspected.places.size() && !is_found(suspected); ++place) {
      if (auto tried = try_place(suspected, place, laboratory); !tried) return tried;
    }
  }
  return {};
}

}  // namespace

std::vector<Suspected> by_fault(std::vector<Candidate> candidates) {
  std::vector<Suspected> out;
  for (Candidate& candidate : candidates) {
    const auto same = std::find_if(out.begin(), out.end(), [&](const Suspected& s) {
      return s.places.front().use.fault().id() == candidate.use.fault().id();
    });
    if (same == out.end()) {
      out.emplace_back().places.push_back(std::move(candidate));
    } else {
      same->places.push_back(std::move(candidate));
    }
  }
  return out;
}

std::vector<Suspected> take_unexpected(std::vector<Suspected>& all) {
  const auto begin = std::stable_partition(all.begin(), all.end(), is_expected);
  std::vector<Suspected> out(std::make_move_iterator(begin), std::make_move_iterator(all.end()));
  all.erase(begin, all.end());
  return out;
}

Result<void> try_all(std::vector<Suspected>& all, bool from_logs, Laboratory& laboratory) {
  for (Suspected& suspected : all) {
    if (suspected.trial) continue;
    // The first place that the job has room for.
    for (size_t place = 0; place < suspected.places.size() && !suspected.trial; ++place) {
      if (auto tried = try_place(suspected, place, laboratory); !tried) return tried;
      if (laboratory.exhausted()) break;
    }
    if (!suspected.trial) continue;
    if (is_expected(suspected)) suspected.trial = laboratory.ending_alike(*suspected.trial);
    suspected.trial = laboratory.roughly_fitted(*suspected.trial);
  }
  sort_by(all, [](const Suspected& s) { return s.promise(); });
  const double most = most_promise(all);
  for (size_t i = 0; i < all.size(); ++i) {
    // A place without any effect says nothing of the fault's other places.
    const bool empty_handed = all[i].trial && all[i].trial->likeness.score == 0;
    if (!empty_handed && (i >= kLookedAtAgain || all[i].promise() < most - kWorthwhile)) continue;
    for (size_t place = 0; place < all[i].places.size() && !laboratory.exhausted(); ++place) {
      if (empty_handed && place >= places_to_try(all[i], from_logs)) break;
      if (is_found(all[i])) break;
      if (auto tried = try_place(all[i], place, laboratory); !tried) return tried;
    }
  }
  sort_by(all, [](const Suspected& s) { return s.promise(); });
  if (from_logs) {
    if (auto tried = try_other_strengths(all, laboratory); !tried) return tried;
    sort_by(all, [](const Suspected& s) { return s.promise(); });
  }
  // As promising as they were before any of them was fitted.
  const double best = most_promise(all);
  for (size_t i = 0; i < std::min(all.size(), kFitted); ++i) {
    if (!all[i].trial || all[i].promise() < best - kWorthwhile) break;
    all[i].trial = laboratory.fitted(*all[i].trial);
  }
  sort_by(all, [](const Suspected& s) { return s.rank(); });
  return {};
}

}  // namespace rehearse::faults
