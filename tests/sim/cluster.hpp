// SPDX-License-Identifier: Apache-2.0
// A cluster of the catalogue with its links, for tests that need a platform and no scenario.
#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/install.hpp"
#include "platforms/model/catalogue.hpp"
#include "sim/efficiency.hpp"
#include "sim/nccl/node_graphs.hpp"
#include "sim/nccl/traffic.hpp"

namespace rehearse::tests {

// A cluster of the catalogue with ranks on the first `per_node` GPUs of each node.
struct Cluster {
  Cluster(const std::string& id, uint32_t nodes, uint32_t per_node) {
    const auto folder = shipped("platforms/catalogue");
    REQUIRE(folder);
    auto found = platforms::PlatformCatalogue(*folder).platform(id);
    REQUIRE(found);
    platform = *found;
    platform.set_scale(nodes);
    REQUIRE(platforms::expand(platform, "test"));
    launch.set_nccl_version("2.28.9");
    for (uint32_t n = 0; n < nodes; ++n) {
      for (uint32_t g = 0; g < per_node; ++g) {
        pb::RankLaunch& entry = *launch.add_ranks();
        entry.set_rank(n * per_node + g);
        entry.set_node(n);
        entry.set_gpu(g);
      }
    }
    auto built = platforms::Links::build(platform);
    REQUIRE(built);
    links.emplace(std::move(*built));
    cache = std::make_unique<sim::NodeGraphCache>(platform);
    capacities = sim::effective_capacities(platform, *links);
  }
  [[nodiscard]] sim::ModelContext context() const {
    return {platform, *links, launch, cache.get()};
  }

  pb::Platform platform;
  pb::Launch launch;
  std::optional<platforms::Links> links;
  std::unique_ptr<sim::NodeGraphCache> cache;
  std::vector<BytesPerSec> capacities;
};

}  // namespace rehearse::tests
