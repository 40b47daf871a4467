// SPDX-License-Identifier: Apache-2.0
// The calls of a run that never ended, and who closes a circle of waits among them. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/outcome/outcome.hpp"

namespace rehearse::sim {

// One call that never ended; positions of ranks in the program, ascending.
struct Stuck {
  uint32_t meeting = 0;
  std::vector<uint32_t> present;           // positions that have arrived
  std::vector<uint32_t> coming;            // their program has the call, they are held up elsewhere
  std::vector<uint32_t> never;             // their program has no such call
  std::map<uint32_t, traces::Call> calls;  // what each that has arrived said
};

// By the time of the first arrival. Calls whose members have done their part and left are not among them.
[[nodiscard]] std::vector<Stuck> find_stuck(const Evidence& evidence);

// Who came to a call, by index into Replayed::calls_of, in parties of one opinion. The first is taken to be right: the
// largest, of some as large the one whose call is made in more communicators of that size at that place, else that of
// the first rank.
[[nodiscard]] std::vector<std::vector<uint32_t>> parties(const Evidence& evidence,
                                                         uint32_t meeting);

// "all_reduce 5 on tp/0-7", and "1 rank" or "2 ranks".
[[nodiscard]] std::string describe_meeting(const Evidence& evidence, const Meeting& meeting);
[[nodiscard]] std::string counted_ranks(size_t n);

// Who is to blame, and why, where every call waits for ranks that are in another one:
//   1. ranks that come to two calls in another order than most of those that make both; where as many
//      come in one order as in the other, all of them;
//   2. else ranks that are waited for and wait in no call: their own operations hold each other up;
//   3. else the ranks of one cycle in the waits-for graph (each waits for the next).
// `waits_for` holds positions by position.
[[nodiscard]] std::map<traces::RankId, std::string> blame_circle(
    const Evidence& evidence, const std::vector<Stuck>& all,
    const std::vector<std::set<uint32_t>>& waits_for);

}  // namespace rehearse::sim
