// SPDX-License-Identifier: Apache-2.0
#include "traces/import/steps.hpp"

#include <algorithm>
#include <tuple>

namespace rehearse::traces {
namespace {

using Signature = std::tuple<uint32_t, uint8_t, Bytes, Bytes, int32_t>;

// Smallest p such that every call equals the one p before it (the failure function of Knuth, Morris
// and Pratt); 0 when that is more than half of them.
size_t period_of(const std::vector<Signature>& calls) {
  const size_t n = calls.size();
  std::vector<uint32_t> border(n, 0);
  for (size_t i = 1; i < n; ++i) {
    uint32_t k = border[i - 1];
    while (k > 0 && calls[i] != calls[k]) k = border[k - 1];
    border[i] = calls[i] == calls[k] ? k + 1 : 0;
  }
  const size_t period = n == 0 ? 0 : n - border[n - 1];
  return 2 * period <= n ? period : 0;
}

}  // namespace

std::vector<Step> steps_from_calls(const Operations& ops) {
  std::vector<Signature> calls;
  std::vector<size_t> where;
  for (size_t op = 0; op < ops.size(); ++op) {
    if (const Call* c = ops.call(op)) {
      calls.emplace_back(c->communicator, static_cast<uint8_t>(c->collective), c->bytes_in,
                         c->bytes_out, c->peer);
      where.push_back(op);
    }
  }
  std::vector<Step> steps;
  const size_t period = period_of(calls);
  if (period == 0) return steps;
  for (size_t first = 0; first + period < calls.size(); first += period) {
    steps.push_back({static_cast<int64_t>(steps.size()), ops.start[where[first]],
                     ops.start[where[first + period]]});
  }
  return steps;
}

std::vector<Step> steps_from_names(const std::vector<NamedStep>& named, const std::string& where,
                                   Findings& findings) {
  std::vector<Step> steps;
  if (named.empty()) return steps;
  const int family = std::min_element(named.begin(), named.end(), [](const auto& a, const auto& b) {
                       return a.family < b.family;
                     })->family;
  std::vector<Step> ranges;
  for (const NamedStep& n : named) {
    if (n.family == family) ranges.push_back(n.step);
  }
  std::stable_sort(ranges.begin(), ranges.end(), [](const Step& a, const Step& b) {
    return a.start != b.start ? a.start < b.start : a.end > b.end;
  });
  uint64_t inside = 0;
  for (const Step& s : ranges) {
    if (steps.empty() || s.start >= steps.back().end) {
      steps.push_back(s);
    } else {
      ++inside;
    }
  }
  if (inside > 0) {
    findings.add("steps-overlap", Severity::kInfo, where,
                 "ranges named like steps that begin inside another one are no steps", inside);
  }
  return steps;
}

}  // namespace rehearse::traces
