// SPDX-License-Identifier: Apache-2.0
// Random jobs for properties: a story of kernels, copies, collectives and messages that its ranks tell in one order,
// so that it always ends. rapidcheck shrinks the story of a counterexample.
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <memory>
#include <ostream>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "tests/sim/property.hpp"
#include "tests/sim/small_trace.hpp"

namespace rehearse::tests {

struct Line {
  enum Kind : int { kKernel, kCopy, kAllReduce, kPart, kSend, kExchange, kKinds } kind = kKernel;
  uint32_t a = 0, b = 1;  // ranks, modulo their number
  uint32_t members = 3;   // of kPart: bits
  Nanos duration = 1000;
  Bytes bytes = 1;
};

struct Job {
  uint32_t ranks = 2;
  std::vector<Line> lines;

  // The collectives that a rank calls: what can be skipped.
  [[nodiscard]] uint32_t collectives() const {
    uint32_t n = 0;
    for (const Line& line : lines) n += line.kind == Line::kAllReduce ? 1 : 0;
    return n;
  }
};

inline std::ostream& operator<<(std::ostream& out, const Job& job) {
  out << job.ranks << " ranks";
  for (const Line& l : job.lines) {
    out << "; " << l.kind << " a" << l.a << " b" << l.b << " m" << l.members << " " << l.duration
        << "ns " << l.bytes << "B";
  }
  return out;
}

// `rank_of` renames ranks: line `a` is told of rank_of[a].
inline traces::Trace told(const Job& job, const std::vector<uint32_t>& rank_of) {
  SmallTrace story(job.ranks);
  std::vector<uint32_t> all;
  for (uint32_t r = 0; r < job.ranks; ++r) all.push_back(r);
  for (const Line& line : job.lines) {
    const uint32_t a = line.a % job.ranks;
    const uint32_t b = line.b % job.ranks == a ? (a + 1) % job.ranks : line.b % job.ranks;
    const uint32_t from = rank_of[a], to = rank_of[b];
    switch (line.kind) {
      case Line::kKernel:
        story.kernel(from, line.duration);
        break;
      case Line::kCopy:
        story.copy(from, traces::CopyDirection::kHostToDevice, line.bytes, line.duration);
        break;
      case Line::kAllReduce:
        story.all_reduce(all, line.bytes);
        break;
      case Line::kPart: {
        std::vector<uint32_t> part;
        for (uint32_t r = 0; r < job.ranks; ++r) {
          if ((line.members >> r & 1) != 0) part.push_back(rank_of[r]);
        }
        std::sort(part.begin(), part.end());
        if (part.size() > 1) story.all_reduce(part, line.bytes);
        break;
      }
      case Line::kSend:
        story.send(from, to, line.bytes);
        break;
      case Line::kExchange:
      case Line::kKinds:
        story.exchange(from, to, line.bytes);
        break;
    }
  }
  story.end_step();
  return story.trace();
}

inline traces::Trace told(const Job& job) {
  std::vector<uint32_t> same;
  for (uint32_t r = 0; r < job.ranks; ++r) same.push_back(r);
  return told(job, same);
}

inline sim::Scenario scenario_of(const Job& job) {
  auto scenario = sim::scenario_of(std::make_shared<traces::Trace>(told(job)), "random job");
  RC_ASSERT(scenario.has_value());
  return std::move(*scenario);
}

}  // namespace rehearse::tests

namespace rc {

template <>
struct Arbitrary<rehearse::tests::Line> {
  static Gen<rehearse::tests::Line> arbitrary() {
    using rehearse::tests::Line;
    return gen::build<Line>(
        gen::set(&Line::kind, gen::map(rehearse::tests::in_range<int>(0, Line::kKinds),
                                       [](int k) { return static_cast<Line::Kind>(k); })),
        gen::set(&Line::a, rehearse::tests::in_range<uint32_t>(0, 8)),
        gen::set(&Line::b, rehearse::tests::in_range<uint32_t>(0, 8)),
        gen::set(&Line::members, rehearse::tests::in_range<uint32_t>(0, 256)),
        gen::set(&Line::duration, rehearse::tests::in_range<rehearse::Nanos>(1, 1'000'000)),
        gen::set(&Line::bytes, rehearse::tests::in_range<rehearse::Bytes>(1, 64 << 20)));
  }
};

template <>
struct Arbitrary<rehearse::tests::Job> {
  static Gen<rehearse::tests::Job> arbitrary() {
    using rehearse::tests::Job;
    return gen::build<Job>(
        gen::set(&Job::ranks, rehearse::tests::in_range<uint32_t>(2, 9)),
        gen::set(
            &Job::lines,
            gen::resize(25, gen::nonEmpty(gen::arbitrary<std::vector<rehearse::tests::Line>>()))));
  }
};

}  // namespace rc
