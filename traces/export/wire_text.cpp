// SPDX-License-Identifier: Apache-2.0
#include "traces/export/wire_text.hpp"

namespace rehearse::traces {

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

void put_number(std::string& out, uint32_t field, uint64_t value) {
  put_varint(out, uint64_t{field} << 3);
  put_varint(out, value);
}

void put_bytes(std::string& out, uint32_t field, std::string_view bytes) {
  put_varint(out, (uint64_t{field} << 3) | 2);
  put_varint(out, bytes.size());
  out += bytes;
}

void put_numbers(std::string& out, uint32_t field, std::span<const uint64_t> values) {
  if (values.empty()) return;
  std::string packed;
  for (const uint64_t value : values) put_varint(packed, value);
  put_bytes(out, field, packed);
}

}  // namespace rehearse::traces
