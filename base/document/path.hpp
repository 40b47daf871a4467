// SPDX-License-Identifier: Apache-2.0
// Paths into a message (grammar: base/document.hpp) and the places they select.
#pragma once

#include <google/protobuf/message.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/document/scalar.hpp"
#include "base/document/schema.hpp"

namespace rehearse::document {

constexpr size_t kMaxPathBytes = 4096;

// One selected place: a field of the message reached by `steps`, one of its elements, or a map
// entry.
struct Target {
  struct Step {
    const FieldDescriptor* field;
    int index;  // kSingle or an element
  };
  std::vector<Step> steps;
  const FieldDescriptor* field = nullptr;
  int index = kSingle;             // an element; kSingle: the whole field
  std::optional<std::string> key;  // a map entry, which may not exist yet
};

// All places the path selects, in order; never empty. Looks only; unset messages count as empty
// ones.
[[nodiscard]] Result<std::vector<Target>> resolve(const Message& message, std::string_view path);

// The indices that the text between brackets selects in a repeated field, ascending. Errors have no
// place.
[[nodiscard]] Result<std::vector<int>> select(const Message& owner, const FieldDescriptor& field,
                                              std::string_view selector);

}  // namespace rehearse::document
