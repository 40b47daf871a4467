// SPDX-License-Identifier: Apache-2.0
// --draws N: how every verb that predicts asks for a range.
#pragma once

#include <boost/program_options/options_description.hpp>
#include <optional>

#include "cli/context.hpp"
#include "cli/scenario_options.hpp"
#include "validation/certainty/band.hpp"

namespace rehearse::cli {

// `otherwise`: how many without the option; 0: none.
void add_draws_option(boost::program_options::options_description& options, uint32_t otherwise);

// What --draws asks for, of the calibration in `calibration` or of the priors; nothing when it asks for none.
[[nodiscard]] Result<std::optional<validation::Drawing>> asked_draws(
    Context& context, const std::optional<pb::Calibration>& calibration,
    const pb::Scenario& scenario);

}  // namespace rehearse::cli
