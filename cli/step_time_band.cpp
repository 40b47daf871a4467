// SPDX-License-Identifier: Apache-2.0
#include "cli/step_time_band.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "validation/calibrate/overlay.hpp"
#include "validation/statistics.hpp"

namespace rehearse::cli {

Result<pb::Band> step_time_band(const Edited& edited, uint32_t draws, Reporter& reporter) {
  std::vector<pb::Patch> drawn;
  pb::Band band;
  if (edited.calibration) {
    RH_TRY(drawn, validation::draws_of(*edited.calibration, draws));
    band.set_from(edited.calibration->platform());
    band.set_note(
        fmt::format("collectives calibrated on {} calls", edited.calibration->observations()));
  } else {
    drawn = validation::prior_draws(edited.changed.document.seed(), draws);
    band.set_from("priors");
    band.set_note("nothing is calibrated: unvalidated");
  }
  std::vector<double> means;
  for (size_t k = 0; k < drawn.size(); ++k) {
    sim::Scenario scenario = edited.changed;
    if (auto done = sim::apply(scenario, drawn[k]); !done) {
      return tl::unexpected(std::move(done).error());
    }
    RH_TRY(const pb::Outcome outcome, sim::simulate(scenario, reporter));
    if (outcome.verdict() == pb::COMPLETED && outcome.has_step_time_ns()) {
      means.push_back(static_cast<double>(outcome.step_time_ns().mean()));
    }
  }
  if (means.empty()) {
    return fail(Code::kBadInput, "no run of the draws completes: it has no step time", "--draws",
                "leave out --draws");
  }
  std::sort(means.begin(), means.end());
  band.set_low(std::llround(validation::quantile(means, .05)));
  band.set_high(std::llround(validation::quantile(means, .95)));
  band.set_draws(static_cast<uint32_t>(means.size()));
  return band;
}

}  // namespace rehearse::cli
