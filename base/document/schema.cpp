// SPDX-License-Identifier: Apache-2.0
#include "base/document/schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <span>
#include <vector>

#include "base/text.hpp"

namespace rehearse::document {
namespace {

constexpr std::string_view kUnspecified = "_UNSPECIFIED";

std::string offer(std::string_view word, std::span<const std::string> candidates,
                  std::string_view noun) {
  if (const std::string near = nearest(word, candidates); !near.empty()) {
    return fmt::format("did you mean '{}'?", near);
  }
  return fmt::format("the {} are {}", noun, join_words(candidates));
}

}  // namespace

Result<const FieldDescriptor*> find_field(const Descriptor& type, std::string_view key) {
  std::string name(key);
  std::replace(name.begin(), name.end(), '-', '_');
  if (const FieldDescriptor* field = type.FindFieldByName(name)) return field;
  std::vector<std::string> names;
  names.reserve(static_cast<size_t>(type.field_count()));
  for (int i = 0; i < type.field_count(); ++i) names.push_back(type.field(i)->name());
  return fail(Code::kBadInput, fmt::format("{} has no key {}", type.name(), in_quotes(key)), {},
              offer(key, names, "keys"));
}

std::string key_name(const FieldDescriptor& field) {
  std::string name = field.name();
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

Result<const EnumValueDescriptor*> find_value(const EnumDescriptor& type, std::string_view word) {
  std::string wanted(word);
  for (char& c : wanted)
    c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::vector<std::string> words;
  for (int i = 0; i < type.value_count(); ++i) {
    const EnumValueDescriptor& value = *type.value(i);
    if (value.name().ends_with(kUnspecified)) continue;
    words.push_back(word_of(value));
    if (words.back() == wanted) return &value;
  }
  return fail(Code::kBadInput,
              fmt::format("{} is not one of {}", in_quotes(word), join_words(words)), {},
              offer(word, words, "values"));
}

std::string word_of(const EnumValueDescriptor& value) {
  if (value.name().ends_with(kUnspecified)) return "unspecified";
  std::string word = value.name();
  for (char& c : word)
    c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return word;
}

pb::Unit unit_of(const FieldDescriptor& field) { return field.options().GetExtension(pb::unit); }

const FieldDescriptor* shorthand_of(const Descriptor& type) {
  if (!type.options().HasExtension(pb::shorthand)) return nullptr;
  return type.FindFieldByName(type.options().GetExtension(pb::shorthand));
}

const FieldDescriptor* like_of(const Descriptor& type) {
  const FieldDescriptor* field = type.FindFieldByName("like");
  const bool usable =
      field != nullptr && !field->is_repeated() && field->type() == FieldDescriptor::TYPE_STRING;
  return usable ? field : nullptr;
}

const FieldDescriptor* key_of(const FieldDescriptor& field) {
  if (!is_message(field)) return nullptr;
  const auto& options = field.options();
  const std::string name = options.HasExtension(pb::key) ? options.GetExtension(pb::key) : "name";
  const FieldDescriptor* key = field.message_type()->FindFieldByName(name);
  return key != nullptr && !key->is_repeated() && !is_message(*key) ? key : nullptr;
}

const FieldDescriptor* missing_field(const google::protobuf::Message& message) {
  const Descriptor& type = *message.GetDescriptor();
  const auto& reflection = *message.GetReflection();
  const auto given = [&](const FieldDescriptor* field) {
    return field != nullptr && (field->is_repeated() ? reflection.FieldSize(message, field) > 0
                                                     : reflection.HasField(message, field));
  };
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* field = type.field(i);
    const auto& options = field->options();
    const bool required = options.GetExtension(pb::required);
    const std::string& other = options.GetExtension(pb::required_unless);
    if ((!required && other.empty()) || given(field)) continue;
    if (required || !given(type.FindFieldByName(other))) return field;
  }
  return nullptr;
}

Error missing_error(const FieldDescriptor& field) {
  const std::string name = key_name(field), of = field.containing_type()->name();
  const FieldDescriptor* other =
      field.containing_type()->FindFieldByName(field.options().GetExtension(pb::required_unless));
  if (other == nullptr) {
    return {Code::kBadInput,
            fmt::format("{} of {} is missing", name, of),
            {},
            fmt::format("add {}: ...", name)};
  }
  return {Code::kBadInput,
          fmt::format("{} or {} of {} is missing", name, key_name(*other), of),
          {},
          fmt::format("add {}: ... or {}: ...", name, key_name(*other))};
}

}  // namespace rehearse::document
