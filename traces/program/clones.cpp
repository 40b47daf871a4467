// SPDX-License-Identifier: Apache-2.0
#include "traces/program/clones.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <string>

#include "base/random.hpp"

namespace rehearse::traces {
namespace {

// Operations [first, last) of one lane in one step of one recorded rank.
struct Stretch {
  const RankProgram* rank = nullptr;
  OpId first = 0, last = 0;
};

Stretch stretch_of(const RankProgram& rank, uint32_t steps, LaneId lane, uint32_t step) {
  const OpId* begin = rank.step_begin.data() + size_t{lane} * (steps + 1);
  return {&rank, begin[step], begin[step + 1]};
}

bool same_work(const Stretch& a, const Stretch& b) {
  if (a.last - a.first != b.last - b.first) return false;
  for (OpId i = 0; i < a.last - a.first; ++i) {
    if (a.rank->name[a.first + i] != b.rank->name[b.first + i]) return false;
  }
  return true;
}

// What was recorded of each stretch of a clone, itself included.
std::vector<Stretch> samples_of(const std::vector<const RankProgram*>& recorded, uint32_t steps,
                                const Stretch& own, LaneId lane) {
  std::vector<Stretch> samples;
  for (const RankProgram* rank : recorded) {
    if (lane >= rank->lanes.size()) continue;
    for (uint32_t s = 0; s < steps; ++s) {
      const Stretch other = stretch_of(*rank, steps, lane, s);
      if (same_work(own, other)) samples.push_back(other);
    }
  }
  return samples;
}

uint64_t seed_of(const RankTrace& rank) {
  const auto at = rank.env.find(kSeedVariable);
  uint64_t seed = 0;
  if (at != rank.env.end()) {
    std::from_chars(at->second.data(), at->second.data() + at->second.size(), seed);
  }
  return seed;
}

}  // namespace

void draw_clones(const Trace& trace, Program& program) {
  const pb::TraceHeader& header = trace.header;
  if (header.cloned_from().empty()) return;
  // The recorded ranks with the lanes of a source are of its role.
  const std::vector<RankProgram> as_recorded = [&] {
    std::vector<RankProgram> out;
    for (const RankProgram& rank : program.ranks) {
      if (!header.cloned_from().contains(rank.rank)) out.push_back(rank);
    }
    return out;
  }();
  std::map<RankId, std::vector<const RankProgram*>> of_source;
  for (const RankProgram& source : as_recorded) {
    for (const RankProgram& other : as_recorded) {
      if (other.lanes.size() == source.lanes.size()) of_source[source.rank].push_back(&other);
    }
  }
  uint64_t drawn = 0, single = 0;
  for (size_t r = 0; r < program.ranks.size(); ++r) {
    RankProgram& rank = program.ranks[r];
    const auto from = header.cloned_from().find(rank.rank);
    if (from == header.cloned_from().end() || !of_source.contains(from->second)) continue;
    const Column<uint32_t>& calls = rank.call;
    const Column<OpKind>& kinds = rank.kind;
    Random random(seed_of(trace.ranks[r]), "clone", rank.rank);
    for (LaneId lane = 0; lane < rank.lanes.size(); ++lane) {
      for (uint32_t s = 0; s < program.steps; ++s) {
        const Stretch own = stretch_of(rank, program.steps, lane, s);
        const auto samples = samples_of(of_source[from->second], program.steps, own, lane);
        for (OpId op = own.first; op < own.last; ++op) {
          const bool timed = calls[op] == kNoCall && kinds[op] != OpKind::kSync;
          if (!timed) continue;
          if (samples.size() < 2) {
            ++single;
            continue;
          }
          const Stretch& sample = samples[random.below(samples.size())];
          rank.duration[op] = sample.rank->duration[sample.first + (op - own.first)];
          ++drawn;
        }
      }
    }
  }
  for (const pb::TraceFinding& f : header.findings()) {
    if (f.id() != "symmetric-assumed" && f.id() != "exogenous-wait" &&
        f.id() != "variance-unknown" && f.id() != "role-without-sample") {
      continue;
    }
    program.findings.add(f.id(), Severity::kWarning, f.first(), f.advice(), f.count());
  }
  if (single > 0 && drawn == 0) {
    program.findings.add("variance-unknown", Severity::kWarning, "one recorded step per role",
                         "durations of cloned ranks equal those of their source");
  }
}

}  // namespace rehearse::traces
