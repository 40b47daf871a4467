// SPDX-License-Identifier: Apache-2.0
#include "sim/pool.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "base/units.hpp"

namespace rehearse::sim {
namespace {

using PoolClock = std::chrono::steady_clock;
constexpr int kLookedAfter = 100;  // milliseconds between looks at the time and at Ctrl-C

struct Wanted {
  size_t piece = 0;
  unsigned tries = 0;
};

struct Started {
  Wanted wanted;
  Child child;
};

struct AtWork {
  Started now;
  PoolClock::time_point since;
  bool late = false;
  std::optional<Started> next = std::nullopt;  // begins when `now` ends
};

bool may_succeed_again(const Error& error) {
  return error.code != Code::kIo && error.code != Code::kInterrupted;
}

class Pool {
 public:
  Pool(size_t count, const PoolLimits& limits, const Piece& piece)
      : limits_(limits), piece_(piece) {
    for (size_t i = 0; i < count; ++i) waiting_.push_back({i});
  }

  Result<void> run(const Ended& ended, Reporter& reporter) {
    while (!waiting_.empty() || !at_work_.empty()) {
      if (reporter.interrupted()) return fail(Code::kInterrupted, "stopped");
      if (auto started = start(); !started) return started;
      std::vector<pollfd> descriptors;
      for (const AtWork& one : at_work_) {
        descriptors.push_back({one.now.child.descriptor(), POLLIN, 0});
      }
      ::poll(descriptors.data(), descriptors.size(), kLookedAfter);
      for (size_t i = at_work_.size(); i-- > 0;) {
        end_late(at_work_[i]);
        if (descriptors[i].revents == 0 || at_work_[i].now.child.read(silent_)) continue;
        AtWork one = std::move(at_work_[i]);
        at_work_.erase(at_work_.begin() + static_cast<std::ptrdiff_t>(i));
        go_on(one);
        if (auto taken = take(one, ended); !taken) return taken;
      }
    }
    return {};
  }

 private:
  // All that may work do, and behind each is the next one.
  Result<void> start() {
    while (!waiting_.empty() && at_work_.size() < std::max(1U, limits_.jobs)) {
      const Wanted wanted = waiting_.front();
      RH_TRY(Child child, Child::start(work_on(wanted)));
      waiting_.pop_front();
      at_work_.push_back({{wanted, std::move(child)}, PoolClock::now()});
    }
    for (AtWork& one : at_work_) {
      if (waiting_.empty()) break;
      if (one.next) continue;
      const Wanted wanted = waiting_.front();
      RH_TRY(Child child, Child::start_after(one.now.child, work_on(wanted)));
      waiting_.pop_front();
      one.next = Started{wanted, std::move(child)};
    }
    return {};
  }

  Work work_on(const Wanted& wanted) const {
    return [this, wanted](Reporter&) { return piece_(wanted.piece); };
  }

  // Behind one that has ended: the next has begun by itself; without one, the next of another takes the free core.
  void go_on(AtWork& ended) {
    AtWork* from = &ended;
    if (!ended.next && waiting_.empty()) {
      const auto other =
          std::ranges::find_if(at_work_, [](const AtWork& one) { return one.next.has_value(); });
      if (other != at_work_.end()) from = &*other;
    }
    if (!from->next) return;
    from->next->child.begin();
    AtWork begun{std::move(*from->next), PoolClock::now()};
    from->next.reset();
    at_work_.push_back(std::move(begun));
  }

  void end_late(AtWork& one) const {
    if (limits_.time.count() <= 0 || one.late || PoolClock::now() - one.since <= limits_.time) {
      return;
    }
    one.late = true;
    one.now.child.kill();
  }

  Result<void> take(AtWork& one, const Ended& ended) {
    Result<std::string> answer = one.now.child.answer();
    if (!answer && one.late) {
      answer = fail(Code::kLimit,
                    fmt::format("took longer than {}", format_duration(limits_.time.count())));
    } else if (!answer && ++one.now.wanted.tries < limits_.tries &&
               may_succeed_again(answer.error())) {
      waiting_.push_back(one.now.wanted);
      return {};
    }
    return ended(one.now.wanted.piece, answer);
  }

  const PoolLimits& limits_;
  const Piece& piece_;
  std::deque<Wanted> waiting_;
  std::vector<AtWork> at_work_;
  SilentReporter silent_;
};

}  // namespace

Result<void> run_pieces(size_t count, const PoolLimits& limits, const Piece& piece,
                        const Ended& ended, Reporter& reporter) {
  return Pool(count, limits, piece).run(ended, reporter);
}

Result<std::vector<Result<std::string>>> in_children(size_t count, unsigned jobs,
                                                     const Piece& piece, Reporter& reporter) {
  std::vector<Result<std::string>> answers(count, fail(Code::kInternal, "not computed"));
  size_t done = 0;
  const auto ended = [&](size_t which, const Result<std::string>& answer) -> Result<void> {
    answers[which] = answer;
    reporter.progress("runs", ++done, count);
    return {};
  };
  if (auto ran = run_pieces(count, {.jobs = jobs}, piece, ended, reporter); !ran) {
    return tl::unexpected(std::move(ran).error());
  }
  return answers;
}

}  // namespace rehearse::sim
