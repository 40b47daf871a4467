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

namespace {

// A folder of the user's: where the first variable says, below the second, or below the home folder.
struct UserFolder {
  const char* variable;
  const char* xdg;
  const char* below_home;
  const char* what;
};

Result<fs::path> user_folder(const UserFolder& which) {
  fs::path folder;
  if (const char* set = std::getenv(which.variable); set && *set) {
    folder = set;
  } else if (const char* xdg = std::getenv(which.xdg); xdg && *xdg) {
    folder = fs::path(xdg) / "rehearse";
  } else if (const char* home = std::getenv("HOME"); home && *home) {
    folder = fs::path(home) / which.below_home / "rehearse";
  } else {
    folder = fs::temp_directory_path() / (std::string("rehearse-") + which.what);
  }
  std::error_code ec;
  fs::create_directories(folder, ec);
  if (ec) {
    return fail(
        Code::kIo, std::string("cannot create the ") + which.what + " folder: " + ec.message(),
        folder.string(), std::string("set ") + which.variable + " to a folder that can be written");
  }
  return folder;
}

}  // namespace

Result<fs::path> cache_folder() {
  return user_folder({"REHEARSE_CACHE", "XDG_CACHE_HOME", ".cache", "cache"});
}

Result<fs::path> state_folder() {
  return user_folder({"REHEARSE_STATE", "XDG_STATE_HOME", ".local/state", "state"});
}

}  // namespace rehearse
