// SPDX-License-Identifier: Apache-2.0
#include "cli/platform_option.hpp"

#include <filesystem>

#include "base/document.hpp"
#include "base/install.hpp"
#include "platforms/model/catalogue.hpp"

namespace rehearse::cli {

Result<pb::Platform> read_platform(const std::string& name) {
  RH_TRY(const auto folder, shipped("platforms/catalogue"));
  const platforms::PlatformCatalogue catalogue(folder);
  std::error_code error;
  if (!std::filesystem::is_regular_file(name, error)) return catalogue.platform(name);
  pb::Platform platform;
  if (auto read = read_document_file(name, platform, catalogue.resolver()); !read) {
    return tl::unexpected(read.error());
  }
  return platform;
}

}  // namespace rehearse::cli
