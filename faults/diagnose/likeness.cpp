// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/likeness.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace rehearse::faults {
namespace {

constexpr double kAgrees = 0.8;
// Aspects of this weight that agree less than this cannot be explained away by what a model gets wrong.
constexpr double kTelling = 1.5, kContradicts = 0.7;
// A change of this many times its noise counts in full.
constexpr double kClear = 3;
// A part stands out when it changed at least this share of what the one did that changed most, and is explained when at
// least this share of its change is simulated; how busy a link is depends on protocols and clocks that are known less well.
constexpr double kStandsOut = 0.5, kExplained = 0.6, kLinkExplained = 0.4;

// What an aspect is worth: figures that every run has less, what points at single parts more.
double weight_of(Aspect aspect) {
  switch (aspect) {
    case Aspect::kOverlap:
    case Aspect::kBandwidth:
      return 0.4;
    case Aspect::kStep:
    case Aspect::kTransfer:
    case Aspect::kWait:
    case Aspect::kWaiting:
    case Aspect::kCall:
    case Aspect::kFailed:
    case Aspect::kWhen:
      return 0.7;
    case Aspect::kCalls:
    case Aspect::kTransport:
    case Aspect::kMemory:
    case Aspect::kText:
    case Aspect::kSilent:
      return 1.5;
    case Aspect::kPattern:
    case Aspect::kCompute:
    case Aspect::kHost:
    case Aspect::kIdle:
    case Aspect::kRecords:
      return 2;
    default:
      return 1;
  }
}

// Whether the parts that stand out in it must be explained, however well the others agree: ranks and steps that take
// longer, links that are busier.
bool is_of_parts(Aspect aspect) {
  return aspect == Aspect::kPattern || aspect == Aspect::kCompute || aspect == Aspect::kHost ||
         aspect == Aspect::kIdle || aspect == Aspect::kLinks;
}

// Whether as many parts stand out as much as the evidence has it. Which ones they are is what the likeness measures: a fault
// that acts at random makes others of the same kind.
bool explains_parts(Aspect aspect, const std::map<std::string, Change>& evidence,
                    const std::map<std::string, Change>& simulated) {
  std::vector<Change> seen;
  std::vector<double> made;
  seen.reserve(evidence.size());
  for (const auto& [key, change] : evidence) seen.push_back(change);
  for (const auto& [key, change] : simulated) {
    if (!is_measured(aspect) || evidence.count(key)) made.push_back(change.value);
  }
  std::sort(seen.begin(), seen.end(),
            [](const Change& a, const Change& b) { return a.value > b.value; });
  std::sort(made.rbegin(), made.rend());
  const double enough = aspect == Aspect::kLinks ? kLinkExplained : kExplained;
  for (size_t i = 0; i < seen.size(); ++i) {
    if (seen[i].value < kStandsOut * seen[0].value) break;
    if (seen[i].value < kClear * seen[i].noise) continue;
    if ((i < made.size() ? made[i] : 0) < enough * seen[i].value) return false;
  }
  return true;
}

struct Compared {
  double off = 0, extent = 0;
  double clear = 0;  // largest change over its noise
  std::string worst_key;
  double worst = -1, seen = 0, simulated = 0;

  void add(const std::string& key, const Change& a, const Change& b) {
    const double noise = std::max(a.noise, b.noise);
    const double larger = std::max(std::abs(a.value), std::abs(b.value));
    if (larger <= noise) return;
    const bool opposite = a.value * b.value < 0;
    const double off_here = std::max(0.0, std::abs(a.value - b.value) - noise);
    off += off_here;
    extent += opposite ? std::abs(a.value) + std::abs(b.value) : larger;
    clear = std::max(clear, noise > 0 ? larger / noise : kClear);
    if (off_here > worst || (off_here == worst && larger > std::abs(seen))) {
      worst = off_here;
      worst_key = key;
      seen = a.value;
      simulated = b.value;
    }
  }
};

Change scaled(const Change& change, double scale) {
  return {.value = change.value * scale, .noise = change.noise * std::max(1.0, scale)};
}

Compared compare(Aspect aspect, const std::map<std::string, Change>& evidence,
                 const std::map<std::string, Change>& simulated, double scale) {
  Compared out;
  for (const auto& [key, change] : evidence) {
    const auto found = simulated.find(key);
    if (found == simulated.end() && is_measured(aspect)) continue;
    const Change other = found == simulated.end() ? Change{0, change.noise} : found->second;
    out.add(key, change, scaled(other, scale));
  }
  if (is_measured(aspect)) return out;
  for (const auto& [key, change] : simulated) {
    if (!evidence.count(key)) out.add(key, {0, change.noise}, scaled(change, scale));
  }
  return out;
}

std::string in_words(Aspect aspect, const Compared& compared) {
  const auto figure = [&](double value) {
    if (aspect == Aspect::kStep || aspect == Aspect::kPattern || aspect == Aspect::kBandwidth ||
        aspect == Aspect::kCalls) {
      return fmt::format("{:+.0f} %", 100 * std::expm1(value));
    }
    if (is_time(aspect) || aspect == Aspect::kMemory) return fmt::format("{:+.0f} %", 100 * value);
    return fmt::format("{:.2f}", value);
  };
  const bool counted = !is_time(aspect) && aspect != Aspect::kMemory && aspect != Aspect::kCalls;
  if (counted && compared.seen != 0 && compared.worst <= 0) {
    return fmt::format("{}: {} in both", name_of(aspect), compared.worst_key);
  }
  if (counted && (compared.seen == 0 || compared.simulated == 0)) {
    return fmt::format("{}: {} {}", name_of(aspect), compared.worst_key,
                       compared.seen == 0 ? "simulated, not seen" : "seen, not simulated");
  }
  return fmt::format("{}: {} {} seen, {} simulated", name_of(aspect), compared.worst_key,
                     figure(compared.seen), figure(compared.simulated));
}

}  // namespace

Likeness likeness(const Changes& evidence, const Changes& simulated, double scale) {
  Likeness out;
  std::set<Aspect> aspects;
  for (const auto& [aspect, changes] : evidence) aspects.insert(aspect);
  for (const auto& [aspect, changes] : simulated) aspects.insert(aspect);
  static const std::map<std::string, Change> kNone;
  const auto of = [](const Changes& changes,
                     Aspect aspect) -> const std::map<std::string, Change>& {
    const auto found = changes.find(aspect);
    return found == changes.end() ? kNone : found->second;
  };
  double sum = 0, weights = 0;
  for (const Aspect aspect : aspects) {
    const Compared compared =
        compare(aspect, of(evidence, aspect), of(simulated, aspect), is_time(aspect) ? scale : 1);
    if (!(compared.extent > 0)) continue;
    const double value = std::clamp(1 - compared.off / compared.extent, 0.0, 1.0);
    const double weight = weight_of(aspect) * std::min(1.0, compared.clear / kClear);
    out.aspects[aspect] = value;
    out.words[aspect] = in_words(aspect, compared);
    const bool contradicts =
        weight_of(aspect) >= kTelling && compared.clear >= kClear && value < kContradicts;
    const bool part_left =
        is_of_parts(aspect) && !explains_parts(aspect, of(evidence, aspect), of(simulated, aspect));
    if (contradicts || part_left) out.unexplained.push_back(aspect);
    sum += weight * value;
    weights += weight;
    (value >= kAgrees ? out.same : out.different).push_back(out.words[aspect]);
  }
  out.score = weights > 0 ? sum / weights : 1;
  return out;
}

Changes together(const Changes& some, const Changes& more, double scale) {
  Changes out = some;
  for (const auto& [aspect, changes] : more) {
    for (const auto& [key, change] : changes) {
      const Change other = scaled(change, is_time(aspect) ? scale : 1);
      const auto [entry, fresh] = out[aspect].try_emplace(key, other);
      if (fresh) continue;
      Change& sum = entry->second;
      sum.noise = std::max(sum.noise, other.noise);
      // What is there twice is there once.
      sum.value = is_time(aspect) || aspect == Aspect::kMemory || aspect == Aspect::kCalls
                      ? sum.value + other.value
                      : (std::abs(other.value) > std::abs(sum.value) ? other.value : sum.value);
    }
  }
  return out;
}

Changes left_by(const Changes& evidence, const Changes& simulated) {
  Changes out;
  for (const auto& [aspect, changes] : evidence) {
    const auto own = simulated.find(aspect);
    for (const auto& [key, change] : changes) {
      Change left = change;
      if (own != simulated.end()) {
        if (const auto found = own->second.find(key); found != own->second.end()) {
          left.value -= found->second.value;
          left.noise = std::max(left.noise, found->second.noise);
        }
      }
      // A rank that was recorded stays so; what is counted is there or not.
      if (is_measured(aspect) || std::abs(left.value) > left.noise) out[aspect][key] = left;
    }
  }
  return out;
}

double magnitude(const Changes& changes) {
  if (const auto step = changes.find(Aspect::kStep); step != changes.end()) {
    return std::max(0.0, std::expm1(step->second.begin()->second.value));
  }
  double sum = 0;
  if (const auto memory = changes.find(Aspect::kMemory); memory != changes.end()) {
    for (const auto& [key, change] : memory->second) {
      if (key.starts_with("rank ")) sum += std::max(0.0, change.value);
    }
  }
  return sum;
}

bool is_clear(const Changes& changes) {
  const auto step = changes.find(Aspect::kStep);
  if (step == changes.end()) return true;
  const Change& mean = step->second.begin()->second;
  return mean.value > mean.noise;
}

}  // namespace rehearse::faults
