// SPDX-License-Identifier: Apache-2.0
// The catalogue of machines: platforms/catalogue/*.yaml (whole nodes or racks with their fabric)
// and platforms/catalogue/gpus/*.yaml (data sheets). Files are found beside the program (see
// root()) and read whenever an id is asked for. Also expansion: from the compact form to one entry
// per node, GPU and NIC.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.hpp"
#include "base/error.hpp"
#include "platforms/proto/platform.pb.h"

namespace rehearse::platforms {

struct Entry {
  std::string id;  // file name without .yaml
  std::string name;
  std::string description;
};

class PlatformCatalogue {
 public:
  // `folder` holds *.yaml and gpus/*.yaml.
  explicit PlatformCatalogue(std::filesystem::path folder);
  [[nodiscard]] Result<std::vector<Entry>> list() const;  // by id
  [[nodiscard]] Result<pb::Platform> platform(
      std::string_view id) const;  // compact, `like` resolved
  [[nodiscard]] Result<pb::Gpu> gpu(std::string_view id) const;
  [[nodiscard]] Result<std::vector<std::string>> gpus() const;  // ids of data sheets, sorted
  // For read_document: resolves `like` of Platform, Node and Gpu.
  [[nodiscard]] Catalogue resolver() const;

 private:
  std::filesystem::path folder_;
};

// Replaces counts by copies, fills names, rails, bus ids, addresses, DNS names and what else has a
// default, and checks what can be checked (two NICs with one name, a parent switch that does not
// exist, a PCIe cycle, a GPU without any path). Errors name the place as in patches, by the index
// after expansion: "cluster.yaml: nodes[1].nics[2].name"; `where` is the document's name. Expanding
// twice changes nothing. PCIe bandwidths stay derived (platforms/model/pcie.hpp) so that patches of
// generation and width act.
[[nodiscard]] Result<void> expand(pb::Platform& platform, const std::string& where);

}  // namespace rehearse::platforms
