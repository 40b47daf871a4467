// SPDX-License-Identifier: Apache-2.0
#include "base/packed.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <array>

namespace rehearse {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr int kLevel = 6;

std::string to_base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t n = std::min<size_t>(3, bytes.size() - i);
    uint32_t word = 0;
    for (size_t k = 0; k < 3; ++k) {
      word = word << 8 | (k < n ? static_cast<unsigned char>(bytes[i + k]) : 0);
    }
    for (size_t k = 0; k < 4; ++k) {
      out += k <= n ? kDigits[word >> (18 - 6 * k) & 63] : '=';
    }
  }
  return out;
}

// False when the text is not base64.
bool from_base64(std::string_view text, std::string& out) {
  static const std::array<int16_t, 256> kValues = [] {
    std::array<int16_t, 256> values{};
    values.fill(-1);
    for (size_t i = 0; i < kDigits.size(); ++i) {
      values[static_cast<unsigned char>(kDigits[i])] = static_cast<int16_t>(i);
    }
    return values;
  }();
  if (text.size() % 4 != 0) return false;
  while (text.ends_with('=') && text.size() % 4 != 2) text.remove_suffix(1);
  out.reserve(text.size() / 4 * 3 + 2);
  uint32_t word = 0;
  int bits = 0;
  for (const char c : text) {
    const int value = kValues[static_cast<unsigned char>(c)];
    if (value < 0) return false;
    word = word << 6 | static_cast<uint32_t>(value);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    out += static_cast<char>(word >> bits & 255);
  }
  return true;
}

}  // namespace

std::string pack(std::string_view bytes) {
  uLongf size = compressBound(bytes.size());
  std::string deflated(size, '\0');
  // Cannot fail: the level is valid and the room is enough.
  compress2(reinterpret_cast<Bytef*>(deflated.data()), &size,
            reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), kLevel);
  deflated.resize(size);
  return to_base64(deflated);
}

Result<std::string> unpack(std::string_view text, uint64_t limit, const std::string& where) {
  const auto broken = [&] {
    return fail(Code::kBadInput, "packed data are damaged", where, "make the document again");
  };
  std::string deflated;
  if (!from_base64(text, deflated)) return broken();
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) return fail(Code::kInternal, "zlib does not start");
  stream.next_in = reinterpret_cast<Bytef*>(deflated.data());
  stream.avail_in = static_cast<uInt>(deflated.size());
  std::string out;
  std::string part(1 << 16, '\0');
  int state = Z_OK;
  while (state == Z_OK && out.size() <= limit) {
    stream.next_out = reinterpret_cast<Bytef*>(part.data());
    stream.avail_out = static_cast<uInt>(part.size());
    state = inflate(&stream, Z_NO_FLUSH);
    out.append(part, 0, part.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (out.size() > limit) {
    return fail(Code::kLimit, fmt::format("packed data hold more than {} bytes", limit), where,
                "make the document with fewer ranks or steps");
  }
  if (state != Z_STREAM_END) return broken();
  return out;
}

}  // namespace rehearse
