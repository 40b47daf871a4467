// SPDX-License-Identifier: Apache-2.0
#include "traces/import/nccl_log/log_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "traces/import/scan.hpp"

namespace rehearse::traces::nccl_log {
namespace {

constexpr std::string_view kMark = "NCCL ";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_host_char(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' ||
         c == '_' || c == '*';
}

std::optional<Level> level_of(std::string_view text) {
  if (text.starts_with("INFO ")) return Level::kInfo;
  if (text.starts_with("WARN ")) return Level::kWarn;
  if (text.starts_with("TRACE ")) return Level::kTrace;
  if (text.starts_with("CALL ")) return Level::kCall;
  return std::nullopt;
}

// Takes things from the end of a text.
class Backwards {
 public:
  explicit Backwards(std::string_view text) : text_(text) {}
  [[nodiscard]] std::string_view rest() const { return text_; }
  [[nodiscard]] bool ends_with(char c) const { return text_.ends_with(c); }
  bool take(char c) {
    if (!text_.ends_with(c)) return false;
    text_.remove_suffix(1);
    return true;
  }
  void blanks() {
    while (text_.ends_with(' ')) text_.remove_suffix(1);
  }
  std::optional<int64_t> digits() {
    size_t first = text_.size();
    while (first > 0 && is_digit(text_[first - 1])) --first;
    int64_t value = 0;
    const std::string_view run = text_.substr(first);
    if (run.empty() ||
        std::from_chars(run.data(), run.data() + run.size(), value).ec != std::errc{}) {
      return std::nullopt;
    }
    text_.remove_suffix(run.size());
    return value;
  }
  std::string_view run(bool (*belongs)(char)) {
    size_t first = text_.size();
    while (first > 0 && belongs(text_[first - 1])) --first;
    const std::string_view found = text_.substr(first);
    text_.remove_suffix(found.size());
    return found;
  }
  // " (word)" with the blank before it.
  void parenthesis() {
    const size_t open = text_.rfind(" (");
    if (text_.ends_with(')') && open != std::string_view::npos &&
        text_.find_first_of(" \t", open + 1) == std::string_view::npos) {
      text_ = text_.substr(0, open);
    }
  }
  void put_back(std::string_view part) { text_ = {text_.data(), text_.size() + part.size()}; }

 private:
  std::string_view text_;
};

bool is_place_char(char c) { return is_host_char(c) || c == '/' || c == ':'; }

// The host at the end of `run`, which may begin with text that was glued to it: the longest host
// that is known, else all of it.
std::string_view host_in(std::string_view run, const Hosts& hosts) {
  for (size_t skip = 0; skip < run.size(); ++skip) {
    if (hosts.contains(run.substr(skip))) return run.substr(skip);
  }
  return run;
}

// "<my-node>", "[my-node]": people put words in brackets where their hosts were.
std::string_view placeholder(Backwards& back) {
  const std::string_view rest = back.rest();
  const bool angle = rest.ends_with('>');
  const size_t open = rest.rfind(angle ? '<' : '[');
  if ((!angle && !rest.ends_with(']')) || open == std::string_view::npos ||
      rest.size() - open < 3 || rest.find_first_of(" \t", open) != std::string_view::npos) {
    return {};
  }
  Backwards taken(rest.substr(0, open));
  back = taken;
  return rest.substr(open);
}

struct Prefix {
  Message message;
  size_t begin = 0;  // first byte of the prefix in the line
};

// "[3]" at the end, with the blank or the start of the line before it.
bool take_device(Backwards& back, Message& message) {
  Backwards tried = back;
  if (!tried.take(']')) return false;
  const auto number = tried.digits();
  if (!number || *number > INT32_MAX) return false;
  const bool minus = tried.take('-');
  if (!tried.take('[') || (!tried.take(' ') && !tried.rest().empty())) return false;
  message.device = minus ? -1 : static_cast<int>(*number);
  back = tried;
  return true;
}

// "file.cc:12", since 2.30 "file.cc:12 (function)", or "12.345 function:12" may stand between the device
// and the level.
void take_device_and_place(Backwards& back, Message& message) {
  if (take_device(back, message)) return;
  Backwards tried = back;
  tried.parenthesis();
  const std::string_view place = tried.run(is_place_char);
  tried.blanks();
  if (place.find_first_of("./") == std::string_view::npos || !tried.ends_with(']')) return;
  if (!take_device(tried, message)) return;
  message.place = place;
  back = tried;
}

// The prefix that ends where "NCCL INFO" begins.
std::optional<Prefix> prefix_before(std::string_view line, size_t mark, Hosts& hosts) {
  Prefix out;
  Backwards back(line.substr(0, mark));
  if (!back.take(' ')) return std::nullopt;
  take_device_and_place(back, out.message);
  const auto thread = back.digits();
  if (!thread || !back.take(':')) return std::nullopt;
  const auto pid = back.digits();
  if (!pid || !back.take(':')) return std::nullopt;
  std::string_view run = back.run(is_host_char);
  if (run.empty()) run = placeholder(back);
  if (run.empty()) return std::nullopt;
  const bool alone = back.rest().empty() || back.ends_with(' ') || back.ends_with(']');
  const std::string process = fmt::format(":{}", *pid);
  out.message.host = hosts.contains(run) ? run : host_in(run, hosts);
  if (back.rest().empty() && out.message.host.size() < run.size() &&
      !hosts.contains(std::string(out.message.host) + process)) {
    out.message.host = run;  // another host whose name ends alike
  }
  if (back.rest().empty() && out.message.host.size() == run.size()) {
    hosts.emplace(run);
    hosts.emplace(std::string(run) + process);
  }
  out.message.thread = *thread;
  out.message.pid = *pid;
  out.begin = static_cast<size_t>(out.message.host.data() - line.data());
  if (alone && out.message.host.size() == run.size()) {
    Backwards time = back;
    time.blanks();
    const size_t open = time.rest().rfind('[');
    if (time.ends_with(']') && open != std::string_view::npos && time.rest().size() - open > 16) {
      out.message.time = time.rest().substr(open + 1, time.rest().size() - open - 2);
      out.begin = open;
    }
  }
  return out;
}

// Bytes of the "2024-05-01T12:00:00.123Z " that containers put before each line, 0 without.
size_t timestamp_length(std::string_view line) {
  constexpr std::string_view kShape = "0000-00-00T00:00:00";
  for (size_t i = 0; i < kShape.size(); ++i) {
    if (i >= line.size() || (kShape[i] == '0' ? !is_digit(line[i]) : line[i] != kShape[i]))
      return 0;
  }
  const size_t blank = line.find(' ', kShape.size());
  return blank == std::string_view::npos || blank > 40 ? 0 : blank + 1;
}

// What a launcher calls the process whose line it is: the word before the colon, or in the brackets there.
std::string_view label_in(std::string_view lead) {
  if (!lead.ends_with(':')) return {};
  lead.remove_suffix(1);
  lead = lead.substr(lead.find_last_of(" \t") + 1);
  const size_t open = lead.rfind('['), close = lead.rfind(']');
  if (open != std::string_view::npos && close != std::string_view::npos && open < close) {
    return lead.substr(open + 1, close - open - 1);
  }
  return lead.find(':') == std::string_view::npos ? lead : std::string_view();  // "12:00:00:"
}

// Times, labels and levels of loggers, rather than the beginning of a sentence.
bool is_lead(std::string_view lead) {
  constexpr size_t kLongest = 100;
  if (lead.empty() || lead.ends_with(':') || lead.ends_with(']') || lead.ends_with('|')) {
    return lead.size() <= kLongest;
  }
  return lead.size() <= kLongest &&
         lead.find_first_not_of("0123456789-/:.,+TZ ") == std::string_view::npos;
}

// Ray prints a line that came many times once, and says so behind it.
std::string_view without_repeats(std::string_view text) {
  constexpr std::string_view kRepeated = " [repeated ";
  const size_t at = text.find(kRepeated);
  if (at == std::string_view::npos) return text;
  Scan scan(text.substr(at + kRepeated.size()));
  return scan.natural() && scan.literal("x across cluster]") ? text.substr(0, at) : text;
}

}  // namespace

std::string without_colors(std::string_view line) {
  std::string out;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\x1b' || i + 1 >= line.size() || line[i + 1] != '[') {
      out += line[i];
      continue;
    }
    // Digits and semicolons, then a letter.
    const size_t end = line.find_first_not_of("0123456789;", i + 2);
    i = end == std::string_view::npos ? line.size() : end;
  }
  return out;
}

std::string_view without_launcher_prefix(std::string_view line) {
  line.remove_prefix(timestamp_length(line));
  Scan scan(line);
  if (scan.natural() && scan.rest().starts_with(": ")) return scan.rest().substr(2);
  const size_t tag = line.starts_with("[") ? line.find("]<std") : std::string_view::npos;
  if (tag != std::string_view::npos && tag < 80 && line.find(']') == tag) {
    const size_t end = line.find(">:", tag);
    if (end != std::string_view::npos && end - tag < 10) return line.substr(end + 2);
  }
  return line;
}

std::optional<Message> unplaced_message(std::string_view line) {
  for (size_t at = line.find(kMark); at != std::string_view::npos; at = line.find(kMark, at + 1)) {
    const auto level = level_of(line.substr(at + kMark.size()));
    if (!level) continue;
    Backwards back(line.substr(0, at));
    if (at > 0 && !back.take(' ') && !back.ends_with(':')) return std::nullopt;
    Message out;
    take_device_and_place(back, out);
    const std::string_view lead = trimmed(back.rest());
    if (!is_lead(lead)) return std::nullopt;
    out.level = *level;
    out.host = label_in(lead);
    out.text = without_repeats(line.substr(line.find(' ', at + kMark.size()) + 1));
    return out;
  }
  return std::nullopt;
}

LogLine split_line(std::string_view line, Hosts& hosts) {
  LogLine out{line, {}};
  for (size_t at = line.find(kMark); at != std::string_view::npos; at = line.find(kMark, at + 1)) {
    const auto level = level_of(line.substr(at + kMark.size()));
    if (!level) continue;
    auto prefix = prefix_before(line, at, hosts);
    if (!prefix) continue;
    Message& message = prefix->message;
    message.level = *level;
    message.text = line.substr(line.find(' ', at + kMark.size()) + 1);
    if (out.messages.empty()) {
      out.other = line.substr(0, prefix->begin);
    } else {
      std::string_view& last = out.messages.back().text;
      const auto end = static_cast<size_t>(line.data() + prefix->begin - last.data());
      last = last.substr(0, std::min(end, last.size()));
    }
    out.messages.push_back(message);
  }
  for (Message& message : out.messages) message.text = without_repeats(message.text);
  return out;
}

}  // namespace rehearse::traces::nccl_log
