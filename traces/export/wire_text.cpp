// SPDX-License-Identifier: Apache-2.0
#include "traces/export/wire_text.hpp"

namespace rehearse::traces {

void put_numbers(std::string& out, uint32_t field, std::span<const uint64_t> values) {
  if (values.empty()) return;
  std::string packed;
  for (const uint64_t value : values) put_varint(packed, value);
  put_bytes(out, field, packed);
}

}  // namespace rehearse::traces
