// SPDX-License-Identifier: Apache-2.0
// JSON as programs write it, told and parsed by whoever reads documents whole: numbers that JSON has no word
// for (Python's NaN and Infinity, C's nan and inf) are null.
#pragma once

#include <simdjson.h>

#include <string>
#include <string_view>

#include "traces/import/json_stream.hpp"

namespace rehearse::traces {

// Whether `key` is a key of the outermost object, or of one of several that stand one behind the other, as far
// as the text goes.
[[nodiscard]] bool has_top_key(std::string_view text, std::string_view key);

// `out` is valid until `parser` parses again.
[[nodiscard]] simdjson::error_code parse_json(simdjson::dom::parser& parser, std::string_view text,
                                              simdjson::dom::element& out);
// The same without a copy: an element has bytes behind it.
[[nodiscard]] simdjson::error_code parse_json(simdjson::dom::parser& parser, const Element& element,
                                              simdjson::dom::element& out);

}  // namespace rehearse::traces
