// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "base/document.hpp"
#include "base/document/write.hpp"

namespace rehearse {
namespace document {
namespace {

std::string flow(const Message& message);

// Inside brackets a comma or a brace ends a plain scalar; yaml_string quotes those already.
std::string flow(const Scalar& value, ScalarType type) {
  std::string text = show_scalar(value, type);
  return std::holds_alternative<std::string>(value) ? yaml_string(text) : text;
}

std::string flow_map(const Message& message, const FieldDescriptor& field) {
  const FieldDescriptor& key = *field.message_type()->map_key();
  const FieldDescriptor& value = *field.message_type()->map_value();
  const auto& reflection = *message.GetReflection();
  std::map<Scalar, const Message*> sorted;
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    const Message& entry = reflection.GetRepeatedMessage(message, &field, i);
    sorted[get_scalar(entry, key, kSingle)] = &entry;
  }
  std::string out;
  for (const auto& [name, entry] : sorted) {
    if (!out.empty()) out += ", ";
    out += flow(name, {&key, &key}) + ": ";
    out += is_message(value) ? flow(entry->GetReflection()->GetMessage(*entry, &value))
                             : flow(get_scalar(*entry, value, kSingle), {&value, &field});
  }
  return "{" + out + "}";
}

std::string flow(const Message& message, const FieldDescriptor& field) {
  const auto& reflection = *message.GetReflection();
  if (field.is_map()) return flow_map(message, field);
  if (!field.is_repeated()) {
    return is_message(field) ? flow(reflection.GetMessage(message, &field))
                             : flow(get_scalar(message, field, kSingle), {&field, &field});
  }
  std::string out;
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    if (!out.empty()) out += ", ";
    out += is_message(field) ? flow(reflection.GetRepeatedMessage(message, &field, i))
                             : flow(get_scalar(message, field, i), {&field, &field});
  }
  return "[" + out + "]";
}

std::vector<const FieldDescriptor*> set_fields(const Message& message) {
  const Descriptor& type = *message.GetDescriptor();
  const auto& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> out;
  // In the order of the schema, as a document has them.
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* field = type.field(i);
    const bool set = field->is_repeated() ? reflection.FieldSize(message, field) > 0
                                          : reflection.HasField(message, field);
    if (set) out.push_back(field);
  }
  return out;
}

std::string flow_fields(const Message& message, const std::vector<const FieldDescriptor*>& fields) {
  std::string out;
  for (const FieldDescriptor* field : fields) {
    if (!out.empty()) out += ", ";
    out += key_name(*field) + ": " + flow(message, *field);
  }
  return out;
}

std::string flow(const Message& message) {
  const auto fields = set_fields(message);
  const FieldDescriptor* shorthand = shorthand_of(*message.GetDescriptor());
  if (fields.size() == 1 && fields.front() == shorthand) return flow(message, *shorthand);
  return "{" + flow_fields(message, fields) + "}";
}

}  // namespace
}  // namespace document

std::string write_line(const google::protobuf::Message& message) {
  const auto fields = document::set_fields(message);
  if (fields.size() != 1) return "{" + document::flow_fields(message, fields) + "}";
  return document::flow_fields(message, fields);
}

}  // namespace rehearse
