// SPDX-License-Identifier: Apache-2.0
// Appends protobuf fields to a string: for files of foreign schemas that have no generated class here.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace rehearse::traces {

inline void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}
// A varint field; zero is written too.
inline void put_number(std::string& out, uint32_t field, uint64_t value) {
  put_varint(out, uint64_t{field} << 3);
  put_varint(out, value);
}
inline void put_bytes(std::string& out, uint32_t field, std::string_view bytes) {
  put_varint(out, (uint64_t{field} << 3) | 2);
  put_varint(out, bytes.size());
  out += bytes;
}
// Packed varints; nothing when there are none.
void put_numbers(std::string& out, uint32_t field, std::span<const uint64_t> values);

}  // namespace rehearse::traces
