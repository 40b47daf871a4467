// SPDX-License-Identifier: Apache-2.0
// What is published is what the checks say today, where the data is there.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/install.hpp"
#include "tests/skip.hpp"
#include "validation/accuracy_page.hpp"
#include "validation/certainty/change_checks.hpp"
#include "validation/suite.hpp"

namespace rehearse::validation::accuracy_test {

TEST_CASE("docs/accuracy.md and the errors of changes are what validate finds",
          "[validation][suite]") {
  const auto data = rehearse::tests::real_data();
  if (!data) return;
  SilentReporter reporter;
  const auto checks = run_suite({*data, {}}, reporter);
  REQUIRE(checks);
  const auto page = shipped("docs/accuracy.md");
  REQUIRE(page);
  std::ifstream file(*page);
  std::stringstream text;
  text << file.rdbuf();
  CHECK(text.str() == accuracy_page(*checks));
  const auto changes = shipped("validation/figures/change_errors.yaml");
  REQUIRE(changes);
  std::ifstream errors(*changes);
  std::stringstream held_out;
  held_out << errors.rdbuf();
  CHECK(held_out.str() == change_errors_document(*checks));
}

}  // namespace rehearse::validation::accuracy_test
