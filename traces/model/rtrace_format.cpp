// SPDX-License-Identifier: Apache-2.0
#include "traces/model/rtrace_format.hpp"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>
#include <google/protobuf/message_lite.h>
#include <google/protobuf/stubs/logging.h>
#include <xxhash.h>
#include <zstd.h>

#include <algorithm>
#include <vector>

#include "traces/model/utf8.hpp"

namespace rehearse::traces {
namespace {

constexpr int kZstdLevel = 3;

template <typename T>
void put(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>(value >> (8 * i));
}

template <typename T>
T get(std::string_view bytes, size_t at) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value |= static_cast<T>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  }
  return value;
}

}  // namespace

std::string to_bytes(const RecordHead& head) {
  std::string out;
  out.reserve(kRecordHeader);
  put(out, static_cast<uint32_t>(head.type));
  put(out, head.flags);
  put(out, head.length);
  put(out, head.hash);
  return out;
}

RecordHead head_from(std::string_view bytes) {
  return {static_cast<RecordType>(get<uint32_t>(bytes, 0)), get<uint32_t>(bytes, 4),
          get<uint64_t>(bytes, 8), get<uint64_t>(bytes, 16)};
}

std::string complaint_about(const RecordHead& head) {
  const auto type = static_cast<uint32_t>(head.type);
  if (type < static_cast<uint32_t>(RecordType::kHeader) ||
      type > static_cast<uint32_t>(RecordType::kEvidence)) {
    return fmt::format("record of unknown type {}", type);
  }
  if ((head.flags & ~kCompressed) != 0)
    return fmt::format("record with unknown flags {}", head.flags);
  if (head.length > kMaxPayload) {
    return fmt::format("record that claims {} bytes; none has more than {}", head.length,
                       kMaxPayload);
  }
  return {};
}

uint64_t hash_of(RecordType type, uint32_t flags, std::string_view payload) {
  const uint64_t seed = static_cast<uint64_t>(type) | static_cast<uint64_t>(flags) << 32;
  return XXH3_64bits_withSeed(payload.data(), payload.size(), seed);
}

std::string trailer_bytes(uint64_t index_offset) {
  std::string out;
  put(out, index_offset);
  out += kRtraceEnd;
  return out;
}

std::optional<uint64_t> index_offset_from(std::string_view bytes) {
  if (bytes.size() != kTrailer || bytes.substr(8) != kRtraceEnd) return std::nullopt;
  return get<uint64_t>(bytes, 0);
}

Result<std::string> pack(RecordType type, const google::protobuf::MessageLite& message) {
  const size_t size = message.ByteSizeLong();
  if (size > kMaxPayload) {
    return fail(Code::kLimit,
                fmt::format("a record of {} bytes is larger than a .rtrace file can hold ({})",
                            size, kMaxPayload));
  }
  std::string plain;
  plain.reserve(size);
  {
    google::protobuf::io::StringOutputStream stream(&plain);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeWithCachedSizes(&coded);
  }
  std::string record(kRecordHeader + ZSTD_compressBound(plain.size()), '\0');
  const size_t compressed =
      ZSTD_compress(record.data() + kRecordHeader, record.size() - kRecordHeader, plain.data(),
                    plain.size(), kZstdLevel);
  RecordHead head{type, 0, plain.size(), 0};
  // The second condition keeps what is written inside the limits of what is read.
  if (ZSTD_isError(compressed) == 0 && compressed < plain.size() &&
      plain.size() <= kFreeGrowth + kMaxRatio * compressed) {
    head.flags = kCompressed;
    head.length = compressed;
    record.resize(kRecordHeader + compressed);
  } else {
    record.resize(kRecordHeader);
    record += plain;
  }
  head.hash = hash_of(type, head.flags, std::string_view(record).substr(kRecordHeader));
  record.replace(0, kRecordHeader, to_bytes(head));
  return record;
}

Result<std::string_view> unpack(const RecordHead& head, std::string_view payload,
                                std::string& room) {
  if ((head.flags & kCompressed) == 0) return payload;
  const unsigned long long size = ZSTD_getFrameContentSize(payload.data(), payload.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN ||
      ZSTD_findFrameCompressedSize(payload.data(), payload.size()) != payload.size()) {
    return fail(Code::kBadInput, "record whose compressed frame is broken");
  }
  if (size > std::min(kMaxPayload, kFreeGrowth + kMaxRatio * payload.size())) {
    return fail(
        Code::kBadInput,
        fmt::format("record of {} bytes that claims to grow to {}; refused", payload.size(), size));
  }
  if (room.size() < size) room.resize(size);
  const size_t got = ZSTD_decompress(room.data(), size, payload.data(), payload.size());
  if (ZSTD_isError(got) != 0 || got != size) {
    return fail(Code::kBadInput, "record whose compressed frame is broken");
  }
  return std::string_view(room).substr(0, size);
}

bool parse(std::string_view bytes, google::protobuf::MessageLite& message) {
  const google::protobuf::LogSilencer silence;
  return message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

namespace {

using google::protobuf::FieldDescriptor;

void repair_strings(google::protobuf::Message& message, const FieldDescriptor* field) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  if (!field->is_repeated()) {
    const std::string text = reflection.GetString(message, field);
    if (!is_utf8(text)) reflection.SetString(&message, field, to_utf8(text));
    return;
  }
  for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
    const std::string text = reflection.GetRepeatedString(message, field, i);
    if (!is_utf8(text)) reflection.SetRepeatedString(&message, field, i, to_utf8(text));
  }
}

}  // namespace

// NOLINTNEXTLINE(misc-no-recursion): as deep as the schema
void repair_utf8(google::protobuf::Message& message) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->type() == FieldDescriptor::TYPE_STRING) repair_strings(message, field);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      repair_utf8(*reflection.MutableMessage(&message, field));
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      repair_utf8(*reflection.MutableRepeatedMessage(&message, field, i));
    }
  }
}

}  // namespace rehearse::traces
