// SPDX-License-Identifier: Apache-2.0
// How text meets a person: colour only where it is wanted, a progress bar only where somebody
// looks.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/reporter.hpp"

namespace rehearse::cli {

enum class Colour { kAuto, kAlways, kNever };
enum class Style { kPlain, kBold, kDim, kRed, kGreen, kYellow, kCyan };

// What a stream can show.
class Terminal {
 public:
  // `descriptor` is 1 or 2. Auto: colour on a terminal unless NO_COLOR is set or TERM is dumb.
  static Terminal of(int descriptor, Colour colour);

  [[nodiscard]] bool is_terminal() const { return is_terminal_; }
  // Columns, COLUMNS before what the terminal says; 0 in a pipe: no limit.
  [[nodiscard]] int width() const { return width_; }
  // `text` in a style, or as it is without colour.
  [[nodiscard]] std::string styled(Style style, std::string_view text) const;

 private:
  bool is_terminal_ = false;
  bool colour_ = false;
  int width_ = 0;
};

enum class Talk { kQuiet, kNormal, kVerbose };

// Draws one moving line on stderr when it is a terminal and nobody asked for quiet; silent in a
// pipe. Notes are shown on a terminal, or with -v. With REHEARSE_PROGRESS=json progress is one line
// of JSON each on stderr, for programs: {"progress":{"what":"ranks","done":512,"total":1024}}.
class TerminalReporter final : public Reporter {
 public:
  explicit TerminalReporter(Talk talk);
  ~TerminalReporter() override;
  TerminalReporter(const TerminalReporter&) = delete;
  TerminalReporter& operator=(const TerminalReporter&) = delete;

  void progress(std::string_view what, uint64_t done, uint64_t total) override;
  void note(std::string_view text) override;
  // True after Ctrl-C (see catch_interrupts).
  [[nodiscard]] bool interrupted() const override;
  // Removes the bar, so that something else can be written.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  void line(std::string_view what, uint64_t done, uint64_t total);
  Talk talk_;
  Terminal terminal_;
  bool lines_ = false;  // of JSON
  bool drawn_ = false;
  std::string what_;
  Clock::time_point begin_, last_;
};

// The text of a progress bar: "ranks 512 of 1,024 [#####     ] 50 % 3 s left".
[[nodiscard]] std::string progress_line(std::string_view what, uint64_t done, uint64_t total,
                                        double seconds, int width);

// Text as it may meet a terminal: names in traces and logs are other people's, so control characters (but ends of
// lines and tabs) and sequences other than those of colour become spaces.
[[nodiscard]] std::string without_controls(std::string_view text);

// Columns that `text` takes on a terminal (code points).
[[nodiscard]] int display_width(std::string_view text);

// Ctrl-C and SIGTERM ask for an orderly end; a second one, or two seconds without one, ends at once
// with the code for interrupted. A reader that goes away ends the program without a word.
void catch_interrupts();
[[nodiscard]] bool interrupt_requested();

}  // namespace rehearse::cli
