// SPDX-License-Identifier: Apache-2.0
#include "traces/import/wire.hpp"

#include <fmt/format.h>

#include <cstring>

namespace rehearse::traces {
namespace {

constexpr size_t kWireWindow = 1 << 20;
constexpr size_t kLongestVarint = 10;

}  // namespace

bool WireReader::varint(uint64_t& value) {
  value = 0;
  for (size_t i = 0; i < left_.size() && i < kLongestVarint; ++i) {
    const auto byte = static_cast<unsigned char>(left_[i]);
    value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      left_.remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

bool WireReader::fixed(size_t width, uint64_t& value) {
  if (left_.size() < width) return false;
  value = 0;
  for (size_t i = 0; i < width; ++i) {
    value |= static_cast<uint64_t>(static_cast<unsigned char>(left_[i])) << (8 * i);
  }
  left_.remove_prefix(width);
  return true;
}

bool WireReader::next(WireField& field) {
  if (broken_ || left_.empty()) return false;
  uint64_t key = 0;
  broken_ = true;
  if (!varint(key) || (key >> 3) == 0 || (key >> 3) > 0x1fffffff) return false;
  field = {static_cast<uint32_t>(key >> 3), static_cast<WireType>(key & 7), 0, {}};
  switch (field.type) {
    case WireType::kVarint:
      if (!varint(field.value)) return false;
      break;
    case WireType::kFixed64:
      if (!fixed(8, field.value)) return false;
      break;
    case WireType::kFixed32:
      if (!fixed(4, field.value)) return false;
      break;
    case WireType::kBytes:
      if (!varint(field.value) || field.value > left_.size()) return false;
      field.bytes = left_.substr(0, field.value);
      left_.remove_prefix(field.value);
      break;
    default:
      return false;
  }
  broken_ = false;
  return true;
}

bool is_message(std::string_view bytes) {
  WireReader reader(bytes);
  WireField field;
  while (reader.next(field)) {
  }
  return !reader.broken();
}

bool append_varints(const WireField& field, std::vector<uint64_t>& out) {
  if (field.type == WireType::kVarint) {
    out.push_back(field.value);
    return true;
  }
  if (field.type != WireType::kBytes) return false;
  uint64_t value = 0;
  int shift = 0;
  for (const char c : field.bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (shift >= 70) return false;
    if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    shift += 7;
    if (byte >= 0x80) continue;
    out.push_back(value);
    value = 0;
    shift = 0;
  }
  return shift == 0;
}

WireStream::WireStream(Source& source, size_t most)
    : source_(source), most_(most), buffer_(kWireWindow) {}

Result<size_t> WireStream::fill(size_t wanted) {
  if (end_ - pos_ >= wanted) return end_ - pos_;
  std::memmove(buffer_.data(), buffer_.data() + pos_, end_ - pos_);
  base_ += pos_;
  end_ -= pos_;
  pos_ = 0;
  while (end_ < wanted && !ended_) {
    // Grown by what was read, not by what a length claims.
    if (end_ == buffer_.size()) buffer_.resize(2 * buffer_.size());
    auto got = source_.read(std::span(buffer_).subspan(end_));
    if (!got && !source_.cut()) return tl::unexpected(std::move(got).error());
    ended_ = !got || *got == 0;
    if (!ended_) end_ += *got;
  }
  return end_ - pos_;
}

Result<WireStream::Next> WireStream::varint(uint64_t& value) {
  RH_TRY(const size_t have, fill(kLongestVarint));
  if (have == 0) return source_.cut() ? Next::kCut : Next::kEnd;
  value = 0;
  for (size_t i = 0; i < have && i < kLongestVarint; ++i) {
    const auto byte = static_cast<unsigned char>(buffer_[pos_ + i]);
    value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      pos_ += i + 1;
      return Next::kOk;
    }
  }
  if (have < kLongestVarint) return Next::kCut;
  return fail(Code::kBadInput, "a number of more than ten bytes",
              fmt::format("{}: byte {}", source_.name(), offset()),
              "the file is damaged from here on; record or copy it again");
}

Result<WireStream::Next> WireStream::bytes(uint64_t length, std::string_view& out) {
  if (length > most_) {
    return fail(Code::kLimit,
                fmt::format("a record of {} bytes; none has more than {}", length, most_),
                fmt::format("{}: byte {}", source_.name(), offset()),
                "the file is damaged from here on; record or copy it again");
  }
  RH_TRY(const size_t have, fill(length));
  if (have < length) return Next::kCut;
  out = std::string_view(buffer_.data() + pos_, length);
  pos_ += length;
  return Next::kOk;
}

Result<WireStream::Next> WireStream::skip(uint64_t length) {
  while (length > 0) {
    RH_TRY(const size_t have, fill(1));
    if (have == 0) return Next::kCut;
    const size_t step = std::min<uint64_t>(have, length);
    pos_ += step;
    length -= step;
  }
  return Next::kOk;
}

Result<WireStream::Next> WireStream::field(WireField& field) {
  uint64_t key = 0;
  const uint64_t at = offset();
  RH_TRY(Next got, varint(key));
  if (got != Next::kOk) return got;
  field = {static_cast<uint32_t>(std::min<uint64_t>(key >> 3, UINT32_MAX)),
           static_cast<WireType>(key & 7),
           0,
           {}};
  std::string_view raw;
  switch (field.type) {
    case WireType::kVarint:
    case WireType::kBytes: {
      RH_TRY(got, varint(field.value));
      return got == Next::kEnd ? Next::kCut : got;
    }
    case WireType::kFixed64:
    case WireType::kFixed32: {
      RH_TRY(got, bytes(field.type == WireType::kFixed64 ? 8 : 4, raw));
      for (size_t i = 0; i < raw.size(); ++i) {
        field.value |= static_cast<uint64_t>(static_cast<unsigned char>(raw[i])) << (8 * i);
      }
      return got;
    }
    default:
      return fail(Code::kBadInput, fmt::format("no field of a message: key {}", key),
                  fmt::format("{}: byte {}", source_.name(), at),
                  "the file is damaged from here on; record or copy it again");
  }
}

}  // namespace rehearse::traces
