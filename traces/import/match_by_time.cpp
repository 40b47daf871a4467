// SPDX-License-Identifier: Apache-2.0
#include "traces/import/match_by_time.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse::traces {
namespace {

constexpr Nanos kTogether = 200'000;  // ends of one collective on two ranks
constexpr size_t kMostPairs = 4'000'000;
constexpr size_t kFewest = 3;  // calls that must agree about an offset

struct Seen {
  Nanos end = 0;
  Collective collective = Collective::kAllReduce;
  Call* call = nullptr;
};

std::vector<Seen> seen_by(RankPart& part, uint32_t communicator) {
  std::vector<Seen> out;
  Operations& ops = part.trace.ops;
  for (size_t op = 0; op < ops.size(); ++op) {
    const Call* call = ops.call(op);
    if (call == nullptr || call->communicator != communicator) continue;
    if (is_point_to_point(call->collective)) continue;
    out.push_back(
        {ops.start[op] + ops.duration[op], call->collective, &ops.calls[ops.detail[op] - 1]});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Seen& a, const Seen& b) { return a.end < b.end; });
  return out;
}

// What is to be added to `ours` so that most ends meet those of `theirs`, and how many then do.
std::pair<Nanos, size_t> best_offset(const std::vector<Seen>& ours,
                                     const std::vector<Seen>& theirs) {
  std::vector<Nanos> apart;
  const size_t stride = ours.size() * theirs.size() / kMostPairs + 1;
  for (size_t i = 0; i < ours.size(); i += stride) {
    for (const Seen& other : theirs) {
      if (other.collective == ours[i].collective) apart.push_back(other.end - ours[i].end);
    }
  }
  std::sort(apart.begin(), apart.end());
  std::pair<Nanos, size_t> best{0, 0};
  size_t first = 0;
  for (size_t last = 0; last < apart.size(); ++last) {
    while (apart[last] - apart[first] > kTogether) ++first;
    if (last - first + 1 > best.second)
      best = {apart[first + (last - first) / 2], last - first + 1};
  }
  best.second *= stride;
  return best;
}

}  // namespace

std::optional<TimeMatch> match_by_time(std::span<RankPart> ranks, uint32_t communicator,
                                       double share) {
  std::vector<std::vector<Seen>> seen;
  for (RankPart& part : ranks) seen.push_back(seen_by(part, communicator));
  size_t reference = 0;
  for (size_t r = 1; r < seen.size(); ++r) {
    if (seen[r].size() > seen[reference].size()) reference = r;
  }
  struct Together {
    Nanos end = 0;
    Collective collective = Collective::kAllReduce;
    std::vector<Call*> calls;
    size_t last_rank = 0;
  };
  std::vector<Together> all;
  for (const Seen& s : seen[reference])
    all.push_back({s.end, s.collective, {s.call}, reference + 1});
  for (size_t r = 0; r < seen.size(); ++r) {
    if (r == reference || seen[r].empty()) continue;
    const auto [offset, votes] = best_offset(seen[r], seen[reference]);
    const auto needed = static_cast<size_t>(std::ceil(share * static_cast<double>(seen[r].size())));
    if (votes < std::max(kFewest, needed)) return std::nullopt;
    std::vector<Together> alone;
    for (const Seen& s : seen[r]) {
      const Nanos end = s.end + offset;
      Together* nearest = nullptr;
      auto at = std::lower_bound(all.begin(), all.end(), end - kTogether,
                                 [](const Together& t, Nanos time) { return t.end < time; });
      for (; at != all.end() && at->end <= end + kTogether; ++at) {
        if (at->collective != s.collective || at->last_rank == r + 1) continue;
        if (nearest == nullptr || std::abs(at->end - end) < std::abs(nearest->end - end))
          nearest = &*at;
      }
      if (nearest == nullptr) {
        alone.push_back({end, s.collective, {s.call}, r + 1});
        continue;
      }
      nearest->calls.push_back(s.call);
      nearest->last_rank = r + 1;
    }
    all.insert(all.end(), alone.begin(), alone.end());
    std::stable_sort(all.begin(), all.end(),
                     [](const Together& a, const Together& b) { return a.end < b.end; });
  }
  TimeMatch out;
  for (size_t i = 0; i < all.size(); ++i) {
    (all[i].calls.size() > 1 ? out.matched : out.unmatched) += all[i].calls.size();
    for (Call* call : all[i].calls) call->sequence = static_cast<int64_t>(i);
  }
  return out;
}

}  // namespace rehearse::traces
