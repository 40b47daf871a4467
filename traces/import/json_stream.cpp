// SPDX-License-Identifier: Apache-2.0
#include "traces/import/json_stream.hpp"

#include <fmt/format.h>

#include <cstring>

namespace rehearse::traces {
namespace {

constexpr size_t kWindow = 256 << 10;  // small enough to stay in a core's cache
constexpr size_t kPadding = 128;

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

}  // namespace

JsonStream::JsonStream(Source& source, std::string_view key, const JsonLimits& limits)
    : source_(source), key_(key), limits_(limits), buffer_(kWindow + kPadding) {}

std::string JsonStream::members() const { return "{" + members_ + "}"; }

std::string JsonStream::where(uint64_t offset) const {
  return fmt::format("{}: byte {}, event {}", source_.name(), offset, count_);
}

void JsonStream::tell_trailing(Findings& findings) const {
  if (!trailing_) return;
  findings.add("trailing-content", Severity::kDataLoss, where(*trailing_),
               "something follows the end of the document and is not read; if the files of several "
               "ranks or runs were joined, give each by itself");
}

tl::unexpected<Error> JsonStream::unexpected_byte(std::string_view wanted) const {
  const auto c = static_cast<unsigned char>(buffer_[pos_]);
  const std::string seen = c >= 0x20 && c < 0x7f ? fmt::format("'{}'", static_cast<char>(c))
                                                 : fmt::format("byte 0x{:02x}", c);
  return fail(Code::kBadInput, fmt::format("not JSON: {} where {} should be", seen, wanted),
              where(offset()), "the file is damaged from here on; record or copy it again");
}

Result<JsonStream::Next> JsonStream::cut() {
  between_ = state_ == State::kElements && pos_ == end_;
  return Next::kCut;
}

Result<bool> JsonStream::more() {
  if (input_ended_) return false;
  if (pos_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + pos_, end_ - pos_);
    base_ += pos_;
    end_ -= pos_;
    pos_ = 0;
  }
  if (end_ + kPadding >= buffer_.size()) {
    const size_t grown = 2 * (buffer_.size() - kPadding);
    if (grown > limits_.max_element) {
      return fail(Code::kLimit,
                  fmt::format("one value is longer than {} MiB", limits_.max_element >> 20),
                  where(base_), "the file is damaged, or not a trace");
    }
    buffer_.resize(grown + kPadding);
  }
  auto got = source_.read(std::span(buffer_).subspan(end_, buffer_.size() - kPadding - end_));
  if (!got && !source_.cut()) return tl::unexpected(std::move(got).error());
  if (!got || *got == 0) {
    input_ended_ = true;
    return false;
  }
  end_ += *got;
  return true;
}

Result<bool> JsonStream::skip_blank() {
  for (;;) {
    while (pos_ < end_ && is_blank(buffer_[pos_])) ++pos_;
    if (pos_ < end_) return true;
    RH_TRY(const bool ok, more());
    if (!ok) return false;
  }
}

Result<bool> JsonStream::take_string(size_t& length) {
  size_t at = 1;
  bool escaped = false;
  for (;;) {
    for (; pos_ + at < end_; ++at) {
      const char c = buffer_[pos_ + at];
      if (escaped) {
        escaped = false;
      } else if (c == '\\') {
        escaped = true;
      } else if (c == '"') {
        length = at + 1;
        return true;
      }
    }
    RH_TRY(const bool ok, more());
    if (!ok) return false;
  }
}

Result<bool> JsonStream::take_value(size_t& length) {
  const char first = buffer_[pos_];
  if (first == '"') return take_string(length);
  if (first != '{' && first != '[') {
    for (size_t at = 0;;) {
      for (; pos_ + at < end_; ++at) {
        const char c = buffer_[pos_ + at];
        if (is_blank(c) || c == ',' || c == ']' || c == '}') {
          length = at;
          if (at == 0) return unexpected_byte("a value");
          return true;
        }
      }
      RH_TRY(const bool ok, more());
      if (!ok) return false;
    }
  }
  ScanState scan;
  size_t scanned = 0;
  for (;;) {
    const char* from = buffer_.data() + pos_ + scanned;
    const char* close = scan_value(from, buffer_.data() + end_, scan);
    if (scan.deepest > limits_.max_depth) {
      return fail(Code::kLimit,
                  fmt::format("values are nested more than {} deep", limits_.max_depth),
                  where(offset()), "no profiler writes this; the file is damaged or hostile");
    }
    if (close != nullptr) {
      length = static_cast<size_t>(close - (buffer_.data() + pos_));
      return true;
    }
    scanned = end_ - pos_;
    RH_TRY(const bool ok, more());
    if (!ok) return false;
  }
}

Result<JsonStream::Next> JsonStream::start() {
  RH_TRY(bool ok, skip_blank());
  if (ok && static_cast<unsigned char>(buffer_[pos_]) == 0xef) {  // byte order mark
    while (end_ - pos_ < 3) {
      RH_TRY(ok, more());
      if (!ok) return cut();
    }
    if (std::memcmp(buffer_.data() + pos_, "\xef\xbb\xbf", 3) == 0) pos_ += 3;
    RH_TRY(ok, skip_blank());
  }
  if (!ok) return cut();
  if (key_.empty()) {
    bare_ = saw_array_ = true;
    state_ = State::kElements;
    return Next::kElement;
  }
  if (buffer_[pos_] == '[') {
    bare_ = saw_array_ = true;
    state_ = State::kElements;
  } else if (buffer_[pos_] == '{') {
    state_ = State::kKey;
  } else {
    return unexpected_byte("{ or [");
  }
  ++pos_;
  return Next::kElement;
}

Result<JsonStream::Next> JsonStream::key() {
  RH_TRY(bool ok, skip_blank());
  if (!ok) return cut();
  if (buffer_[pos_] == ',') {
    ++pos_;
    return Next::kElement;
  }
  if (buffer_[pos_] == '}') {
    ++pos_;
    state_ = State::kBehind;
    return Next::kElement;
  }
  if (buffer_[pos_] != '"') return unexpected_byte("a key");
  size_t length = 0;
  RH_TRY(ok, take_string(length));
  if (!ok) return cut();
  const std::string name(buffer_.data() + pos_, length);
  pos_ += length;
  RH_TRY(ok, skip_blank());
  if (!ok) return cut();
  if (buffer_[pos_] != ':') return unexpected_byte("':'");
  ++pos_;
  RH_TRY(ok, skip_blank());
  if (!ok) return cut();
  if (name.size() == key_.size() + 2 && name.compare(1, key_.size(), key_) == 0) {
    if (buffer_[pos_] != '[') return unexpected_byte("the [ of " + key_);
    ++pos_;
    saw_array_ = true;
    state_ = State::kElements;
    return Next::kElement;
  }
  RH_TRY(ok, take_value(length));
  if (!ok) return cut();
  if (members_.size() + name.size() + length > limits_.max_members) {
    return fail(Code::kLimit, "the members around the events are too long", where(offset()),
                "the file is damaged, or not a trace");
  }
  if (!members_.empty()) members_ += ",";
  members_ += name;
  members_ += ":";
  members_.append(buffer_.data() + pos_, length);
  pos_ += length;
  return Next::kElement;
}

Result<JsonStream::Next> JsonStream::elements(Element& element) {
  for (;;) {
    while (pos_ < end_ && (is_blank(buffer_[pos_]) || buffer_[pos_] == ',')) ++pos_;
    if (pos_ < end_) break;
    RH_TRY(const bool ok, more());
    if (!ok && key_.empty() && !source_.cut()) {
      state_ = State::kDone;
      return Next::kEnd;
    }
    if (!ok) return cut();
  }
  if (buffer_[pos_] == ']' && key_.empty()) return unexpected_byte("{");
  if (buffer_[pos_] == ']') {
    ++pos_;
    state_ = bare_ ? State::kBehind : State::kKey;
    return Next::kEnd;
  }
  size_t length = 0;
  RH_TRY(const bool ok, take_value(length));
  if (!ok) return cut();
  element.text = std::string_view(buffer_.data() + pos_, length);
  element.offset = offset();
  element.number = count_++;
  pos_ += length;
  return Next::kElement;
}

// Reads to the end so that checksums are looked at and the hash of the input is whole.
Result<JsonStream::Next> JsonStream::behind() {
  for (;;) {
    RH_TRY(const bool ok, skip_blank());
    if (!ok) break;
    if (!trailing_) trailing_ = offset();
    pos_ = end_;
  }
  state_ = State::kDone;
  if (source_.cut()) return cut();
  return Next::kEnd;
}

Result<JsonStream::Next> JsonStream::next(Element& element) {
  if (state_ == State::kElements) {
    RH_TRY(const Next got, elements(element));
    if (got != Next::kEnd) return got;
  }
  for (;;) {
    Result<Next> step = Next::kEnd;
    switch (state_) {
      case State::kStart:
        step = start();
        break;
      case State::kKey:
        step = key();
        break;
      case State::kElements:
        step = elements(element);
        if (step && *step == Next::kEnd) break;
        return step;
      case State::kBehind:
        step = behind();
        break;
      case State::kDone:
        return Next::kEnd;
    }
    if (!step || *step == Next::kCut) return step;
    if (state_ == State::kDone) return Next::kEnd;
  }
}

}  // namespace rehearse::traces
