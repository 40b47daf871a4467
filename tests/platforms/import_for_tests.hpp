// SPDX-License-Identifier: Apache-2.0
// What tests of the importers share: the catalogue, texts of the corpus, damage.
#pragma once

#include <catch2/catch.hpp>
#include <filesystem>
#include <optional>
#include <string>

#include "base/atomic_file.hpp"
#include "platforms/import/import.hpp"
#include "platforms/model/links.hpp"
#include "tests/project.hpp"

namespace rehearse::platforms::testing {

using tests::project;

// Read once for all tests.
inline const Machines& machines() {
  static const Result<Machines> loaded =
      Machines::load(PlatformCatalogue(project() / "platforms/catalogue"));
  REQUIRE(loaded);
  return *loaded;
}

inline ImportText text_of(const std::filesystem::path& file) {
  auto text = read_file(file, 16u << 20);
  REQUIRE(text);
  return {file.filename().string(), *text};
}

inline ImportText corpus(const std::string& file) {
  return text_of(project() / "tests/corpus" / file);
}

// The platform it means, with links.
inline pb::Platform whole(const ImportedPlatform& imported) {
  auto platform = expanded(imported.platform, "test", machines());
  INFO((platform ? std::string() : platform.error().message()));
  REQUIRE(platform);
  const auto links = Links::build(*platform);
  INFO((links ? std::string() : links.error().message()));
  REQUIRE(links);
  return *platform;
}

// Every prefix at `points` places and every flip of one bit at as many: `import` must answer, not
// fail, and what it refuses names a place.
template <typename Import>
void survives_damage(const std::string& text, size_t points, Import import) {
  const auto told = [](const auto& result) {
    if (!result) {
      CHECK_FALSE(result.error().what.empty());
      CHECK_FALSE(result.error().where.empty());
    }
  };
  for (size_t i = 0; i < points; ++i) told(import(text.substr(0, text.size() * i / points)));
  for (size_t i = 0; i < points; ++i) {
    std::string flipped = text;
    flipped[(i * 7919) % text.size()] ^= static_cast<char>(1 << (i % 8));
    told(import(flipped));
  }
}

}  // namespace rehearse::platforms::testing
