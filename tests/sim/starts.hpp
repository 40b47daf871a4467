// SPDX-License-Identifier: Apache-2.0
// Starts of shipped scenarios with settings changed, and what they say.
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "sim/bringup/bringup.hpp"
#include "sim/scenario/scenario.hpp"

namespace rehearse::tests {

constexpr Nanos kSecond = 1'000'000'000;

// Settings are path=value.
inline sim::Scenario load(const std::string& name, const std::vector<std::string>& settings = {}) {
  SilentReporter silent;
  auto scenario = sim::load_scenario(name, silent);
  REQUIRE(scenario);
  for (const std::string& setting : settings) {
    const auto patch = sim::parse_assignment(setting);
    REQUIRE(patch);
    const auto applied = sim::apply(*scenario, *patch);
    INFO((applied ? "" : applied.error().message()));
    REQUIRE(applied);
  }
  return std::move(*scenario);
}

inline sim::bringup::CameUp start(const std::string& name,
                                  const std::vector<std::string>& settings) {
  auto up = sim::bringup::bring_up(load(name, settings));
  REQUIRE(up);
  return std::move(*up);
}

inline pb::Outcome failed(const std::string& name, const std::vector<std::string>& settings) {
  sim::bringup::CameUp up = start(name, settings);
  REQUIRE(up.failed);
  return std::move(up.outcome);
}

inline bool says(const pb::Outcome& outcome, const std::string& text) {
  for (const pb::ErrorText& error : outcome.error_text()) {
    if (error.text().find(text) != std::string::npos) return true;
  }
  return false;
}

inline std::string first_text(const pb::Outcome& outcome) {
  return outcome.error_text().empty() ? "" : outcome.error_text(0).text();
}

}  // namespace rehearse::tests
