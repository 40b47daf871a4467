// SPDX-License-Identifier: Apache-2.0
// Encodes records of a capture file into memory of the caller: no allocation, no locks, no exceptions, no
// library but the compiler's, so that it can live in a shared object inside any process. One Encoder per
// thread; its bytes are whole records at any moment and may be written in any order with those of others,
// behind one Session record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "traces/capture_file/records.hpp"

namespace rehearse::capture_file {

inline constexpr std::string_view kMagic = "rehearse-capture";
inline constexpr uint32_t kVersion = 1;
// No record is longer; texts are clipped (without cutting a UTF-8 character) so that none can be.
constexpr size_t kLongestRecord = 16383;
constexpr size_t kLongestText = 15000;  // of one String, Message or value of a Variable
constexpr size_t kLongestName = 255;    // of every other text
constexpr size_t kMostCosts = 64;

// The check of a record over the bytes behind its check field.
[[nodiscard]] uint32_t check_of(std::span<const uint8_t> bytes);

class Encoder {
 public:
  // Over memory that outlives the encoder; a page or more.
  constexpr explicit Encoder(std::span<uint8_t> memory) : memory_(memory) {}

  // Each appends one record, or returns false and leaves everything as it was when there is not enough
  // room: write bytes() out, clear(), and put it again.
  bool put(const Session& r);
  bool put(const String& r);
  bool put(const Kernel& r);
  bool put(const Api& r);
  bool put(const Copy& r);
  bool put(const Fill& r);
  bool put(const Wait& r);
  bool put(const Event& r);
  bool put(const Correlation& r);
  bool put(const Range& r);
  bool put(const NcclStart& r);
  bool put(const NcclState& r);
  bool put(const NcclStop& r);
  bool put(const Communicator& r);
  bool put(const Graph& r);
  bool put(const Overhead& r);
  bool put(const Memory& r);
  bool put(const Thread& r);
  bool put(const Device& r);
  bool put(const Variable& r);
  bool put(const Clock& r);
  bool put(const Drops& r);
  bool put(const Message& r);
  bool put(const Tuning& r);
  bool put(const End& r);
  bool put(const Library& r);

  [[nodiscard]] std::span<const uint8_t> bytes() const { return memory_.first(used_); }
  [[nodiscard]] uint64_t records() const { return records_; }  // put so far, clear() or not
  void clear() { used_ = 0; }

 private:
  [[nodiscard]] uint8_t* room_for(uint32_t field, size_t message_bytes);
  bool close(uint32_t field, uint8_t* end);

  std::span<uint8_t> memory_;
  size_t used_ = 0;
  uint64_t records_ = 0;
};

}  // namespace rehearse::capture_file
