// SPDX-License-Identifier: Apache-2.0
// Golden texts: what a test makes is compared with the approved text in tests/golden. What differs
// is left in build/golden under the same name; ./dev approve accepts it.
#pragma once

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "base/atomic_file.hpp"
#include "base/install.hpp"

namespace rehearse {

// Fails the running test when `text` is not the approved one. `name` is a path below tests/golden.
inline void check_golden(const std::string& name, const std::string& text) {
  const auto tests = shipped("tests");
  REQUIRE(tests);
  const auto approved = read_file(*tests / "golden" / name, 64 << 20);
  const auto found = tests->parent_path() / "build" / "golden" / name;
  std::error_code ec;
  if (approved && *approved == text) {
    std::filesystem::remove(found, ec);
    SUCCEED();
    return;
  }
  std::filesystem::create_directories(found.parent_path(), ec);
  REQUIRE(write_file(found, text, Overwrite::kReplace));
  FAIL_CHECK("tests/golden/" << name << " differs; diff -u tests/golden/" << name
                             << " build/golden/" << name << ", then ./dev approve " << name);
}

}  // namespace rehearse
