// SPDX-License-Identifier: Apache-2.0
// What the descriptors and options of a message say about its documents: names, units, bounds.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/proto/options.pb.h"

namespace rehearse::document {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;

// The field a key names (`-` = `_`), or an error that offers the nearest one.
[[nodiscard]] Result<const FieldDescriptor*> find_field(const Descriptor& type,
                                                        std::string_view key);

// The field's key as people write it: slow_rank -> "slow-rank".
[[nodiscard]] std::string key_name(const FieldDescriptor& field);

// The value a word names (kebab-case, case-blind), or an error that offers the nearest one.
[[nodiscard]] Result<const EnumValueDescriptor*> find_value(const EnumDescriptor& type,
                                                            std::string_view word);
// RAIL_OPTIMISED -> "rail-optimised"; X_UNSPECIFIED -> "unspecified".
[[nodiscard]] std::string word_of(const EnumValueDescriptor& value);

[[nodiscard]] pb::Unit unit_of(const FieldDescriptor& field);
// The field that a scalar sets when it stands for the whole message; null: none.
[[nodiscard]] const FieldDescriptor* shorthand_of(const Descriptor& type);
// The string field `like`; null: none.
[[nodiscard]] const FieldDescriptor* like_of(const Descriptor& type);
// The field by which an element of the repeated message field is named; null: none.
[[nodiscard]] const FieldDescriptor* key_of(const FieldDescriptor& field);

// A field that has to be given (options required, required_unless) and is not; null: none. Looks at the message alone,
// not below it.
[[nodiscard]] const FieldDescriptor* missing_field(const google::protobuf::Message& message);
// What is said of it; without a place.
[[nodiscard]] Error missing_error(const FieldDescriptor& field);

[[nodiscard]] inline bool is_message(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
}

}  // namespace rehearse::document
