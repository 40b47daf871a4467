// SPDX-License-Identifier: Apache-2.0
#include "cli/table.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>

namespace rehearse::table_test {
using namespace rehearse::cli;

namespace {
Terminal pipe() { return Terminal::of(-1, Colour::kNever); }

// A pseudo terminal of so many columns.
Terminal terminal_of(unsigned short columns) {
  const int line = posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE(line >= 0);
  REQUIRE(grantpt(line) == 0);
  REQUIRE(unlockpt(line) == 0);
  const int end = open(ptsname(line), O_RDWR | O_NOCTTY);
  REQUIRE(end >= 0);
  const winsize size{24, columns, 0, 0};
  REQUIRE(ioctl(end, TIOCSWINSZ, &size) == 0);
  unsetenv("COLUMNS");
  const Terminal out = Terminal::of(end, Colour::kNever);
  close(end);
  close(line);
  return out;
}
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

TEST_CASE("rows that do not fit a narrow terminal become lines with headings", "[cli]") {
  Table table({{"link"}, {"bytes", Align::kRight}, {"bus bandwidth", Align::kRight}, {"what"}});
  table.add({"node1/plx1/pcie-down", "954 MiB", "9.56 GB/s", "busy most of the time"});
  table.add({"node0", "1 MiB"});
  CHECK(table.text(terminal_of(36)) ==
        "link: node1/plx1/pcie-down\n"
        "  bytes          954 MiB\n"
        "  bus bandwidth  9.56 GB/s\n"
        "  what           busy most of the\n"
        "                 time\n"
        "link: node0\n"
        "  bytes          1 MiB\n");
  // Wide enough when words are wrapped: still a table.
  CHECK(table.text(terminal_of(68)).starts_with("link                  "));
}

TEST_CASE("lines of text hang below their words on a narrow terminal", "[cli]") {
  CHECK(fit("a headline of several words\n", 16) == "a headline of\n  several words\n");
  CHECK(fit("  for:     step time of all\n", 22) == "  for:     step time\n           of all\n");
  // A label that leaves no room for words.
  CHECK(fit("  long-label:     one two\n", 16) == "  long-label:\n    one two\n");
  CHECK(fit("  \x1b[31mone\x1b[0m two three\n", 9) == "  \x1b[31mone\x1b[0m two\n    three\n");
  CHECK(fit("one two\n\nextraordinarily long", 7) == "one two\n\nextraordinarily\n  long");
  const std::string whole = "  for:     whatever  there is  \n";
  CHECK(fit(whole, 0) == whole);
  CHECK(fit(whole, 60) == whole);
}

}  // namespace rehearse::table_test
