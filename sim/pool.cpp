// SPDX-License-Identifier: Apache-2.0
#include "sim/pool.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <deque>

#include "base/units.hpp"

namespace rehearse::sim {
namespace {

using PoolClock = std::chrono::steady_clock;
constexpr int kLookedAfter = 100;  // milliseconds between looks at the time and at Ctrl-C

struct Wanted {
  size_t piece = 0;
  unsigned tries = 0;
};

struct AtWork {
  Wanted wanted;
  Child foreman;
  PoolClock::time_point since;
  bool late = false;
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
        descriptors.push_back({one.foreman.descriptor(), POLLIN, 0});
      }
      ::poll(descriptors.data(), descriptors.size(), kLookedAfter);
      for (size_t i = at_work_.size(); i-- > 0;) {
        end_late(at_work_[i]);
        if (descriptors[i].revents == 0) continue;
        const bool lives = at_work_[i].foreman.read(silent_);
        if (lives && !at_work_[i].foreman.answered()) continue;
        AtWork one = std::move(at_work_[i]);
        at_work_.erase(at_work_.begin() + static_cast<std::ptrdiff_t>(i));
        Result<std::string> answer = lives ? one.foreman.take_answer() : one.foreman.answer();
        if (lives && !one.late) free_.push_back(std::move(one.foreman));
        // The core that became free goes on before the answer is looked at.
        if (auto started = start(); !started) return started;
        if (auto taken = take(one, std::move(answer), ended); !taken) return taken;
      }
    }
    return {};
  }

 private:
  // All that may work do.
  Result<void> start() {
    while (!waiting_.empty() && at_work_.size() < std::max(1U, limits_.jobs)) {
      if (free_.empty()) {
        RH_TRY(Child foreman, Child::start_foreman(piece_));
        free_.push_back(std::move(foreman));
      }
      Child foreman = std::move(free_.back());
      free_.pop_back();
      if (!foreman.order(waiting_.front().piece)) continue;  // it died meanwhile
      at_work_.push_back({waiting_.front(), std::move(foreman), PoolClock::now()});
      waiting_.pop_front();
    }
    return {};
  }

  void end_late(AtWork& one) const {
    if (limits_.time.count() <= 0 || one.late || PoolClock::now() - one.since <= limits_.time) {
      return;
    }
    one.late = true;
    one.foreman.kill();
  }

  Result<void> take(AtWork& one, Result<std::string> answer, const Ended& ended) {
    if (!answer && one.late) {
      answer = fail(Code::kLimit,
                    fmt::format("took longer than {}", format_duration(limits_.time.count())));
    } else if (!answer && ++one.wanted.tries < limits_.tries && may_succeed_again(answer.error())) {
      waiting_.push_back(one.wanted);
      return {};
    }
    return ended(one.wanted.piece, answer);
  }

  const PoolLimits& limits_;
  const Piece& piece_;
  std::deque<Wanted> waiting_;
  std::vector<AtWork> at_work_;
  std::vector<Child> free_;  // foremen without work
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
