// SPDX-License-Identifier: Apache-2.0
#include "traces/import/json_text.hpp"

#include <algorithm>
#include <array>

namespace rehearse::traces {
namespace {

constexpr std::array<std::string_view, 7> kNoNumbers = {"NaN",  "Infinity", "-Infinity", "nan",
                                                        "-nan", "inf",      "-inf"};

std::string without_nan(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!quoted) {
      const auto word = std::find_if(kNoNumbers.begin(), kNoNumbers.end(), [&](std::string_view w) {
        return text.substr(i, w.size()) == w;
      });
      if (word != kNoNumbers.end()) {
        out += "null";
        i += word->size() - 1;
        continue;
      }
    }
    if (text[i] == '"') quoted = !quoted;
    if (text[i] == '\\' && i + 1 < text.size()) out += text[i++];
    out += text[i];
  }
  return out;
}

simdjson::error_code again_without_nan(simdjson::dom::parser& parser, std::string_view text,
                                       simdjson::dom::element& out) {
  return parser.parse(without_nan(text)).get(out);
}

}  // namespace

bool has_top_key(std::string_view text, std::string_view key) {
  if (text.find(key) == std::string_view::npos) return false;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c != '"') continue;
    size_t close = i + 1;
    while (close < text.size() && text[close] != '"') close += text[close] == '\\' ? 2 : 1;
    if (close >= text.size()) return false;
    const size_t after = text.find_first_not_of(" \t\r\n", close + 1);
    if (depth == 1 && after != std::string_view::npos && text[after] == ':' &&
        text.substr(i + 1, close - i - 1) == key) {
      return true;
    }
    i = close;
  }
  return false;
}

simdjson::error_code parse_json(simdjson::dom::parser& parser, std::string_view text,
                                simdjson::dom::element& out) {
  const auto error = parser.parse(text.data(), text.size()).get(out);
  return error == simdjson::SUCCESS ? error : again_without_nan(parser, text, out);
}

simdjson::error_code parse_json(simdjson::dom::parser& parser, const Element& element,
                                simdjson::dom::element& out) {
  const auto error = parser.parse(element.text.data(), element.text.size(), false).get(out);
  return error == simdjson::SUCCESS ? error : again_without_nan(parser, element.text, out);
}

}  // namespace rehearse::traces
