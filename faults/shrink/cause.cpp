// SPDX-License-Identifier: Apache-2.0
#include "faults/shrink/cause.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "base/text.hpp"
#include "traces/model/trace.hpp"

namespace rehearse::faults {
namespace {

bool is_collective(const std::string& word) {
  for (int c = 0; c < traces::kCollectives; ++c) {
    if (word == traces::name_of(static_cast<traces::Collective>(c))) return true;
  }
  return false;
}

// What may stand behind a number; a shorter run says "us" where the whole one said "ms".
bool is_unit(std::string_view word) {
  static constexpr std::string_view kUnits[] = {"ns", "us",  "ms",  "s",   "min", "h",
                                                "B",  "KiB", "MiB", "GiB", "TiB", "bytes"};
  while (!word.empty() && std::ispunct(static_cast<unsigned char>(word.back())) != 0) {
    word.remove_suffix(1);
  }
  return std::find(std::begin(kUnits), std::end(kUnits), word) != std::end(kUnits);
}

// A sentence without what differs between calls: words that have numbers in them (sizes, times, names of communicators
// and links), units behind them, and names of collectives.
std::string without_numbers(const std::string& text) {
  std::string out;
  bool after_number = false;
  for (std::string word : split(text, ' ')) {
    const bool numbered =
        std::any_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    const bool unit = after_number && is_unit(word);
    after_number = numbered;
    if (numbered || unit || is_collective(word)) continue;
    if (word == "ranks") word = "rank";
    if (word == "wait") word = "waits";
    out += (out.empty() ? "" : " ") + word;
  }
  return out;
}

std::string describe_culprit(const pb::Culprit& culprit, const Renumbering& numbers) {
  std::string who = culprit.kind();
  if (culprit.has_rank()) who += fmt::format(" {}", numbers.rank(culprit.rank()));
  if (culprit.has_node()) who += fmt::format(" {}", numbers.node(culprit.node()));
  return who + ": " + without_numbers(culprit.why());
}

}  // namespace

FailureCause cause_of(const pb::Outcome& outcome, const Renumbering& numbers) {
  FailureCause out;
  out.verdict = outcome.verdict();
  out.symptom = outcome.symptom().id();
  out.phase = outcome.first_failure().phase();
  for (const pb::Culprit& culprit : outcome.culprits()) {
    out.culprits.insert(describe_culprit(culprit, numbers));
  }
  return out;
}

bool same_cause(const FailureCause& whole, const FailureCause& smaller) {
  if (whole.verdict != smaller.verdict || whole.symptom != smaller.symptom ||
      whole.phase != smaller.phase) {
    return false;
  }
  return whole.culprits.empty() == smaller.culprits.empty() &&
         std::includes(whole.culprits.begin(), whole.culprits.end(), smaller.culprits.begin(),
                       smaller.culprits.end());
}

}  // namespace rehearse::faults
