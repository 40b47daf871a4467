// SPDX-License-Identifier: Apache-2.0
// A file with two YAML documents: what something is, and below a line `---` what it does, with placeholders. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace rehearse::faults {

struct TwoDocuments {
  std::string_view first;  // into the text that was split
  std::string second;      // blank lines before it keep the line numbers of the file
};

// A `---` at the very top only opens the first document. kBadInput at file:1:1 when there is no second one; `wanted`
// says what belongs there.
[[nodiscard]] Result<TwoDocuments> split_documents(std::string_view text, const std::string& file,
                                                   std::string_view wanted);

}  // namespace rehearse::faults
