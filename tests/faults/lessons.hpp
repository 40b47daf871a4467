// SPDX-License-Identifier: Apache-2.0
// The shipped labs, loaded once, for the tests of labs.
#pragma once

#include <catch2/catch.hpp>

#include "faults/lessons/job.hpp"
#include "faults/lessons/lab_catalogue.hpp"

namespace rehearse::faults::testing {

inline const LabCatalogue& shipped_labs() {
  static const auto loaded = LabCatalogue::load_shipped();
  if (!loaded) FAIL(loaded.error().message());
  return *loaded;
}

inline LabJob job_of(const std::string& id, uint64_t seed) {
  static SilentReporter reporter;
  const auto lab = shipped_labs().find(id);
  REQUIRE(lab);
  auto job = prepare_job(*lab, seed, reporter);
  if (!job) FAIL(id << ": " << job.error().message());
  return std::move(*job);
}

}  // namespace rehearse::faults::testing
