// SPDX-License-Identifier: Apache-2.0
// Appends protobuf fields to a string: for files of foreign schemas that have no generated class here.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace rehearse::traces {

void put_varint(std::string& out, uint64_t value);
// A varint field; zero is written too.
void put_number(std::string& out, uint32_t field, uint64_t value);
void put_bytes(std::string& out, uint32_t field, std::string_view bytes);
// Packed varints; nothing when there are none.
void put_numbers(std::string& out, uint32_t field, std::span<const uint64_t> values);

}  // namespace rehearse::traces
