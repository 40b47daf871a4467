// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/private_calls.hpp"

#include <algorithm>

namespace rehearse::sim {
namespace {

// By communicator: does every rank make its calls one after the other, each alone?
std::vector<bool> one_by_one(const traces::Program& program) {
  std::vector<bool> out(program.communicators.size(), true);
  std::vector<std::pair<size_t, size_t>> lane_of(out.size(), {SIZE_MAX, 0});  // of which rank
  for (size_t r = 0; r < program.ranks.size(); ++r) {
    const traces::RankProgram& rank = program.ranks[r];
    for (size_t c = 0; c < rank.calls.size(); ++c) {
      const traces::Call& call = rank.calls[c];
      const size_t lane = rank.lane_of(rank.call_op[c]);
      auto& [who, used] = lane_of[call.communicator];
      if (who != r) {
        who = r;
        used = lane;
      }
      if (used != lane || call.group != 0) out[call.communicator] = false;
    }
  }
  return out;
}

// Does every member of `inner` belong to `outer`?
bool includes(const traces::Communicator& outer, const traces::Communicator& inner) {
  std::vector<traces::RankId> all = outer.members, some = inner.members;
  std::sort(all.begin(), all.end());
  std::sort(some.begin(), some.end());
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

}  // namespace

std::vector<std::vector<uint32_t>> find_private_calls(const traces::Program& program,
                                                      const LinkUsers& users, const Fabric& fabric,
                                                      const Replayed& replayed,
                                                      std::vector<DeclaredShape>& shapes) {
  const size_t communicators = program.communicators.size();
  std::vector<bool> fit = one_by_one(program), together(communicators, true);
  for (size_t s = 0; s < shapes.size(); ++s) {
    // Members of rooted calls come and go each for itself.
    if (!shapes[s].hops.empty()) together[replayed.shapes[s].communicator] = false;
  }
  std::vector<std::vector<uint32_t>> sharers(communicators);
  const auto may_share = [&](uint32_t own, uint32_t other) {
    auto& known = sharers[own];
    if (other == own || std::find(known.begin(), known.end(), other) != known.end()) return true;
    if (!together[other] || !includes(program.communicators[other], program.communicators[own])) {
      return false;
    }
    known.push_back(other);
    return true;
  };
  for (size_t s = 0; s < shapes.size(); ++s) {
    const uint32_t own = replayed.shapes[s].communicator;
    if (!fit[own] || !together[own]) continue;
    for (const auto& [route, bytes] : shapes[s].flows) {
      for (const LinkWeight& use : fabric.links_of(route)) {
        bool alone = fit[own] && !users.others(use.link);
        for (const uint32_t other : users.communicators(use.link)) {
          alone = alone && may_share(own, other);
        }
        fit[own] = alone;
        if (!alone) break;
      }
    }
  }
  for (size_t s = 0; s < shapes.size(); ++s) {
    DeclaredShape& shape = shapes[s];
    const uint32_t own = replayed.shapes[s].communicator;
    if (!fit[own] || !together[own] || shape.flows.size() > 1) continue;
    shape.alone = shape.flows.empty()
                      ? 0
                      : fabric.alone(shape.flows.front().first, shape.flows.front().second);
  }
  return sharers;
}

}  // namespace rehearse::sim
