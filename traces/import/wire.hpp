// SPDX-License-Identifier: Apache-2.0
// Protobuf's wire format without generated classes: importers of foreign messages read the fields they
// know and step over all others, in bounded memory and without believing any length. Not thread-safe.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "traces/import/source.hpp"

namespace rehearse::traces {

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct WireField {
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  uint64_t value = 0;      // of a varint or fixed number
  std::string_view bytes;  // of kBytes
};

// The fields of one message in memory, in order.
class WireReader {
 public:
  explicit WireReader(std::string_view message) : left_(message) {}
  // False at the end and when the bytes are no message; broken() tells which.
  [[nodiscard]] bool next(WireField& field);
  [[nodiscard]] bool broken() const { return broken_; }

 private:
  [[nodiscard]] bool varint(uint64_t& value);
  [[nodiscard]] bool fixed(size_t width, uint64_t& value);
  std::string_view left_;
  bool broken_ = false;
};

// True when the bytes are fields from first to last.
[[nodiscard]] bool is_message(std::string_view bytes);
// Appends the numbers of a repeated varint field, packed or not; false when they are broken.
[[nodiscard]] bool append_varints(const WireField& field, std::vector<uint64_t>& out);
// sint64 as it stands in a varint.
[[nodiscard]] constexpr int64_t zigzag(uint64_t value) {
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

// Numbers and bytes from a source, a window at a time.
class WireStream {
 public:
  // kEnd: no byte was left. kCut: the input ended inside.
  enum class Next { kOk, kEnd, kCut };
  // `source` outlives the stream; no run of bytes may be longer than `most`.
  WireStream(Source& source, size_t most);

  [[nodiscard]] Result<Next> varint(uint64_t& value);
  // `out` is valid until the next call. kLimit when `length` is above the limit.
  [[nodiscard]] Result<Next> bytes(uint64_t length, std::string_view& out);
  [[nodiscard]] Result<Next> skip(uint64_t length);
  // Key and number of a field; of kBytes only the length, as `value`: bytes() or skip() follows.
  [[nodiscard]] Result<Next> field(WireField& field);
  [[nodiscard]] uint64_t offset() const { return base_ + pos_; }
  [[nodiscard]] const Source& source() const { return source_; }

 private:
  // At least `wanted` bytes from pos_ on, as long as there are any.
  [[nodiscard]] Result<size_t> fill(size_t wanted);
  Source& source_;
  size_t most_;
  std::vector<char> buffer_;
  size_t pos_ = 0, end_ = 0;
  uint64_t base_ = 0;
  bool ended_ = false;
};

}  // namespace rehearse::traces
