// SPDX-License-Identifier: Apache-2.0
#include "cli/csv.hpp"

namespace rehearse::cli {

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

}  // namespace rehearse::cli
