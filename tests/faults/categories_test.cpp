// SPDX-License-Identifier: Apache-2.0
#include "faults/symptoms/categories.hpp"

#include <catch2/catch.hpp>

#include "faults/symptoms/classifier.hpp"

namespace rehearse::categories_test {
using namespace rehearse;
using namespace rehearse::faults;

TEST_CASE("the shipped categories are the thirty of the study with its counts",
          "[faults][symptoms]") {
  const auto categories = Categories::load_shipped();
  REQUIRE(categories);
  REQUIRE(categories->table().categories_size() == 30);
  uint32_t faults = 0, distributed = 0;
  for (const pb::SymptomCategory& c : categories->table().categories()) {
    INFO(c.id());
    CHECK(symptom_label(c.id()) == c.label());
    uint32_t fixes = 0;
    for (const pb::FixPattern& fix : c.fixes()) fixes += fix.count();
    CHECK(fixes == c.count());
    const pb::FrameworkCounts& f = c.frameworks();
    CHECK(f.horovod() + f.tensorflow() + f.pytorch() + f.keras() + f.tensorflow_keras() ==
          c.count());
    faults += c.count();
    distributed += c.distributed();
  }
  CHECK(faults == 625);
  CHECK(distributed == 564);
  CHECK(categories->table().total() == 637);
}

TEST_CASE("a fix pattern counts alone and as part of a joined label", "[faults][symptoms]") {
  const auto categories = Categories::load_shipped();
  REQUIRE(categories);
  CHECK(categories->solved("B3", "fix communication configuration") == 1);
  CHECK(categories->solved("B3", "Fix Communication Configuration") == 1);
  // 14 alone and 1 in "fix network setting & fix communication configuration".
  CHECK(categories->solved("B2", "fix communication configuration") == 15);
  CHECK(categories->solved("B2", "fix communication") == 0);
  CHECK(categories->solved("B2", "") == 0);
  CHECK(categories->solved("Z9", "fix communication configuration") == 0);
}

TEST_CASE("a category file with a slip is refused with its place", "[faults][symptoms]") {
  const auto unknown = Categories::read("categories:\n- id: A1\n  lable: x\n", "own.yaml");
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().where.starts_with("own.yaml:3:"));
  CHECK(unknown.error().message().find("label") != std::string::npos);
  const auto twice =
      Categories::read("categories:\n- {id: A1, label: x}\n- {id: A1, label: y}\n", "own.yaml");
  REQUIRE_FALSE(twice);
  CHECK(twice.error().what.find("twice") != std::string::npos);
}

}  // namespace rehearse::categories_test
