// SPDX-License-Identifier: Apache-2.0
#include "base/install.hpp"

#include <cstdlib>
#include <system_error>

namespace rehearse {
namespace fs = std::filesystem;

Result<fs::path> shipped(std::string_view path) {
  std::error_code ec;
  std::vector<fs::path> roots;
  if (const char* home = std::getenv("REHEARSE_HOME"); home && *home) roots.emplace_back(home);
  if (const fs::path self = fs::read_symlink("/proc/self/exe", ec); !ec) {
    roots.push_back(self.parent_path().parent_path() / "share" / "rehearse");
  }
  roots.emplace_back(REHEARSE_SOURCE_DIR);
  for (const fs::path& root : roots) {
    if (fs::exists(root / path, ec)) return root / path;
  }
  return fail(Code::kMissingInput, "the shipped data are not installed", std::string(path),
              "set REHEARSE_HOME to the project's folder");
}

Result<fs::path> cache_folder() {
  fs::path folder;
  if (const char* set = std::getenv("REHEARSE_CACHE"); set && *set) {
    folder = set;
  } else if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg) {
    folder = fs::path(xdg) / "rehearse";
  } else if (const char* home = std::getenv("HOME"); home && *home) {
    folder = fs::path(home) / ".cache" / "rehearse";
  } else {
    folder = fs::temp_directory_path() / "rehearse-cache";
  }
  std::error_code ec;
  fs::create_directories(folder, ec);
  if (ec) {
    return fail(Code::kIo, "cannot create the cache folder: " + ec.message(), folder.string(),
                "set REHEARSE_CACHE to a folder that can be written");
  }
  return folder;
}

}  // namespace rehearse
