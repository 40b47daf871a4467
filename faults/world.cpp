// SPDX-License-Identifier: Apache-2.0
#include "faults/world.hpp"

#include "sim/simulate.hpp"

namespace rehearse::faults {

World simulated_world(Reporter& reporter) {
  return {
      .apply = [](sim::Scenario& scenario,
                  const pb::Patch& patch) { return sim::apply(scenario, patch); },
      .simulate =
          [&reporter](const sim::Scenario& scenario) { return sim::simulate(scenario, reporter); }};
}

}  // namespace rehearse::faults
