// SPDX-License-Identifier: Apache-2.0
#include "traces/import/placed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "traces/import/rank_of_name.hpp"

namespace rehearse::traces {
namespace {

// The operations of `from` beside those of `into`, the same rank at another time.
void append(RankPart& into, RankPart from) {
  RankTrace& a = into.trace;
  RankTrace& b = from.trace;
  std::map<std::pair<LaneKind, uint32_t>, uint16_t> lanes;
  for (size_t l = 0; l < a.lanes.size(); ++l)
    lanes.emplace(std::pair(a.lanes[l].kind, a.lanes[l].name), static_cast<uint16_t>(l));
  std::vector<uint16_t> lane_of(b.lanes.size(), 0);
  for (size_t l = 0; l < b.lanes.size(); ++l) {
    const auto [at, added] = lanes.emplace(std::pair(b.lanes[l].kind, b.lanes[l].name),
                                           static_cast<uint16_t>(a.lanes.size()));
    if (added && a.lanes.size() < UINT16_MAX) {
      a.lanes.push_back({b.lanes[l].kind, static_cast<int64_t>(a.lanes.size()), b.lanes[l].name});
    }
    lane_of[l] = std::min(at->second, static_cast<uint16_t>(a.lanes.size() - 1));
  }
  std::vector<uint32_t> group_of;
  for (Communicator& c : from.communicators) {
    const auto same = std::find_if(into.communicators.begin(), into.communicators.end(),
                                   [&](const Communicator& d) { return d.id == c.id; });
    group_of.push_back(static_cast<uint32_t>(same - into.communicators.begin()));
    if (same == into.communicators.end()) into.communicators.push_back(std::move(c));
  }
  into.sized.resize(a.ops.calls.size(), true);
  for (size_t op = 0; op < b.ops.size(); ++op) {
    const uint16_t lane = lane_of[b.ops.lane[op]];
    if (const Call* call = b.ops.call(op)) {
      const uint32_t index = b.ops.detail[op] - 1;
      Call copy = *call;
      copy.communicator = group_of[call->communicator];
      a.ops.add_call(lane, b.ops.name[op], b.ops.start[op], b.ops.duration[op],
                     b.ops.correlation[op], copy);
      into.sized.push_back(index >= from.sized.size() || from.sized[index]);
    } else {
      a.ops.add(b.ops.kind[op], lane, b.ops.name[op], b.ops.start[op], b.ops.duration[op],
                b.ops.correlation[op]);
    }
  }
  a.ops.sort();
}

bool uses_gpu(const RankTrace& rank) {
  return std::any_of(rank.lanes.begin(), rank.lanes.end(),
                     [](const Lane& lane) { return lane.kind == LaneKind::kStream; });
}

// A name as words and numbers, so that trace_10 comes behind trace_2.
std::vector<std::pair<std::string, uint64_t>> by_number(std::string_view name) {
  std::vector<std::pair<std::string, uint64_t>> out;
  for (size_t at = 0; at < name.size();) {
    const size_t digits = std::min(name.find_first_of("0123456789", at), name.size());
    uint64_t number = 0;
    const char* const end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + digits, end, number);
    out.emplace_back(name.substr(at, digits - at), error == std::errc() ? number : UINT64_MAX);
    at = std::max(static_cast<size_t>(stop - name.data()), digits + 1);
  }
  return out;
}

// Files whose names differ in numbers only are put in the order of these; others stay as they were given.
void order(std::vector<Placed>& homeless) {
  std::vector<std::vector<std::pair<std::string, uint64_t>>> names;
  names.reserve(homeless.size());
  for (const Placed& p : homeless) names.push_back(by_number(p.file));
  const auto alike = [&](const auto& name) {
    return std::equal(name.begin(), name.end(), names.front().begin(), names.front().end(),
                      [](const auto& a, const auto& b) { return a.first == b.first; });
  };
  if (!std::all_of(names.begin(), names.end(), alike)) return;
  std::stable_sort(homeless.begin(), homeless.end(), [](const Placed& a, const Placed& b) {
    return by_number(a.file) < by_number(b.file);
  });
}

// Ranks by the names of folders ("rank_3/trace.json"), where these tell a rank of every file and none twice.
std::vector<RankId> ranks_of_folders(const std::vector<Placed>& homeless, std::set<RankId> taken) {
  std::vector<RankId> out;
  for (const Placed& p : homeless) {
    const size_t slash = p.file.rfind('/');
    const auto rank = slash == std::string::npos
                          ? std::nullopt
                          : rank_of_name(std::string_view(p.file).substr(0, slash));
    if (!rank || !taken.insert(*rank).second) return {};
    out.push_back(*rank);
  }
  return out;
}

}  // namespace

std::vector<Placed> place_ranks(std::vector<FilePart>& parts, Findings& findings) {
  std::vector<Placed> placed, homeless;
  std::set<RankId> taken;
  for (FilePart& part : parts) {
    for (RankPart& rank : part.ranks) {
      if (!rank.rank_known) {
        homeless.push_back({std::move(rank), part.file});
      } else if (taken.insert(rank.trace.rank).second) {
        placed.push_back({std::move(rank), part.file});
      } else if (const auto first = std::find_if(
                     placed.begin(), placed.end(),
                     [&](const Placed& p) { return p.part.trace.rank == rank.trace.rank; });
                 rank.may_continue && first->part.may_continue) {
        append(first->part, std::move(rank));
      } else if (uses_gpu(rank.trace) != uses_gpu(first->part.trace)) {
        // Processes that a rank starts, to load data for it, carry its number too.
        Placed helper{std::move(rank), part.file};
        if (uses_gpu(helper.part.trace)) std::swap(helper, *first);
        findings.add("helper-process", Severity::kInfo,
                     fmt::format("{}: rank {}", helper.file, helper.part.trace.rank),
                     "processes beside a rank's own that put no work on a GPU are left out");
      } else {
        findings.add(
            "rank-twice", Severity::kDataLoss,
            fmt::format("{}: rank {}", part.file, rank.trace.rank),
            "only the first file of a rank is read; import one recording window of one job");
      }
    }
  }
  order(homeless);
  const std::vector<RankId> of_folders = ranks_of_folders(homeless, taken);
  RankId next = 0;
  for (size_t i = 0; i < homeless.size(); ++i) {
    Placed& p = homeless[i];
    while (taken.contains(next)) ++next;
    p.part.trace.rank = of_folders.empty() ? next : of_folders[i];
    taken.insert(p.part.trace.rank);
    if (of_folders.empty()) {
      findings.add("rank-assumed", Severity::kWarning,
                   fmt::format("{}: taken as rank {}", p.file, p.part.trace.rank),
                   "the file does not tell its rank; put it in the name (rank3.json) or record it "
                   "in distributedInfo");
    } else {
      findings.add("rank-from-name", Severity::kInfo, p.file,
                   "the file does not tell its rank; it is taken from the name of its folder");
    }
    placed.push_back(std::move(p));
  }
  std::stable_sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) {
    return a.part.trace.rank < b.part.trace.rank;
  });
  return placed;
}

}  // namespace rehearse::traces
