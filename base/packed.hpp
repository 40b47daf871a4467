// SPDX-License-Identifier: Apache-2.0
// Bytes as text that fits into a document: deflated (zlib), then in base64. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace rehearse {

[[nodiscard]] std::string pack(std::string_view bytes);

// The reverse of pack(). kBadInput when the text is none of ours, kLimit when it holds more than `limit` bytes.
[[nodiscard]] Result<std::string> unpack(std::string_view text, uint64_t limit,
                                         const std::string& where);

}  // namespace rehearse
