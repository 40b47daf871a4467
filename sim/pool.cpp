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

struct AtWork {
  Wanted wanted;
  Child child;
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
        descriptors.push_back({one.child.descriptor(), POLLIN, 0});
      }
      ::poll(descriptors.data(), descriptors.size(), kLookedAfter);
      for (size_t i = at_work_.size(); i-- > 0;) {
        end_late(at_work_[i]);
        if (descriptors[i].revents == 0 || at_work_[i].child.read(silent_)) continue;
        AtWork one = std::move(at_work_[i]);
        at_work_.erase(at_work_.begin() + static_cast<std::ptrdiff_t>(i));
        // Others go on before this one is looked at.
        if (auto started = give_work(); !started) return started;
        if (auto taken = take(one, ended); !taken) return taken;
      }
    }
    return {};
  }

 private:
  // All that may work do, and the next one is there.
  Result<void> start() {
    if (auto given = give_work(); !given) return given;
    if (spare_ || waiting_.empty()) return {};
    RH_TRY(spare_, Child::start_waiting(piece_));
    return {};
  }

  Result<void> give_work() {
    while (!waiting_.empty() && at_work_.size() < std::max(1U, limits_.jobs)) {
      if (!spare_) {
        RH_TRY(spare_, Child::start_waiting(piece_));
      }
      spare_->begin(waiting_.front().piece);
      at_work_.push_back({waiting_.front(), std::move(*spare_), PoolClock::now()});
      waiting_.pop_front();
      spare_.reset();
    }
    return {};
  }

  void end_late(AtWork& one) const {
    if (limits_.time.count() <= 0 || one.late || PoolClock::now() - one.since <= limits_.time) {
      return;
    }
    one.late = true;
    one.child.kill();
  }

  Result<void> take(AtWork& one, const Ended& ended) {
    Result<std::string> answer = one.child.answer();
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
  std::optional<Child> spare_;
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
