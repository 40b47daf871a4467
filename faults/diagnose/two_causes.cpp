// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/two_causes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "base/document.hpp"
#include "faults/diagnose/suspected.hpp"
#include "sim/scenario/scenario.hpp"

namespace rehearse::faults {
namespace {

constexpr size_t kFirstsTried = 3, kSecondsTried = 4, kPairsFitted = 2, kPlacesOfSecond = 1;
// What the configuration shows goes before what nobody saw.
constexpr double kShownBefore = 0.1;
// Strengths that a second cause may have against the one it was tried with, as multiples of what it does.
constexpr std::array kScales = {0.25, 0.5, 1.0, 2.0, 4.0};
// Steps of the search for both strengths, in logarithms.
constexpr std::array kStrengthSteps = {0.8, 0.4, 0.2, 0.1};
constexpr int kStepsOneWay = 3;
// An aspect that agrees so much less without a cause is one that the cause is needed for.
constexpr double kNeeded = 0.1;

// Whether what two runs show can be added up: those that come to their end show the same kinds of things, right or wrong.
bool end_alike(pb::Verdict a, pb::Verdict b) {
  const auto whole = [](pb::Verdict verdict) {
    return verdict == pb::COMPLETED || verdict == pb::WRONG_SEMANTICS;
  };
  return a == b || (whole(a) && whole(b));
}

// Runs that end in another way have little in common: settings, memory, what was noticed.
Changes common_to_all(const Changes& changes) {
  Changes out;
  for (const Aspect aspect : {Aspect::kTransport, Aspect::kMemory, Aspect::kFindings}) {
    if (const auto found = changes.find(aspect); found != changes.end()) out.insert(*found);
  }
  return out;
}

struct Guess {
  const Candidate* second = nullptr;
  double score = 0;  // of the evidence to the sum of both
};

// The strength that makes the likeness of both largest, one after the other, from coarse to fine.
class PairFit {
 public:
  PairFit(FaultUse first, FaultUse second, Trial trial, Laboratory& laboratory)
      : first_(std::move(first)),
        second_(std::move(second)),
        best_(std::move(trial)),
        laboratory_(laboratory) {}

  void run() {
    for (const double step : kStrengthSteps) {
      for (FaultUse* use : {&second_, &first_}) {
        if (!walk(*use, step)) walk(*use, -step);
      }
    }
  }
  [[nodiscard]] const FaultUse& first() const { return first_; }
  [[nodiscard]] const FaultUse& second() const { return second_; }
  [[nodiscard]] const Trial& trial() const { return best_; }

 private:
  // True when it led to anything better.
  bool walk(FaultUse& use, double step) {
    const pb::Parameter* strength = strength_of(use.fault());
    if (!strength) return false;
    bool better = false;
    for (int i = 0; i < kStepsOneWay; ++i) {
      const auto value = parse_value(*strength, use.values.at(strength->name()));
      if (!value || *value <= 0) return better;
      auto moved =
          with_value(use, strength->name(), format_value(*strength, *value * std::exp(step)));
      if (!moved || moved->text() == use.text()) return better;
      std::swap(use, *moved);
      const auto trial = laboratory_.both(first_, second_);
      if (!trial || trial->likeness.score <= best_.likeness.score) {
        std::swap(use, *moved);
        return better;
      }
      best_ = *trial;
      better = true;
    }
    return better;
  }

  FaultUse first_, second_;
  Trial best_;
  Laboratory& laboratory_;
};

// The job with a cause in its configuration: what that sets is no hint at where another one may be.
Result<pb::Scenario> configured_with(const pb::Scenario& healthy, const FaultUse& use) {
  pb::Scenario out = healthy;
  RH_TRY(const std::vector<pb::Patch> patches, patches_of(use, healthy));
  for (const pb::Patch& patch : patches) {
    for (const auto& [path, value] : sim::sorted_assignments(patch.set())) {
      if (!path.starts_with("launch.")) continue;
      if (auto set = set_path(out, path, value); !set) return tl::unexpected(set.error());
    }
  }
  return out;
}

// As long as it lives, faults are tried in the job that has `other` too.
class Beside {
 public:
  Beside(Laboratory& laboratory, std::optional<FaultUse> other) : laboratory_(laboratory) {
    laboratory_.beside(std::move(other));
  }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;
  ~Beside() { laboratory_.beside(std::nullopt); }

 private:
  Laboratory& laboratory_;
};

// Faults that could have made what the first one leaves, the likeliest sum first, one place of each fault.
Result<std::vector<Guess>> guesses_for(const Clues& clues, const Alone& first,
                                       const std::vector<Candidate>& seconds,
                                       Laboratory& laboratory) {
  std::vector<Guess> out;
  std::map<std::string, size_t> places;
  // What the configuration shows is there: the others are tried in that job, where they may end it in another way than alone.
  const bool shown = first.candidate.configured;
  const Beside job(laboratory, shown ? std::optional(first.trial.use) : std::nullopt);
  const Changes of_first = end_alike(first.trial.verdict, clues.outcome.verdict())
                               ? first.trial.changes
                               : common_to_all(first.trial.changes);
  for (const Candidate& second : seconds) {
    const std::string& id = second.use.fault().id();
    if (id == first.candidate.use.fault().id() || ++places[id] > kPlacesOfSecond) continue;
    const auto trial = laboratory.once(second.use);
    if (!trial && trial.error().code == Code::kInterrupted) return tl::unexpected(trial.error());
    if (!trial) continue;
    Guess guess{&second};
    if (shown) {
      guess.score = std::max(trial->likeness.score, trial->shape);
    } else {
      const Changes own = end_alike(trial->verdict, clues.outcome.verdict())
                              ? trial->changes
                              : common_to_all(trial->changes);
      for (const double scale : kScales) {
        if (scale != 1 && !strength_of(second.use.fault())) continue;
        const Changes sum = together(of_first, own, scale);
        guess.score = std::max(guess.score, likeness(clues.changes, sum).score);
      }
    }
    if (second.configured) guess.score += kShownBefore;
    const auto same = std::find_if(out.begin(), out.end(), [&](const Guess& other) {
      return other.second->use.fault().id() == id;
    });
    if (same == out.end()) {
      out.push_back(guess);
    } else if (guess.score > same->score) {
      *same = guess;
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Guess& a, const Guess& b) { return a.score > b.score; });
  return out;
}

// The best guesses that promise more than the first one alone.
std::set<std::string> promising(const std::vector<Guess>& guesses, const Alone& first) {
  const double enough = first.trial.likeness.score + kSecondWorth;
  std::set<std::string> out;
  for (const Guess& guess : guesses) {
    if (out.size() >= kSecondsTried || guess.score < enough) break;
    out.insert(guess.second->use.fault().id());
  }
  return out;
}

// These faults beside the first one as it is, at all their places and with fitted strengths and moments, the best first: what is
// looked for is tried in the job in which it would be.
Result<std::vector<Suspected>> seconds_beside(const Alone& first, const std::set<std::string>& ids,
                                              const std::vector<Candidate>& seconds, bool from_logs,
                                              Laboratory& laboratory) {
  std::vector<Candidate> wanted;
  for (const Candidate& second : seconds) {
    if (ids.contains(second.use.fault().id())) wanted.push_back(second);
  }
  std::vector<Suspected> out = by_fault(std::move(wanted));
  const Beside job(laboratory, first.trial.use);
  if (auto tried = try_all(out, from_logs, laboratory); !tried) {
    return tl::unexpected(tried.error());
  }
  return out;
}

std::vector<std::string> needed_for(const Likeness& both, const Likeness& without) {
  std::vector<std::string> out;
  for (const auto& [aspect, value] : both.aspects) {
    const auto other = without.aspects.find(aspect);
    const double then = other == without.aspects.end() ? 1 : other->second;
    if (value - then >= kNeeded) out.push_back(both.words.at(aspect));
  }
  return out;
}

TwoCauses::Part part_of(const Candidate& candidate, const FaultUse& use, Likeness without,
                        const Likeness& both) {
  TwoCauses::Part out{candidate, std::move(without), {}};
  out.candidate.use = use;
  out.shows = needed_for(both, out.without);
  return out;
}

}  // namespace

Result<std::optional<TwoCauses>> find_two_causes(const Clues& clues,
                                                 const FaultCatalogue& catalogue,
                                                 std::span<const Alone> firsts,
                                                 Laboratory& laboratory) {
  std::optional<TwoCauses> best;
  if (firsts.empty()) return best;
  const Alone& best_single =
      *std::max_element(firsts.begin(), firsts.end(), [](const Alone& a, const Alone& b) {
        return a.trial.likeness.score < b.trial.likeness.score;
      });
  for (const Alone& first : firsts.first(std::min(firsts.size(), kFirstsTried))) {
    const Changes left = left_by(clues.changes, first.trial.changes);
    RH_TRY(const pb::Scenario with_first, configured_with(clues.healthy, first.trial.use));
    const Clues rest{.outcome = clues.outcome,
                     .changes = left,
                     .symptom = clues.symptom,
                     .healthy = with_first,
                     .configured = clues.configured,
                     .pace = clues.pace,
                     .logs_only = clues.logs_only};
    RH_TRY(const std::vector<Candidate> seconds, find_candidates(rest, catalogue));
    RH_TRY(const auto guesses, guesses_for(clues, first, seconds, laboratory));
    RH_TRY(const std::vector<Suspected> tried,
           seconds_beside(first, promising(guesses, first), seconds, clues.logs_only, laboratory));
    for (size_t i = 0; i < std::min(tried.size(), kPairsFitted); ++i) {
      if (!tried[i].trial) break;
      const Candidate& second = tried[i].places[tried[i].best];
      // The first one alone was made as strong as both are: beside it the second one was fitted too weak.
      const auto usual = laboratory.both(first.trial.use, second.use);
      const bool weak = usual && usual->likeness.score > tried[i].trial->likeness.score;
      const Trial& start = weak ? *usual : *tried[i].trial;
      PairFit fit(first.trial.use, start.use, start, laboratory);
      fit.run();
      const Likeness& both = fit.trial().likeness;
      if (best && both.score <= best->likeness.score) continue;
      const auto one = laboratory.once(fit.first()), other = laboratory.once(fit.second());
      if (!one || !other) continue;
      const double alone =
          std::max({one->likeness.score, other->likeness.score, best_single.trial.likeness.score});
      if (both.score < alone + kSecondWorth) continue;
      best = TwoCauses{part_of(first.candidate, fit.first(), other->likeness, both),
                       part_of(second, fit.second(), one->likeness, both), both};
    }
  }
  return best;
}

}  // namespace rehearse::faults
