// SPDX-License-Identifier: Apache-2.0
#include "traces/import/capture/records.hpp"

#include <cstring>

#include "traces/capture_file/encoder.hpp"

namespace rehearse::traces::capture {
namespace {

constexpr size_t kBuffer = 1 << 20;
constexpr size_t kLongest = capture_file::kLongestRecord + 4;
// Hashing of candidates in damaged stretches that a file is worth, beyond its own size.
constexpr uint64_t kMostSearched = 256 << 20;
constexpr size_t kCheckField = 5;

}  // namespace

Result<void> Records::fill() {
  if (buffer_.empty()) buffer_.resize(kBuffer);
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    base_ += begin_;
    end_ -= begin_;
    begin_ = 0;
  }
  while (end_ < buffer_.size() && !ended_) {
    auto got = source_.read(std::span(buffer_).subspan(end_));
    if (!got) {
      if (!source_.cut()) return tl::unexpected(std::move(got).error());
      ended_ = true;
    } else if (*got == 0) {
      ended_ = true;
    } else {
      end_ += *got;
    }
  }
  return {};
}

Records::Shape Records::shape(size_t at, size_t& length) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(buffer_.data());
  const size_t there = end_ - at;
  if (there == 0) return Shape::kShort;
  if (bytes[at] != (1 << 3 | 2)) return Shape::kWrong;
  size_t value = 0, used = 1;
  for (int shift = 0;; shift += 7) {
    if (used > 3) return Shape::kWrong;
    if (used >= there) return Shape::kShort;
    const uint8_t byte = bytes[at + used++];
    value |= static_cast<size_t>(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  if (value < kCheckField || value > capture_file::kLongestRecord) return Shape::kWrong;
  if (used < there && bytes[at + used] != (1 << 3 | 5)) return Shape::kWrong;
  if (there < used + value) return Shape::kShort;
  const uint8_t* const record = bytes + at + used;
  uint32_t check = 0;
  for (size_t i = 0; i < 4; ++i) check |= static_cast<uint32_t>(record[1 + i]) << (8 * i);
  const std::span<const uint8_t> content(record + kCheckField, value - kCheckField);
  if (at != begin_) searched_ += content.size();
  if (capture_file::check_of(content) != check) return Shape::kWrong;
  length = used + value;
  record_ = {reinterpret_cast<const char*>(record), value};
  return Shape::kRight;
}

Result<Records::Next> Records::next() {
  size_t at = begin_;
  bool searching = false;
  for (;;) {
    if (end_ - at < kLongest && !ended_) {
      const size_t ahead = at - begin_;
      if (searching && ahead > 0) {
        skipped_.bytes += ahead;
        begin_ = at;
      }
      if (auto filled = fill(); !filled) return tl::unexpected(filled.error());
      at = begin_;
    }
    if (at >= end_) break;
    size_t length = 0;
    const Shape s = shape(at, length);
    if (s == Shape::kRight) {
      skipped_.bytes += at - begin_;
      offset_ = base_ + at;
      begin_ = at + length;
      ++count_;
      return Next::kRecord;
    }
    // A record that the end of the file cuts; but a damaged length may only make it look so.
    if (!searching) {
      if (skipped_.stretches++ == 0) skipped_.first = base_ + at;
      searching = true;
    }
    if (searched_ > kMostSearched) {
      gave_up_ = true;
      break;
    }
    ++at;
  }
  if (searching) {
    --skipped_.stretches;
    tail_ = end_ - begin_;
  }
  begin_ = end_;
  return Next::kEnd;
}

}  // namespace rehearse::traces::capture
