// SPDX-License-Identifier: Apache-2.0
// Recorded names are bytes; JSON, protobuf strings and terminals want UTF-8. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace rehearse::traces {

[[nodiscard]] bool is_utf8(std::string_view text);
// `text` with each byte that is in no well-formed sequence replaced by U+FFFD.
[[nodiscard]] std::string to_utf8(std::string_view text);
// At most `bytes` of `text`, without half a character at the end.
[[nodiscard]] std::string_view clipped(std::string_view text, size_t bytes);

}  // namespace rehearse::traces
