// SPDX-License-Identifier: Apache-2.0
// Where the shipped data (catalogues, scenarios, lessons) and the cache are.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/error.hpp"

namespace rehearse {

// A folder or file of the shipped data by its path in the project ("platforms/catalogue"). Looked for in
// $REHEARSE_HOME, then beside the program (../share/rehearse), then in the source tree it was built from.
[[nodiscard]] Result<std::filesystem::path> shipped(std::string_view path);

// A folder for what can be made again (generated traces): $REHEARSE_CACHE, else the user's cache folder.
// Created when absent.
[[nodiscard]] Result<std::filesystem::path> cache_folder();

// A folder for what should last from run to run (progress in labs): $REHEARSE_STATE, else the user's state folder.
// Created when absent.
[[nodiscard]] Result<std::filesystem::path> state_folder();

}  // namespace rehearse
