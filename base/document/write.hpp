// SPDX-License-Identifier: Apache-2.0
// Pieces of a written document.
#pragma once

#include <string>
#include <string_view>

#include "base/document/scalar.hpp"

namespace rehearse::document {

// A string as a YAML scalar, quoted when a reader could take it for anything else.
[[nodiscard]] std::string yaml_string(std::string_view text);

// The value of one field as YAML without its key.
[[nodiscard]] std::string write_field(const Message& owner, const FieldDescriptor& field);

// One element of a repeated field, or the value of the entry at `index` of a map field.
[[nodiscard]] std::string write_element(const Message& owner, const FieldDescriptor& field,
                                        int index);

}  // namespace rehearse::document
