// SPDX-License-Identifier: Apache-2.0
#include "faults/two_documents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "faults/placeholders.hpp"

namespace rehearse::faults {
namespace {

// Byte where the line `---` between the two documents begins, or npos.
size_t find_separator(std::string_view text) {
  bool content = false;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())))
      line.remove_suffix(1);
    if (line == "---" && content) return begin;
    content = content || (!line.empty() && line.front() != '#' && line != "---");
    begin = end + 1;
  }
  return text.npos;
}

}  // namespace

Result<TwoDocuments> split_documents(std::string_view text, const std::string& file,
                                     std::string_view wanted) {
  const size_t separator = find_separator(text);
  if (separator == text.npos) {
    return bad_input("no second document", place_in(text, 0, file),
                     fmt::format("add a line `---` with {} below it", wanted));
  }
  TwoDocuments out{.first = text.substr(0, separator), .second = {}};
  out.second.assign(static_cast<size_t>(std::count(out.first.begin(), out.first.end(), '\n')) + 1,
                    '\n');
  const size_t line_end = text.find('\n', separator);
  if (line_end != text.npos) out.second += text.substr(line_end + 1);
  return out;
}

}  // namespace rehearse::faults
