// SPDX-License-Identifier: Apache-2.0
// Many pieces of work, each in a forked child of its own (sim/worker.hpp), several at a time. As many foremen as may be at
// work fork those children; this process only hands out numbers and takes answers, so that no core waits for it.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/reporter.hpp"
#include "sim/worker.hpp"

namespace rehearse::sim {

struct PoolLimits {
  unsigned jobs = 1;                 // at work at a time
  std::chrono::nanoseconds time{0};  // of a piece; 0: none. What takes longer is kLimit
  unsigned tries =
      1;  // of a piece that ended with an error; not when it took too long or could not write
};

// In this process, as pieces end, whichever is first. An error ends all of them and is returned.
using Ended = std::function<Result<void>(size_t piece, const Result<std::string>& answer)>;

// Pieces 0 to count - 1. Ctrl-C ends all of them: kInterrupted.
[[nodiscard]] Result<void> run_pieces(size_t count, const PoolLimits& limits, const Piece& piece,
                                      const Ended& ended, Reporter& reporter);

// The same with answers in the order of pieces.
[[nodiscard]] Result<std::vector<Result<std::string>>> in_children(size_t count, unsigned jobs,
                                                                   const Piece& piece,
                                                                   Reporter& reporter);

}  // namespace rehearse::sim
