// SPDX-License-Identifier: Apache-2.0
// Machines of the catalogue with nothing but collectives on them.
#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "base/install.hpp"
#include "platforms/model/catalogue.hpp"
#include "sim/nccl/explain.hpp"

namespace rehearse::sim::testing {

inline pb::Platform catalogue_platform(const std::string& id) {
  const auto folder = shipped("platforms/catalogue");
  REQUIRE(folder);
  auto found = platforms::PlatformCatalogue(*folder).platform(id);
  REQUIRE(found);
  return *found;
}

// A machine and the communicator of all its ranks.
struct Bed {
  std::unique_ptr<Testbed> testbed;
  std::unique_ptr<CommunicatorModel> world;

  [[nodiscard]] Explanation explained(const Question& question) const {
    auto out = explain(testbed->context(), *world, question);
    if (!out) FAIL(out.error().message());
    return *out;
  }
};

inline Bed bed_of(pb::Platform platform, const TestbedOptions& options) {
  Bed bed;
  auto made = Testbed::make(std::move(platform), options, "test");
  if (!made) FAIL(made.error().message());
  bed.testbed = std::move(*made);
  auto world = bed.testbed->world();
  if (!world) FAIL(world.error().message());
  bed.world = std::make_unique<CommunicatorModel>(std::move(*world));
  return bed;
}

inline Bed bed_of(const std::string& id, uint32_t nodes, uint32_t ranks = 0,
                  std::vector<RankSetting> settings = {}) {
  TestbedOptions options;
  options.nodes = nodes;
  options.ranks = ranks;
  options.settings = std::move(settings);
  return bed_of(catalogue_platform(id), options);
}

}  // namespace rehearse::sim::testing
