// SPDX-License-Identifier: Apache-2.0
// How one record of a .rtrace file looks in bytes: shared by the writer and the reader
// (traces/model/rtrace.hpp tells the layout of the whole file). Pure functions; no state is shared.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace google::protobuf {
class MessageLite;
class Message;
}  // namespace google::protobuf

namespace rehearse::traces {

constexpr std::string_view kRtraceMagic = "RTRACE";
constexpr std::string_view kRtraceEnd = "RTRACEND";
constexpr uint8_t kRtraceMajor = 1;
constexpr uint8_t kRtraceMinor = 0;
constexpr uint64_t kFileStart = 8;      // magic and version
constexpr uint64_t kRecordHeader = 24;  // type, flags, length, hash
constexpr uint64_t kTrailer = 16;       // offset of the index, end mark

// Stored in files: never reuse a number.
enum class RecordType : uint32_t {
  kHeader = 1,
  kStrings = 2,
  kCommunicator = 3,
  kRank = 4,
  kOperations = 5,
  kIndex = 6,
  kEvidence = 7,
};

constexpr uint32_t kCompressed = 1;  // the only flag
constexpr uint32_t kOperationsPerBlock = 65'536;
// Bytes of one payload, compressed or not. A full block of the least compressible operations is 8
// MiB.
constexpr uint64_t kMaxPayload = uint64_t{32} << 20;
// A payload may say that it grows to this much plus kMaxRatio times its compressed size, never
// more.
constexpr uint64_t kFreeGrowth = uint64_t{1} << 20;
constexpr uint64_t kMaxRatio = 4096;

struct RecordHead {
  RecordType type = RecordType::kHeader;
  uint32_t flags = 0;
  uint64_t length = 0;  // bytes of payload
  uint64_t hash = 0;
};

[[nodiscard]] std::string to_bytes(const RecordHead& head);
// Nothing is checked but that there are enough bytes; `bytes` holds at least kRecordHeader.
[[nodiscard]] RecordHead head_from(std::string_view bytes);
// "" when type, flags and length are ones a writer makes, else what is wrong.
[[nodiscard]] std::string complaint_about(const RecordHead& head);
// xxh3 of the payload, seeded with type and flags so that a changed head is seen too.
[[nodiscard]] uint64_t hash_of(RecordType type, uint32_t flags, std::string_view payload);

[[nodiscard]] std::string trailer_bytes(uint64_t index_offset);
// The offset named by a trailer; nothing when `bytes` is none.
[[nodiscard]] std::optional<uint64_t> index_offset_from(std::string_view bytes);

// A whole record, head and payload; the payload is compressed when that makes it smaller. The same
// message gives the same bytes. kLimit when the message is larger than kMaxPayload.
[[nodiscard]] Result<std::string> pack(RecordType type,
                                       const google::protobuf::MessageLite& message);

// The message bytes of a payload whose hash was checked: `payload` itself, or `room` after
// decompression. kBadInput when the frame is broken or grows beyond the limits above.
[[nodiscard]] Result<std::string_view> unpack(const RecordHead& head, std::string_view payload,
                                              std::string& room);
// Parses without printing; false when the bytes are no such message.
[[nodiscard]] bool parse(std::string_view bytes, google::protobuf::MessageLite& message);

// Replaces bytes that are not UTF-8 by U+FFFD in every string field: protobuf refuses to read them
// back.
void repair_utf8(google::protobuf::Message& message);

}  // namespace rehearse::traces
