// SPDX-License-Identifier: Apache-2.0
#include "cli/table.hpp"

#include <catch2/catch.hpp>

namespace rehearse::table_test {
using namespace rehearse::cli;

namespace {
Terminal pipe() { return Terminal::of(-1, Colour::kNever); }
}  // namespace

TEST_CASE("columns are aligned and lines do not end in blanks", "[cli]") {
  Table table({{"id"}, {"ranks", Align::kRight}, {"what"}});
  table.add({"ddp-16", "16", "ResNet-50"});
  table.add({"gpt", "1,024"});
  CHECK(table.text(pipe()) ==
        "id      ranks  what\n"
        "ddp-16     16  ResNet-50\n"
        "gpt     1,024\n");
}

TEST_CASE("letters of more than one byte take one column", "[cli]") {
  Table table({{""}, {""}});
  table.add({"µs", "x"});
  table.add({"ms", "y"});
  CHECK(table.text(pipe()) == "µs  x\nms  y\n");
}

TEST_CASE("text is wrapped at words and long words stay whole", "[cli]") {
  CHECK(wrap("one two three", 7) == std::vector<std::string>{"one two", "three"});
  CHECK(wrap("one two three", 0) == std::vector<std::string>{"one two three"});
  CHECK(wrap("extraordinarily long", 5) == std::vector<std::string>{"extraordinarily", "long"});
}

}  // namespace rehearse::table_test
