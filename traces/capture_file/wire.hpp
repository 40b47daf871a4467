// SPDX-License-Identifier: Apache-2.0
// Fields of a protobuf message, written forward into memory whose size the caller has checked. Fields
// with the value 0 (and texts that are empty) are left out, as proto3 does. No allocation.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace rehearse::capture_file {

// Bytes that one number takes at most, tag included.
constexpr size_t kWidestNumber = 12;

class Wire {
 public:
  explicit Wire(uint8_t* at) : at_(at) {}
  [[nodiscard]] uint8_t* end() const { return at_; }

  void number(uint32_t field, uint64_t value) {
    if (value == 0) return;
    varint(field << 3);
    varint(value);
  }
  // int32 and int64: negative numbers take ten bytes.
  void integer(uint32_t field, int64_t value) { number(field, static_cast<uint64_t>(value)); }
  // sint64.
  void zigzag(uint32_t field, int64_t value) {
    number(field, (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
  }
  // A field with presence: written when it is not negative, 0 too.
  void present(uint32_t field, int64_t value) {
    if (value < 0) return;
    varint(field << 3);
    varint(static_cast<uint64_t>(value));
  }
  void text(uint32_t field, std::string_view value) {
    if (value.empty()) return;
    varint(field << 3 | 2);
    varint(value.size());
    std::memcpy(at_, value.data(), value.size());
    at_ += value.size();
  }
  void packed(uint32_t field, std::span<const float> values) {
    if (values.empty()) return;
    varint(field << 3 | 2);
    varint(values.size_bytes());
    std::memcpy(at_, values.data(), values.size_bytes());
    at_ += values.size_bytes();
  }

 private:
  void varint(uint64_t value) {
    while (value >= 0x80) {
      *at_++ = static_cast<uint8_t>(value | 0x80);
      value >>= 7;
    }
    *at_++ = static_cast<uint8_t>(value);
  }
  uint8_t* at_;
};

}  // namespace rehearse::capture_file
