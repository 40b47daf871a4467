// SPDX-License-Identifier: Apache-2.0
#include "sim/outcome/desync.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "sim/outcome/expiry.hpp"

namespace rehearse::sim {
namespace {

// The last call of the group that a rank has put on its stream.
struct Latest {
  const traces::Call* call = nullptr;
  bool finished = false;
};

Latest latest_of(const Evidence& evidence, size_t r, uint32_t communicator, Nanos when) {
  Latest out;
  const traces::RankProgram& rank = evidence.program.ranks[r];
  for (size_t c = 0; c < rank.calls.size(); ++c) {
    const traces::Call& call = rank.calls[c];
    const Nanos arrival = evidence.replayed.arrival[r][c];
    if (call.communicator != communicator || arrival < 0 || arrival > when) continue;
    if (out.call != nullptr && call.sequence < out.call->sequence) continue;
    const Nanos end = evidence.replayed.end[r][rank.call_op[c]];
    out = {&call, end >= 0 && end <= when};
  }
  return out;
}

using Groups = std::map<int64_t, std::map<std::string, std::vector<uint32_t>>>;  // by number, name

std::string listed(const std::vector<uint32_t>& ranks) {
  return fmt::format("{}", fmt::join(ranks, ", "));
}

std::vector<uint32_t> all_of(const std::map<std::string, std::vector<uint32_t>>& groups) {
  std::vector<uint32_t> out;
  for (const auto& [name, ranks] : groups) out.insert(out.end(), ranks.begin(), ranks.end());
  std::sort(out.begin(), out.end());
  return out;
}

std::string snapshot(const Groups& groups, const char* word) {
  std::string out;
  for (const auto& [number, names] : groups) {
    out += fmt::format("\n\t   #{} {} ranks:", number, word);
    for (const auto& [name, ranks] : names) {
      out += fmt::format("\n\t     [{}] {} {}", listed(ranks), word, name);
    }
  }
  return out;
}

}  // namespace

std::string desync_report(const Evidence& evidence, uint32_t rank, const traces::Call& late,
                          Nanos when) {
  Groups started, finished;
  std::vector<uint32_t> missing;
  for (const traces::RankId member : evidence.program.communicators[late.communicator].members) {
    const int at = evidence.program.find(member);
    if (at < 0) continue;
    const Latest latest = latest_of(evidence, static_cast<size_t>(at), late.communicator, when);
    if (latest.call == nullptr) {
      missing.push_back(member);
      continue;
    }
    (latest.finished
         ? finished
         : started)[latest.call->sequence + 1][op_type_of(name_of(latest.call->collective))]
        .push_back(member);
  }
  std::string out =
      fmt::format("\n\t - [{}] Timeout at collective: {}, #{}", evidence.program.ranks[rank].rank,
                  op_type_of(name_of(late.collective)), late.sequence + 1);
  if (!missing.empty()) {
    return out + fmt::format(
                     "\n\t - To our best knowledge, ranks [{}] are the lagging ranks that caused "
                     "this timeout. They never joined any collectives",
                     listed(missing));
  }
  int64_t lagging = late.sequence + 1;
  for (const Groups* groups : {&started, &finished}) {
    if (!groups->empty()) lagging = std::min(lagging, groups->begin()->first);
  }
  out +=
      "\n\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:";
  if (const auto at = started.find(lagging); at != started.end()) {
    out += fmt::format("\n\t   - [{}] joined but didn't finish collective #{} (count from 1)",
                       listed(all_of(at->second)), lagging);
  }
  if (const auto at = finished.find(lagging); at != finished.end()) {
    out += fmt::format(
        "\n\t     [{}] finished collective #{}, but didn't join collective #{} (count from 1)",
        listed(all_of(at->second)), lagging, lagging + 1);
  }
  return out + "\n\t - Snapshot of ranks' latest states:" + snapshot(started, "started") +
         snapshot(finished, "finished");
}

}  // namespace rehearse::sim
