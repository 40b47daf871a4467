// SPDX-License-Identifier: Apache-2.0
#include "base/document.hpp"
#include "base/document/schema.hpp"

namespace rehearse {

Result<void> check_required(const google::protobuf::Message& message, const std::string& where) {
  using namespace document;
  if (const FieldDescriptor* missing = missing_field(message)) {
    Error error = missing_error(*missing);
    error.where = where;
    return tl::unexpected(std::move(error));
  }
  const auto& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> set;
  reflection.ListFields(message, &set);
  for (const FieldDescriptor* field : set) {
    if (!is_message(*field)) continue;
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const auto& below = field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                               : reflection.GetMessage(message, field);
      if (auto given = check_required(below, where); !given) return given;
    }
  }
  return {};
}

}  // namespace rehearse
