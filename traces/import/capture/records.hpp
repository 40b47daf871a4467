// SPDX-License-Identifier: Apache-2.0
// Records of a capture file one by one, in bounded memory. A record whose check is wrong, or that does not
// begin like one, is skipped up to the next that is right.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "traces/import/source.hpp"

namespace rehearse::traces::capture {

class Records {
 public:
  explicit Records(Source& source) : source_(source) {}

  enum class Next { kRecord, kEnd };
  // The next right record; its bytes are those of a CaptureRecord and stay valid until the next call. An
  // error is one of reading the file, never one of its content; a compressed file that ends early ends here.
  [[nodiscard]] Result<Next> next();
  [[nodiscard]] std::string_view record() const { return record_; }
  [[nodiscard]] uint64_t offset() const { return offset_; }  // of the record, its tag included
  [[nodiscard]] uint64_t count() const { return count_; }    // records given

  // What was skipped in the middle, and what the file ends with that is no whole record.
  struct Skipped {
    uint64_t stretches = 0;
    uint64_t bytes = 0;
    uint64_t first = 0;  // offset of the first
  };
  [[nodiscard]] const Skipped& skipped() const { return skipped_; }
  [[nodiscard]] uint64_t tail() const { return tail_; }
  // Looking for the next right record took too long; the rest of the file was not looked at.
  [[nodiscard]] bool gave_up() const { return gave_up_; }

 private:
  enum class Shape { kRight, kWrong, kShort };
  // Of the bytes at `at`; `length` is that of the whole record when it is right.
  [[nodiscard]] Shape shape(size_t at, size_t& length);
  [[nodiscard]] Result<void> fill();

  Source& source_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;
  uint64_t base_ = 0;  // offset of buffer_[0] in the file
  bool ended_ = false;
  std::string_view record_;
  uint64_t offset_ = 0, count_ = 0;
  Skipped skipped_;
  uint64_t tail_ = 0;
  uint64_t searched_ = 0;  // bytes hashed while looking for a right record
  bool gave_up_ = false;
};

}  // namespace rehearse::traces::capture
