// SPDX-License-Identifier: Apache-2.0
// A folder of a test's own that goes with it; tests run side by side.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace rehearse::tests {

struct TemporaryFolder {
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "rehearse-test-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::filesystem::path path;
};

}  // namespace rehearse::tests
