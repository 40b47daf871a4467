// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/units.hpp"

namespace rehearse::cli {
namespace {

volatile sig_atomic_t g_interrupts = 0;

extern "C" void on_interrupt(int) {
  if (g_interrupts != 0) _exit(static_cast<int>(Code::kInterrupted));
  g_interrupts = 1;
  alarm(2);
}
extern "C" void on_alarm(int) { _exit(static_cast<int>(Code::kInterrupted)); }

// Bytes of a sequence that colours at the beginning of `text`, as "\033[31m"; 0: there is none.
size_t colouring(std::string_view text) {
  if (!text.starts_with("\033[")) return 0;
  const size_t end = text.find_first_not_of("0123456789;", 2);
  return end != text.npos && text[end] == 'm' ? end + 1 : 0;
}

// Bytes of a control character at the beginning of `text`, those of Unicode among them.
size_t control(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) == 0xC2 && text.size() > 1 && byte(1) >= 0x80 && byte(1) < 0xA0) return 2;
  return (byte(0) < 0x20 && text[0] != '\n' && text[0] != '\t') || byte(0) == 0x7F ? 1 : 0;
}

bool set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

const char* sequence(Style style) {
  switch (style) {
    case Style::kPlain:
      return "";
    case Style::kBold:
      return "\033[1m";
    case Style::kDim:
      return "\033[2m";
    case Style::kRed:
      return "\033[31m";
    case Style::kGreen:
      return "\033[32m";
    case Style::kYellow:
      return "\033[33m";
    case Style::kCyan:
      return "\033[36m";
  }
  return "";
}

}  // namespace

Terminal Terminal::of(int descriptor, Colour colour) {
  Terminal terminal;
  terminal.is_terminal_ = isatty(descriptor) != 0;
  if (terminal.is_terminal_) {
    winsize size{};
    terminal.width_ =
        ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
    if (const char* columns = std::getenv("COLUMNS")) {
      int asked = 0;
      const char* end = columns + std::strlen(columns);
      const auto [stop, error] = std::from_chars(columns, end, asked);
      if (error == std::errc() && stop == end && asked > 0) terminal.width_ = asked;
    }
  }
  const char* term = std::getenv("TERM");
  const bool dumb = term == nullptr || std::string_view(term) == "dumb";
  terminal.colour_ =
      colour == Colour::kAlways ||
      (colour == Colour::kAuto && terminal.is_terminal_ && !dumb && !set("NO_COLOR"));
  return terminal;
}

std::string Terminal::styled(Style style, std::string_view text) const {
  if (!colour_ || style == Style::kPlain || text.empty()) return std::string(text);
  return fmt::format("{}{}\033[0m", sequence(style), text);
}

TerminalReporter::TerminalReporter(Talk talk)
    : talk_(talk), terminal_(Terminal::of(STDERR_FILENO, Colour::kNever)) {
  const char* form = std::getenv("REHEARSE_PROGRESS");
  lines_ = form != nullptr && std::string_view(form) == "json";
}

TerminalReporter::~TerminalReporter() { clear(); }

void TerminalReporter::progress(std::string_view what, uint64_t done, uint64_t total) {
  if (talk_ == Talk::kQuiet || (!lines_ && !terminal_.is_terminal())) return;
  const auto now = Clock::now();
  // "collectives, 1.2 s simulated": what comes after the comma moves on with the work.
  if (const std::string_view unit = what.substr(0, what.find(',')); unit != what_) {
    what_ = unit;
    begin_ = last_ = now;
    if (lines_) line(what, done, total);
    return;  // what is done within a moment needs no bar
  }
  if (now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  if (lines_) return line(what, done, total);
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const std::string line = progress_line(what, done, total, seconds, terminal_.width());
  fmt::print(stderr, "\r{}\033[K", line);
  std::fflush(stderr);
  drawn_ = true;
}

void TerminalReporter::line(std::string_view what, uint64_t done, uint64_t total) {
  const nlohmann::ordered_json told = {
      {"progress", {{"what", what}, {"done", done}, {"total", total}}}};
  const auto replace = nlohmann::ordered_json::error_handler_t::replace;
  fmt::print(stderr, "{}\n", told.dump(-1, ' ', false, replace));
}

void TerminalReporter::note(std::string_view text) {
  if (talk_ == Talk::kQuiet || (talk_ == Talk::kNormal && !terminal_.is_terminal())) return;
  clear();
  fmt::print(stderr, "{}\n", without_controls(text));
}

bool TerminalReporter::interrupted() const { return interrupt_requested(); }

void TerminalReporter::clear() {
  if (!drawn_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  drawn_ = false;
}

std::string progress_line(std::string_view what, uint64_t done, uint64_t total, double seconds,
                          int width) {
  if (total == 0) return fmt::format("{} {}", what, format_count(done));
  done = std::min(done, total);
  const double share = static_cast<double>(done) / static_cast<double>(total);
  std::string tail = fmt::format("{:3.0f} %", 100 * share);
  if (done > 0 && done < total && seconds > 1) {
    tail += fmt::format(" {:.0f} s left", std::ceil(seconds / share - seconds));
  }
  const size_t comma = what.find(',');
  const std::string head =
      fmt::format("{} {} of {}{}", what.substr(0, comma), format_count(done), format_count(total),
                  comma == what.npos ? "" : what.substr(comma));
  const int room = std::min(40, width - display_width(head) - display_width(tail) - 5);
  if (room < 8) return fmt::format("{} {}", head, tail);
  const int filled = static_cast<int>(share * room);
  return fmt::format("{} [{:#<{}}{: <{}}] {}", head, "", filled, "", room - filled, tail);
}

std::string without_controls(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t coloured = colouring(text), controlled = control(text);
    if (controlled > 0 && coloured == 0) {
      out += ' ';
      text.remove_prefix(controlled);
      continue;
    }
    const size_t kept = std::max<size_t>(coloured, 1);
    out += text.substr(0, kept);
    text.remove_prefix(kept);
  }
  return out;
}

int display_width(std::string_view text) {
  int width = 0;
  for (const char c : text) width += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return width;
}

void catch_interrupts() {
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  action.sa_handler = on_alarm;
  sigaction(SIGALRM, &action, nullptr);
  action.sa_handler = SIG_DFL;
  sigaction(SIGPIPE, &action, nullptr);
}

bool interrupt_requested() { return g_interrupts != 0; }

}  // namespace rehearse::cli
