// SPDX-License-Identifier: Apache-2.0
#include "cli/draws_option.hpp"

#include <boost/program_options/value_semantic.hpp>

namespace rehearse::cli {

namespace po = boost::program_options;

void add_draws_option(po::options_description& options, uint32_t otherwise) {
  options.add_options()(
      "draws", po::value<std::string>()->value_name("N")->default_value(std::to_string(otherwise)),
      "runs with uncertain parameters drawn jointly from the calibration of --patch-file, or from "
      "the model's priors, for the range of the prediction; 0: none");
}

Result<std::optional<validation::Drawing>> asked_draws(
    Context& context, const std::optional<pb::Calibration>& calibration,
    const pb::Scenario& scenario) {
  RH_TRY(const int64_t draws, context.number("draws", 0, 10000));
  if (draws == 0) return std::optional<validation::Drawing>{};
  RH_TRY(validation::Drawing drawing,
         validation::drawing_of(calibration ? &*calibration : nullptr, scenario,
                                static_cast<uint32_t>(draws)));
  return std::optional(std::move(drawing));
}

}  // namespace rehearse::cli
