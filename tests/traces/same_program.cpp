// SPDX-License-Identifier: Apache-2.0
#include "tests/traces/same_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

namespace rehearse::traces::samples {
namespace {

using LaneKey = std::pair<LaneKind, int64_t>;

// Lanes with operations, by kind and id.
std::map<LaneKey, LaneId> lanes_of(const RankProgram& p) {
  std::map<LaneKey, LaneId> out;
  for (LaneId l = 0; l < p.lanes.size(); ++l) {
    if (p.lane_begin[l] < p.lane_begin[l + 1]) out[{p.lanes[l].kind, p.lanes[l].id}] = l;
  }
  return out;
}

// An operation as (lane, place in it).
std::string place(const RankProgram& p, OpId op) {
  const auto lane = static_cast<size_t>(
      std::upper_bound(p.lane_begin.begin(), p.lane_begin.end(), op) - p.lane_begin.begin() - 1);
  return fmt::format("{}:{}#{}", static_cast<int>(p.lanes[lane].kind), p.lanes[lane].id,
                     op - p.lane_begin[lane]);
}

std::string told(const Program& program, const RankProgram& p, const Strings& names, OpId op) {
  std::string out =
      fmt::format("{} {} '{}' gap {} duration {} after", place(p, op), name_of(p.kind[op]),
                  names.at(p.name[op]), p.gap[op], p.duration[op]);
  std::vector<std::string> before;
  for (const OpId on : p.predecessors(op)) before.push_back(place(p, on));
  std::sort(before.begin(), before.end());
  for (const std::string& b : before) out += " " + b;
  if (p.call[op] == kNoCall) return out;
  const Call& c = p.calls[p.call[op]];
  return out + fmt::format(" {} #{} in {} out {} {} peer {} of {}", name_of(c.collective),
                           c.sequence, c.bytes_in, c.bytes_out, name_of(c.dtype), c.peer,
                           program.communicators.at(c.communicator).id);
}

std::string steps_of(const RankProgram& p, uint32_t steps) {
  std::map<LaneKey, std::string> out;
  for (const auto& [key, lane] : lanes_of(p)) {
    for (uint32_t s = 0; s <= steps; ++s) {
      out[key] += fmt::format(" {}", p.step_begin[lane * (steps + 1) + s] - p.lane_begin[lane]);
    }
  }
  std::string text;
  for (const auto& [key, line] : out)
    text += fmt::format("{}:{}{}; ", static_cast<int>(key.first), key.second, line);
  return text;
}

}  // namespace

std::string difference(const Program& a, const Strings& names_a, const Program& b,
                       const Strings& names_b) {
  if (a.ranks.size() != b.ranks.size() || a.steps != b.steps) {
    return fmt::format("{} ranks and {} steps, {} and {}", a.ranks.size(), a.steps, b.ranks.size(),
                       b.steps);
  }
  for (size_t r = 0; r < a.ranks.size(); ++r) {
    const RankProgram& x = a.ranks[r];
    const RankProgram& y = b.ranks[r];
    const auto lanes_x = lanes_of(x), lanes_y = lanes_of(y);
    if (x.rank != y.rank || lanes_x.size() != lanes_y.size())
      return fmt::format("rank {}: {} lanes, {}", x.rank, lanes_x.size(), lanes_y.size());
    for (const auto& [key, lane] : lanes_x) {
      const auto other = lanes_y.find(key);
      if (other == lanes_y.end())
        return fmt::format("rank {}: no lane {}:{}", x.rank, static_cast<int>(key.first),
                           key.second);
      const OpId first = x.lane_begin[lane], last = x.lane_begin[lane + 1];
      const OpId begin = y.lane_begin[other->second];
      if (last - first != y.lane_begin[other->second + 1] - begin)
        return fmt::format("rank {}: lane {} differs in length", x.rank, key.second);
      for (OpId op = first; op < last; ++op) {
        const std::string tx = told(a, x, names_a, op),
                          ty = told(b, y, names_b, begin + op - first);
        if (tx != ty) return fmt::format("rank {}:\n  {}\n  {}", x.rank, tx, ty);
      }
    }
    if (steps_of(x, a.steps) != steps_of(y, b.steps))
      return fmt::format("rank {}: steps\n  {}\n  {}", x.rank, steps_of(x, a.steps),
                         steps_of(y, b.steps));
  }
  return {};
}

}  // namespace rehearse::traces::samples
