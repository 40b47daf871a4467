// SPDX-License-Identifier: Apache-2.0
// One scalar of a message: between the text of a document and the value of a field.
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/document/node.hpp"
#include "base/document/schema.hpp"
#include "base/error.hpp"

namespace rehearse::document {

using google::protobuf::Message;

// Every integer field travels in the integer of its signedness, enums as int64_t, float as double.
using Scalar = std::variant<bool, int64_t, uint64_t, double, std::string>;

// Positions in a repeated field that are not an element; a singular field is kSingle.
constexpr int kSingle = -1;
constexpr int kAppend = -2;

// `field` gives the type and `options` unit and bounds; they differ only for the values of a map.
struct ScalarType {
  const FieldDescriptor* field;
  const FieldDescriptor* options;
  Dialect dialect = Dialect::kYaml;
};

// Checks type, unit and bounds. Errors have no place yet.
[[nodiscard]] Result<Scalar> parse_scalar(std::string_view text, ScalarType type);

void put_scalar(Message& message, const FieldDescriptor& field, int index, Scalar value);
[[nodiscard]] Scalar get_scalar(const Message& message, const FieldDescriptor& field, int index);

// The text that parses back to the value, quantities with their unit. Strings come as they are.
[[nodiscard]] std::string show_scalar(const Scalar& value, ScalarType type);

// The word of an enum number; unknown numbers as digits.
[[nodiscard]] std::string show_enum(const EnumDescriptor& type, int64_t number);

}  // namespace rehearse::document
