// SPDX-License-Identifier: Apache-2.0
// Step times of stated layouts by generating the job (traces/synth) and replaying it on the stated hardware, as `rehearse
// synth` and `rehearse run` do. The rates of layout.hpp set the shares of the data sheet that kernels reach, so that all
// work of a job takes what its terms say; communication, bubbles, optimizer and host come from the replay.
//
// What is generated is as large as whole nodes ask for and grown to the stated number of replicas; micro-batches beyond
// two (per stage) repeat and are counted. Blind spots: the exchange of context ranks is taken to hide behind attention,
// a layer of another shape than 12 h^2 parameters sends those of one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/reporter.hpp"
#include "validation/step_time/layout.hpp"

namespace rehearse::validation {

struct ReplayedJob {
  TransformerJob job;
  std::string gpu;  // catalogue id
  StepRates rates;
};

struct ReplayedStep {
  double seconds = 0;
  // Largest peak of a rank that its framework allocated, bytes; 0: not known of jobs that were grown.
  double memory = 0;
};

// By job; an error where it cannot be generated or does not run. Forked children, several at a time.
[[nodiscard]] Result<std::vector<Result<ReplayedStep>>> replayed_steps(
    const std::vector<ReplayedJob>& jobs, Reporter& reporter);

// The command that generates such a job, for people.
[[nodiscard]] std::string synth_command(const ReplayedJob& job);

}  // namespace rehearse::validation
