// SPDX-License-Identifier: Apache-2.0
// Every real description of a machine imports to a platform that expands and has links.
#include <algorithm>

#include "tests/platforms/import_for_tests.hpp"
#include "tests/skip.hpp"

namespace rehearse::import_data_test {
using namespace rehearse;
using namespace rehearse::platforms;
using namespace rehearse::platforms::testing;

namespace {

std::vector<std::filesystem::path> files_below(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (auto it = std::filesystem::recursive_directory_iterator(folder, error);
       it != std::filesystem::recursive_directory_iterator(); it.increment(error)) {
    if (it->path().extension() == ".xml" || it->path().extension() == ".txt") {
      files.push_back(it->path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

TEST_CASE("every real topology, graph and nvidia-smi table imports", "[platforms][import][data]") {
  const auto topology_files = rehearse::tests::real_data("nccl/topology");
  if (!topology_files) return;
  const Machines& from = machines();
  size_t topologies = 0;
  for (const auto& file : files_below(*topology_files)) {
    const ImportText text = text_of(file);
    INFO(file);
    const ImportFormat format = format_of(text.text);
    Result<ImportedPlatform> imported = ImportedPlatform{};
    if (format == ImportFormat::kNcclTopology) {
      imported = import_nccl_topology(text, from, {});
      ++topologies;
    } else if (format == ImportFormat::kNcclGraph) {
      imported = import_nccl_graph(text, std::nullopt, from);
    } else if (format == ImportFormat::kNvidiaSmi) {
      imported = import_nvidia_smi(text, from, {});
    } else {
      continue;
    }
    INFO((imported ? std::string() : imported.error().message()));
    REQUIRE(imported);
    const pb::Platform platform = whole(*imported);
    CHECK(platform.nodes(0).gpus_size() > 0);
    CHECK(platform.assumptions_size() > 0);
  }
  CHECK(topologies == 74 - 1);
}

}  // namespace rehearse::import_data_test
