// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <iostream>
#include <string>

#include "tests/project.hpp"
#include "tests/skip.hpp"

#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

namespace rehearse::tests {
namespace {

struct Cases {
  bool this_one = false;  // the running test case said skip
  int skipped = 0;
  int run = 0;
};

Cases& cases() {
  static Cases counted;
  return counted;
}

struct Count : Catch::TestEventListenerBase {
  using TestEventListenerBase::TestEventListenerBase;

  void testCaseStarting(const Catch::TestCaseInfo&) override { cases().this_one = false; }
  void testCaseEnded(const Catch::TestCaseStats&) override {
    ++cases().run;
    if (cases().this_one) ++cases().skipped;
  }
};

CATCH_REGISTER_LISTENER(Count)

}  // namespace

void skip(std::string_view why) {
  std::cout << "skipped: " << why << '\n';
  cases().this_one = true;
}

std::filesystem::path project() {
  const char* home = std::getenv("REHEARSE_HOME");
  return home != nullptr && *home != '\0' ? home : REHEARSE_SOURCE_DIR;
}

std::optional<std::filesystem::path> real_data(const std::filesystem::path& path) {
  const char* set = std::getenv("REHEARSE_DATA");
  const std::filesystem::path folder =
      set != nullptr ? std::filesystem::path(set) : project() / "../shared/data";
  if (std::filesystem::exists(folder / path)) return folder / path;
  skip("no " + (folder / path).string() + " (REHEARSE_DATA)");
  return std::nullopt;
}

}  // namespace rehearse::tests

int main(int argc, char** argv) {
  const int failed = Catch::Session().run(argc, argv);
  const auto& counted = rehearse::tests::cases();
  if (failed == 0 && counted.run > 0 && counted.skipped == counted.run) return 77;
  return failed;
}
