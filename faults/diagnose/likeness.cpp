// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/likeness.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <string_view>

#include "base/text.hpp"
#include "base/units.hpp"
#include "faults/symptoms/crash_texts.hpp"

namespace rehearse::faults {
namespace {

constexpr double kStepTolerance = 0.10;
constexpr double kShareTolerance = 0.10;
constexpr double kUseTolerance = 0.20;
constexpr double kSequenceTolerance = 2;
constexpr double kAgrees = 0.8;

// Weighted mean of the parts seen so far.
class Parts {
 public:
  void add(double weight, double value, std::string words) {
    sum_ += weight * value;
    weights_ += weight;
    (value >= kAgrees ? out_.same : out_.different).push_back(std::move(words));
  }
  [[nodiscard]] Likeness result() && {
    out_.score = weights_ > 0 ? sum_ / weights_ : 0;
    return std::move(out_);
  }

 private:
  Likeness out_;
  double sum_ = 0, weights_ = 0;
};

template <typename T>
double overlap(const std::set<T>& a, const std::set<T>& b) {
  std::vector<T> both, either;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(either));
  return either.empty() ? 1 : static_cast<double>(both.size()) / static_cast<double>(either.size());
}

std::set<std::string> culprits(const pb::Outcome& outcome) {
  std::set<std::string> out;
  for (const pb::Culprit& c : outcome.culprits()) {
    if (c.has_rank()) {
      out.insert(fmt::format("rank {}", c.rank()));
    } else if (!c.link().empty()) {
      out.insert("link " + c.link());
    } else if (c.has_node()) {
      out.insert(fmt::format("node {}", c.node()));
    } else {
      out.insert(c.kind());
    }
  }
  return out;
}

void compare_culprits(const pb::Outcome& a, const pb::Outcome& b, double weight, Parts& parts) {
  const auto seen = culprits(a), simulated = culprits(b);
  if (seen.empty() && simulated.empty()) return;
  const auto words = [](const std::set<std::string>& set) {
    const std::vector<std::string> all(set.begin(), set.end());
    return all.empty() ? std::string("none") : join_words(all);
  };
  parts.add(weight, overlap(seen, simulated),
            fmt::format("culprits: {} seen, {} simulated", words(seen), words(simulated)));
}

void compare_steps(const pb::Outcome& a, const pb::Outcome& b, Parts& parts) {
  const int64_t seen = a.step_time_ns().mean(), simulated = b.step_time_ns().mean();
  if (seen <= 0 || simulated <= 0) return;
  const double off = std::abs(std::log(static_cast<double>(simulated) / static_cast<double>(seen)));
  parts.add(0.4, std::exp(-off / kStepTolerance),
            fmt::format("step time: {} seen, {} simulated", format_duration(seen),
                        format_duration(simulated)));
}

void compare_breakdown(const pb::Outcome& a, const pb::Outcome& b, Parts& parts) {
  std::map<uint32_t, const pb::RankBreakdown*> simulated;
  for (const pb::RankBreakdown& rank : b.breakdown()) simulated[rank.rank()] = &rank;
  double moved = 0;
  int ranks = 0;
  for (const pb::RankBreakdown& x : a.breakdown()) {
    const auto found = simulated.find(x.rank());
    if (found == simulated.end() || x.step() <= 0 || found->second->step() <= 0) continue;
    const pb::RankBreakdown& y = *found->second;
    const auto differ = [&](int64_t p, int64_t q) {
      return std::abs(static_cast<double>(p) / static_cast<double>(x.step()) -
                      static_cast<double>(q) / static_cast<double>(y.step()));
    };
    moved +=
        0.5 * (differ(x.compute(), y.compute()) + differ(x.communication(), y.communication()) +
               differ(x.wait(), y.wait()) + differ(x.host() + x.idle(), y.host() + y.idle()));
    ++ranks;
  }
  if (ranks == 0) return;
  moved /= ranks;
  parts.add(0.3, std::exp(-moved / kShareTolerance),
            fmt::format("where the time goes: {:.1f} % of the step differs", 100 * moved));
}

void compare_transports(const pb::Outcome& a, const pb::Outcome& b, Parts& parts) {
  std::map<std::string, std::string> simulated;
  for (const pb::CommunicatorUse& use : b.communicators()) simulated[use.id()] = use.transport();
  int both = 0, equal = 0;
  std::string example;
  for (const pb::CommunicatorUse& use : a.communicators()) {
    const auto found = simulated.find(use.id());
    if (found == simulated.end()) continue;
    ++both;
    const bool same = found->second == use.transport();
    equal += same ? 1 : 0;
    if (example.empty() || !same) {
      example = fmt::format("transport of {}: {} seen, {} simulated", use.id(), use.transport(),
                            found->second);
    }
  }
  if (both > 0) parts.add(0.2, static_cast<double>(equal) / both, example);
}

void compare_links(const pb::Outcome& a, const pb::Outcome& b, Parts& parts) {
  if (a.links_size() == 0 || b.links_size() == 0) return;
  std::map<std::string, std::pair<double, double>> use;
  for (const pb::LinkUse& link : a.links()) use[link.name()].first = link.utilisation();
  for (const pb::LinkUse& link : b.links()) use[link.name()].second = link.utilisation();
  const auto apart = [](const auto& link) {
    return std::abs(link.second.first - link.second.second);
  };
  const auto worst = std::max_element(
      use.begin(), use.end(), [&](const auto& x, const auto& y) { return apart(x) < apart(y); });
  parts.add(0.2, std::exp(-apart(*worst) / kUseTolerance),
            fmt::format("use of links: {} busy {:.0f} % seen, {:.0f} % simulated", worst->first,
                        100 * worst->second.first, 100 * worst->second.second));
}

Likeness of_completed(const pb::Outcome& a, const pb::Outcome& b) {
  Parts parts;
  compare_steps(a, b, parts);
  compare_breakdown(a, b, parts);
  compare_transports(a, b, parts);
  compare_links(a, b, parts);
  compare_culprits(a, b, 0.1, parts);
  return std::move(parts).result();
}

Likeness of_hang(const pb::Outcome& a, const pb::Outcome& b) {
  Parts parts;
  const auto missing = [](const pb::Outcome& outcome) {
    std::set<uint32_t> out;
    for (const pb::Wait& wait : outcome.waits()) {
      out.insert(wait.for_ranks().begin(), wait.for_ranks().end());
    }
    return out;
  };
  const auto words = [](const std::set<uint32_t>& set) {
    const std::vector<uint32_t> all(set.begin(), set.end());
    return all.empty() ? std::string("none") : format_ranks(all);
  };
  const auto seen = missing(a), simulated = missing(b);
  parts.add(0.4, overlap(seen, simulated),
            fmt::format("ranks waited for: {} seen, {} simulated", words(seen), words(simulated)));
  if (a.waits_size() > 0 && b.waits_size() > 0) {
    const pb::Wait &x = a.waits(0), &y = b.waits(0);
    const auto apart = static_cast<double>(std::abs(x.sequence() - y.sequence()));
    const double value =
        x.communicator() == y.communicator() ? std::exp(-apart / kSequenceTolerance) : 0;
    parts.add(0.4, value,
              fmt::format("waiting in: {} sequence {} seen, {} sequence {} simulated",
                          x.communicator(), x.sequence(), y.communicator(), y.sequence()));
  }
  compare_culprits(a, b, 0.2, parts);
  return std::move(parts).result();
}

std::string_view error_kind(const pb::Outcome& outcome) {
  for (const pb::ErrorText& error : outcome.error_text()) {
    if (const CrashText* row = match_crash_text(error.text())) return row->text;
  }
  return {};
}

Likeness of_crash(const pb::Outcome& a, const pb::Outcome& b) {
  Parts parts;
  const pb::Failure &x = a.first_failure(), &y = b.first_failure();
  parts.add(0.3, x.rank() == y.rank() ? 1 : 0,
            fmt::format("first to fail: rank {} seen, rank {} simulated", x.rank(), y.rank()));
  parts.add(0.3, x.phase() == y.phase() ? 1 : 0, "phase of the failure");
  parts.add(0.2, x.communicator() == y.communicator() && x.operation() == y.operation() ? 1 : 0,
            fmt::format("failing operation: {} seen, {} simulated", x.operation(), y.operation()));
  parts.add(0.2, error_kind(a) == error_kind(b) ? 1 : 0,
            fmt::format("error text: '{}' seen, '{}' simulated", error_kind(a), error_kind(b)));
  return std::move(parts).result();
}

}  // namespace

Likeness likeness(const pb::Outcome& evidence, const pb::Outcome& simulated) {
  if (evidence.verdict() != simulated.verdict()) {
    return {.score = 0, .same = {}, .different = {"the simulated run ends in another way"}};
  }
  switch (evidence.verdict()) {
    case pb::COMPLETED:
      return of_completed(evidence, simulated);
    case pb::HANG:
      return of_hang(evidence, simulated);
    default:
      return of_crash(evidence, simulated);
  }
}

}  // namespace rehearse::faults
