// SPDX-License-Identifier: Apache-2.0
// What holds for the replay of every job, over random ones.
#include <algorithm>
#include <numeric>

#include "sim/outcome/critical_path.hpp"
#include "sim/replay/replay.hpp"
#include "sim/simulate.hpp"
#include "sim/worker.hpp"
#include "tests/sim/property.hpp"
#include "tests/sim/random_job.hpp"

namespace rehearse::replay_properties_test {
using namespace rehearse;
using namespace rehearse::sim;
using tests::holds;
using tests::Job;
using tests::Line;
using traces::OpId;

namespace {

struct Links {
  std::vector<BytesPerSec> capacity;
  // Bytes of a call on each link, beside what the replay counts.
  [[nodiscard]] TrafficOf traffic() const {
    return [n = capacity.size()](const traces::Call& call, uint32_t) -> Result<CallTraffic> {
      const auto bytes = static_cast<double>(call.bytes_in);
      const auto first = static_cast<LinkId>(call.communicator % n);
      const auto second = static_cast<LinkId>((call.communicator * 7 + 1) % n);
      return CallTraffic{10'000, {{{{first, 1}, {second, 2}}, bytes}}, "TEST", 1, 0};
    };
  }
};

Replayed replayed(const traces::Program& program, const Links& links) {
  const auto fabric = make_reference_fabric(links.capacity);
  SilentReporter silent;
  ReplayOptions options;
  options.traffic = links.traffic();
  options.capacity = links.capacity;
  auto out = replay(program, options, *fabric, silent);
  RC_ASSERT(out.has_value());
  return std::move(*out);
}

traces::Program program_of(const traces::Trace& trace) {
  auto program = traces::build_program(trace);
  RC_ASSERT(program.has_value());
  return std::move(*program);
}

Links random_links() {
  return {*rc::gen::container<std::vector<BytesPerSec>>(
      *tests::in_range<size_t>(1, 6),
      rc::gen::map(tests::in_range(1, 400), [](int g) { return g * 1e9; }))};
}

// When an operation may begin: its lane is free and all that it waits for has ended.
Nanos release(const traces::RankProgram& rank, const OpTimes& end, OpId op, Nanos lane_free) {
  Nanos out = lane_free;
  for (const OpId before : rank.predecessors(op)) out = std::max(out, end[before]);
  return out;
}

bool synchronising(const traces::Call& call) { return !traces::is_point_to_point(call.collective); }

// Whether two calls of a run were under way on one link at the same time. Only then does the end of one decide how
// fast another is, and a faster link can make a job slower (docs/reliability.md).
bool calls_shared_links(const Replayed& run, const TrafficOf& traffic) {
  const auto links_of = [&](const Meeting& meeting) {
    std::vector<LinkId> out;
    const auto load = traffic(meeting.call, 0);
    if (!load) return out;
    for (const FlowLoad& flow : load->flows) {
      for (const LinkWeight& use : flow.links) out.push_back(use.link);
    }
    std::sort(out.begin(), out.end());
    return out;
  };
  for (size_t a = 0; a < run.meetings.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      const Meeting &one = run.meetings[a], &other = run.meetings[b];
      if (one.first_arrival >= other.end || other.first_arrival >= one.end) continue;
      const std::vector<LinkId> of_one = links_of(one), of_other = links_of(other);
      std::vector<LinkId> both;
      std::set_intersection(of_one.begin(), of_one.end(), of_other.begin(), of_other.end(),
                            std::back_inserter(both));
      if (!both.empty()) return true;
    }
  }
  return false;
}

}  // namespace

// What the properties say of calls, they said of jobs without any: every job was of kernels and copies.
TEST_CASE("random jobs have lines of every kind, on few ranks and on many", "[properties]") {
  std::vector<int> kinds(Line::kKinds, 0), sizes(9, 0);
  holds("variety", [&](const Job& job) {
    for (const Line& line : job.lines) ++kinds[line.kind];
    ++sizes[job.ranks];
  });
  CHECK(std::all_of(kinds.begin(), kinds.end(), [](int n) { return n > 5; }));
  CHECK(std::count(sizes.begin() + 2, sizes.end(), 0) < 3);
}

TEST_CASE("no operation ends before what it waits for, its gap and its work", "[properties]") {
  holds("causality", [](const Job& job) {
    const traces::Program program = program_of(told(job));
    const Replayed out = replayed(program, random_links());
    RC_ASSERT(out.completed);
    for (size_t r = 0; r < program.ranks.size(); ++r) {
      const traces::RankProgram& rank = program.ranks[r];
      for (size_t lane = 0; lane + 1 < rank.lane_begin.size(); ++lane) {
        Nanos free = 0;
        for (OpId op = rank.lane_begin[lane]; op < rank.lane_begin[lane + 1]; ++op) {
          const Nanos end = out.end[r][op];
          RC_ASSERT(end >= 0);
          // Calls of one group are issued together.
          const bool grouped =
              rank.call[op] != traces::kNoCall && rank.calls[rank.call[op]].group != 0;
          const Nanos begin = grouped ? 0 : release(rank, out.end[r], op, free);
          RC_ASSERT(end >= begin + rank.gap[op] + rank.duration[op]);
          RC_ASSERT(end <= out.end_time);
          free = std::max(free, end);
        }
      }
    }
    for (const Meeting& meeting : out.meetings) {
      RC_ASSERT(meeting.end >= meeting.first_arrival);
      if (synchronising(meeting.call)) RC_ASSERT(meeting.end >= meeting.last_arrival + 10'000);
    }
  });
}

TEST_CASE("every byte that calls put on a link is counted there, once", "[properties]") {
  holds("conservation", [](const Job& job) {
    const traces::Program program = program_of(told(job));
    const Links links = random_links();
    const Replayed out = replayed(program, links);
    std::vector<double> wanted(links.capacity.size(), 0);
    for (const Meeting& meeting : out.meetings) {
      const auto traffic = links.traffic()(meeting.call, 0);
      for (const FlowLoad& flow : traffic->flows) {
        for (const LinkWeight& use : flow.links) wanted[use.link] += flow.bytes * use.weight;
      }
    }
    for (size_t l = 0; l < wanted.size(); ++l) {
      RC_ASSERT(std::abs(out.link_bytes[l] - wanted[l]) <= 1e-6 * wanted[l] + 1);
      // And no link gave more than it can from the first moment to the last.
      const double most = links.capacity[l] * static_cast<double>(out.end_time) * 1e-9;
      RC_ASSERT(wanted[l] <= most * (1 + 1e-9) + links.capacity[l] * 1e-9 *
                                                     static_cast<double>(out.meetings.size() + 1));
    }
  });
}

TEST_CASE("with links that only one call uses at a time, faster ones end no later",
          "[properties]") {
  holds("monotonicity", [](Job job) {
    // Concurrent flows can change who shares with whom; one communicator's calls follow each other.
    for (Line& line : job.lines) {
      if (line.kind >= Line::kPart) line.kind = Line::kAllReduce;
    }
    const traces::Program program = program_of(told(job));
    Links links = random_links();
    const Nanos before = replayed(program, links).end_time;
    links.capacity[*tests::in_range<size_t>(0, links.capacity.size())] *= 2;
    RC_ASSERT(replayed(program, links).end_time <= before);
  });
}

TEST_CASE("a faster link makes a job slower only where calls share a link", "[properties]") {
  holds("monotonicity or a known anomaly", [](const Job& job) {
    const traces::Program program = program_of(told(job));
    Links links = random_links();
    const Replayed before = replayed(program, links);
    links.capacity[*tests::in_range<size_t>(0, links.capacity.size())] *= *tests::in_range(2, 9);
    const Replayed after = replayed(program, links);
    const bool slower = after.end_time > before.end_time;
    const bool known =
        calls_shared_links(before, links.traffic()) || calls_shared_links(after, links.traffic());
    RC_CLASSIFY(slower, "slower");
    RC_CLASSIFY(!known, "no call shares a link");
    RC_ASSERT(!slower || known);
  });
}

// Ranks 0 and 1 call twice, first over link 0 and then over link 1, and have nothing to do after it; ranks 2 and 3 call once over
// link 1 and compute long after it. With a slow link 0 the call of 2 and 3 has link 1 for itself. With a fast one
// the second call of 0 and 1 comes in time to take half of it, and all wait for 2 and 3.
TEST_CASE("the anomaly of a faster link is one that is told", "[properties]") {
  tests::SmallTrace story(4);
  story.all_reduce({0, 1}, 1 << 20);
  story.all_reduce({2, 3}, 64 << 20);
  story.all_reduce({0, 1}, 63 << 20);
  story.kernel(2, 100'000'000);
  story.kernel(3, 100'000'000);
  story.end_step();
  const auto program = traces::build_program(story.trace());
  REQUIRE(program.has_value());
  const TrafficOf traffic = [](const traces::Call& call, uint32_t) -> Result<CallTraffic> {
    const LinkId link = call.bytes_in == 1 << 20 ? 0 : 1;
    return CallTraffic{10'000, {{{{link, 1}}, static_cast<double>(call.bytes_in)}}, "TEST", 1, 0};
  };
  const auto run = [&](BytesPerSec first) {
    const std::vector<BytesPerSec> capacity = {first, 64e9};
    const auto fabric = make_reference_fabric(capacity);
    SilentReporter silent;
    ReplayOptions options;
    options.traffic = traffic;
    options.capacity = capacity;
    auto out = replay(*program, options, *fabric, silent);
    REQUIRE(out.has_value());
    REQUIRE(out->completed);
    return std::move(*out);
  };
  const Replayed slow = run(0.5e9), fast = run(64e9);
  CHECK_FALSE(calls_shared_links(slow, traffic));
  CHECK(calls_shared_links(fast, traffic));
  // The call of 2 and 3 takes nearly twice its millisecond.
  CHECK(fast.end_time > slow.end_time + 900'000);
  CHECK(fast.end_time < slow.end_time + 1'100'000);
}

TEST_CASE("shorter work never makes a job with one communicator longer", "[properties]") {
  holds("monotonicity of work", [](Job job) {
    for (Line& line : job.lines) {
      if (line.kind >= Line::kPart) line.kind = Line::kAllReduce;
    }
    traces::Program program = program_of(told(job));
    const Links links = random_links();
    const Nanos before = replayed(program, links).end_time;
    traces::RankProgram& rank = program.ranks[*tests::in_range<size_t>(0, program.ranks.size())];
    const auto op = static_cast<OpId>(*tests::in_range<size_t>(0, rank.size()));
    rank.duration[op] /= 2;
    RC_ASSERT(replayed(program, links).end_time <= before);
  });
}

TEST_CASE("what ranks are called does not matter", "[properties]") {
  holds("permutation", [](const Job& job) {
    const auto keys = *rc::gen::container<std::vector<int>>(job.ranks, rc::gen::arbitrary<int>());
    std::vector<uint32_t> fresh(job.ranks);
    std::iota(fresh.begin(), fresh.end(), 0U);
    std::stable_sort(fresh.begin(), fresh.end(),
                     [&](uint32_t a, uint32_t b) { return keys[a] < keys[b]; });
    // One link for all, so that ranks differ in nothing but their name.
    const Links links{{10e9}};
    const Replayed a = replayed(program_of(told(job)), links);
    const Replayed b = replayed(program_of(told(job, fresh)), links);
    RC_ASSERT(a.end_time == b.end_time);
    for (uint32_t r = 0; r < job.ranks; ++r) {
      std::vector<Nanos> of_a = a.end[r].all(), of_b = b.end[fresh[r]].all();
      std::sort(of_a.begin(), of_a.end());
      std::sort(of_b.begin(), of_b.end());
      RC_ASSERT(of_a == of_b);
    }
  });
}

TEST_CASE("the critical path is as long as the longest of all paths", "[properties]") {
  holds("critical path", [](const Job& written) {
    Job job = written;
    for (Line& line : job.lines) {  // a send may end before its recv: no path of operations
      if (line.kind >= Line::kSend) line.kind = Line::kAllReduce;
    }
    const Scenario scenario = tests::scenario_of(job);
    SilentReporter silent;
    // {longest path, length of the critical path, what its ranks, its operations and the transfers on it add up to}
    const auto bytes = in_child(
        [&](Reporter& reporter) -> Result<std::string> {
          std::string out;
          auto done = replay_here(scenario, reporter, [&](const Evidence& evidence) {
            const traces::Program& program = evidence.program;
            const Replayed& run = evidence.replayed;
            // An operation's own time is what it took after all that it waited for; the path to it is the longest
            // path to any of those and that. Ends in order of time are an order of the graph.
            std::vector<std::tuple<Nanos, size_t, OpId>> order;
            std::vector<std::vector<Nanos>> path(program.ranks.size());
            std::vector<Nanos> meeting_path(run.meetings.size(), 0);
            for (size_t r = 0; r < program.ranks.size(); ++r) {
              path[r].assign(program.ranks[r].size(), -1);
              for (OpId op = 0; op < program.ranks[r].size(); ++op)
                order.emplace_back(run.end[r][op], r, op);
            }
            const std::function<Nanos(size_t, OpId)> longest = [&](size_t r, OpId op) -> Nanos {
              Nanos& known = path[r][op];
              if (known >= 0) return known;
              const traces::RankProgram& rank = program.ranks[r];
              const auto before = [&](size_t q, OpId o) {
                const traces::RankProgram& p = program.ranks[q];
                Nanos at = p.begin, ready = p.begin;
                const auto lane = std::upper_bound(p.lane_begin.begin(), p.lane_begin.end(), o) - 1;
                if (o > *lane) {
                  at = std::max(at, longest(q, o - 1));
                  ready = std::max(ready, run.end[q][o - 1]);
                }
                for (const OpId e : p.predecessors(o)) {
                  at = std::max(at, longest(q, e));
                  ready = std::max(ready, run.end[q][e]);
                }
                return std::pair(at, ready);
              };
              if (rank.call[op] == traces::kNoCall) {
                const auto [at, ready] = before(r, op);
                known = at + (run.end[r][op] - ready);
                return known;
              }
              const uint32_t m = run.meeting_of[r][rank.call[op]];
              Nanos arrived = 0;
              for (uint32_t c = run.calls_begin[m]; c < run.calls_begin[m + 1]; ++c) {
                const MeetingCall& call = run.calls_of[c];
                const traces::RankProgram& other = program.ranks[call.rank];
                const auto [at, ready] = before(call.rank, other.call_op[call.call]);
                arrived = std::max(arrived, at + (run.arrival[call.rank][call.call] - ready));
              }
              known = arrived + (run.meetings[m].end - run.meetings[m].last_arrival);
              return known;
            };
            Nanos most = 0;
            for (const auto& [end, r, op] : order) most = std::max(most, longest(r, op));
            pb::Outcome outcome;
            fill_critical_path(evidence, outcome);
            const pb::CriticalPath& found = outcome.critical_path();
            int64_t of_ranks = 0, of_operations = 0;
            for (const pb::Blame& row : found.ranks()) of_ranks += row.ns();
            for (const pb::Blame& row : found.operations()) of_operations += row.ns();
            Nanos of_transfers = 0;
            walk_critical_path(evidence, [&](const PathStretch& part) {
              if (part.shape != PathStretch::kOwnWork) of_transfers += part.to - part.from;
            });
            out = fmt::format("{} {} {} {} {}", most, found.length_ns(), of_ranks, of_operations,
                              of_transfers);
          });
          if (!done) return tl::unexpected(done.error());
          return out;
        },
        silent);
    RC_ASSERT(bytes.has_value());
    long most = 0, length = 0, ranks = 0, operations = 0, transfers = 0;
    RC_ASSERT(std::sscanf(bytes->c_str(), "%ld %ld %ld %ld %ld", &most, &length, &ranks,
                          &operations, &transfers) == 5);
    RC_LOG(*bytes);
    RC_ASSERT(length == most);
    // A transfer is blamed on its call and on a link, what is between two transfers on a rank.
    RC_ASSERT(ranks + transfers == length);
    RC_ASSERT(operations == length);
  });
}

}  // namespace rehearse::replay_properties_test
