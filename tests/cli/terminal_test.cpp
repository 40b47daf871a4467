// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.hpp"

#include <catch2/catch.hpp>
#include <vector>

namespace rehearse::terminal_test {
using namespace rehearse::cli;

TEST_CASE("a progress bar shows share and time left and fits the terminal", "[cli]") {
  CHECK(progress_line("ranks", 512, 1024, 3, 60) ==
        "ranks 512 of 1,024 [###########            ]  50 % 3 s left");
  CHECK(display_width(progress_line("ranks", 512, 1024, 3, 60)) <= 60);
  CHECK(progress_line("ranks", 512, 1024, 3, 20) == "ranks 512 of 1,024  50 % 3 s left");
  CHECK(progress_line("bytes", 4096, 0, 3, 80) == "bytes 4,096");
  CHECK(progress_line("calls, 1.5 s simulated", 1, 4, 3, 20) ==
        "calls 1 of 4, 1.5 s simulated  25 % 9 s left");
  CHECK(progress_line("ranks", 9, 8, 3, 24) == "ranks 8 of 8 100 %");
}

TEST_CASE("a pipe has no width and no colour of its own", "[cli]") {
  const Terminal pipe = Terminal::of(-1, Colour::kAuto);
  CHECK(pipe.width() == 0);
  CHECK_FALSE(pipe.is_terminal());
  CHECK(pipe.styled(Style::kRed, "x") == "x");
  CHECK(Terminal::of(-1, Colour::kAlways).styled(Style::kRed, "x") == "\033[31mx\033[0m");
}

TEST_CASE("nothing but colour, tabs and ends of lines reaches a terminal", "[cli]") {
  CHECK(without_controls("a\tb\n\033[31mred\033[0m \033[1;32mok\033[0m") ==
        "a\tb\n\033[31mred\033[0m \033[1;32mok\033[0m");
  CHECK(without_controls("x\033]0;title\ay\033[2Jz\r\b\x7f\033") == "x ]0;title y [2Jz    ");
  CHECK(without_controls("\033[") == " [");
  CHECK(without_controls("\xc3\xa4\xc2\x9b[A\xc2") == "\xc3\xa4 [A\xc2");
  CHECK(without_controls("").empty());
}

}  // namespace rehearse::terminal_test
