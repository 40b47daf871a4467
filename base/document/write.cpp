// SPDX-License-Identifier: Apache-2.0
#include "base/document/write.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>

#include "base/document.hpp"

namespace rehearse {
namespace document {
namespace {

// Words that YAML readers take for something other than text.
bool looks_typed(std::string_view text) {
  std::string word(text);
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const char* taken : {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}) {
    if (word == taken) return true;
  }
  return std::isdigit(static_cast<unsigned char>(text.front())) != 0 &&
         text.find_first_not_of("0123456789abcdefxABCDEFX_.:+-") == text.npos;
}

bool is_plain(std::string_view text) {
  constexpr std::string_view kPunctuation = "_./+@%=^-:() ";
  if (text.empty() || text.size() > 200 || text.back() == ' ' || text.back() == ':') return false;
  const auto first = static_cast<unsigned char>(text.front());
  if (std::isalnum(first) == 0 && first != '_' && first != '/') return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x80 || (std::isalnum(c) == 0 && kPunctuation.find(text[i]) == kPunctuation.npos))
      return false;
    if (c == ':' && text[i + 1] == ' ') return false;
  }
  return !looks_typed(text);
}

std::string text_of(const Scalar& value, ScalarType type) {
  std::string text = show_scalar(value, type);
  return std::holds_alternative<std::string>(value) ? yaml_string(text) : text;
}

std::string trimmed(std::string text) {
  text.erase(0, text.find_first_not_of(" \n"));
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

class Writer {
 public:
  // The fields of a message, one key per line; returns false when there is nothing to write.
  bool fields(const Message& message, int indent) {
    const Descriptor& type = *message.GetDescriptor();
    const auto& reflection = *message.GetReflection();
    bool any = false;
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      const bool set = field.is_repeated() ? reflection.FieldSize(message, &field) > 0
                                           : reflection.HasField(message, &field);
      if (!set) continue;
      any = true;
      key(field.name(), indent);
      value(message, field, indent);
    }
    return any;
  }

  // What follows "key:" for one field.
  void value(const Message& message, const FieldDescriptor& field, int indent) {
    const auto& reflection = *message.GetReflection();
    if (field.is_map()) return map(message, field, indent);
    if (!field.is_repeated()) {
      if (is_message(field)) return nested(reflection.GetMessage(message, &field), indent);
      out_ += " " + text_of(get_scalar(message, field, kSingle), {&field, &field}) + "\n";
      return;
    }
    const int count = reflection.FieldSize(message, &field);
    if (is_message(field)) {
      out_ += "\n";
      for (int i = 0; i < count; ++i)
        item(reflection.GetRepeatedMessage(message, &field, i), indent + 2);
      return;
    }
    out_ += " [";
    for (int i = 0; i < count; ++i) {
      if (i > 0) out_ += ", ";
      out_ += text_of(get_scalar(message, field, i), {&field, &field});
    }
    out_ += "]\n";
  }

  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  void key(std::string_view name, int indent) {
    if (!after_dash_) out_.append(static_cast<size_t>(indent), ' ');
    after_dash_ = false;
    out_ += name;
    out_ += ':';
  }
  void nested(const Message& message, int indent) {
    const size_t before = out_.size();
    out_ += "\n";
    if (fields(message, indent + 2)) return;
    out_.resize(before);
    out_ += " {}\n";
  }
  void item(const Message& message, int indent) {
    out_.append(static_cast<size_t>(indent), ' ');
    out_ += "- ";
    after_dash_ = true;
    if (!fields(message, indent + 2)) out_ += "{}\n";
    after_dash_ = false;
  }
  void map(const Message& message, const FieldDescriptor& field, int indent) {
    const FieldDescriptor& key_field = *field.message_type()->map_key();
    const FieldDescriptor& value_field = *field.message_type()->map_value();
    const auto& reflection = *message.GetReflection();
    std::map<Scalar, const Message*> sorted;
    for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
      const Message& entry = reflection.GetRepeatedMessage(message, &field, i);
      sorted[get_scalar(entry, key_field, kSingle)] = &entry;
    }
    out_ += sorted.empty() ? " {}\n" : "\n";
    for (const auto& [k, entry] : sorted) {
      key(text_of(k, {&key_field, &key_field}), indent + 2);
      if (is_message(value_field)) {
        nested(entry->GetReflection()->GetMessage(*entry, &value_field), indent + 2);
      } else {
        out_ +=
            " " + text_of(get_scalar(*entry, value_field, kSingle), {&value_field, &field}) + "\n";
      }
    }
  }

  std::string out_;
  bool after_dash_ = false;
};

}  // namespace

std::string yaml_string(std::string_view text) {
  if (is_plain(text)) return std::string(text);
  std::string out = "\"";
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const auto next = [&](size_t k) {
      return i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0;
    };
    if (c == '"' || c == '\\') {
      out += {'\\', text[i]};
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c < 0x20 || c == 0x7f) {
      out += fmt::format("\\x{:02x}", c);
    } else if (c == 0xc2 && next(1) < 0xa0) {
      out += fmt::format("\\x{:02x}", next(1));
      ++i;
    } else if ((c == 0xe2 && next(1) == 0x80 && (next(2) | 1) == 0xa9) ||
               (c == 0xef && next(1) == 0xbb && next(2) == 0xbf)) {
      // Line separators and the byte order mark.
      out +=
          fmt::format("\\u{:04x}", ((c & 0x0f) << 12) | ((next(1) & 0x3f) << 6) | (next(2) & 0x3f));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out + "\"";
}

std::string write_field(const Message& owner, const FieldDescriptor& field) {
  const bool empty = field.is_repeated() && owner.GetReflection()->FieldSize(owner, &field) == 0;
  if (empty) return field.is_map() ? "{}" : "[]";
  Writer writer;
  writer.value(owner, field, -2);
  return trimmed(writer.take());
}

std::string write_element(const Message& owner, const FieldDescriptor& field, int index) {
  if (!is_message(field)) return text_of(get_scalar(owner, field, index), {&field, &field});
  const Message& element = owner.GetReflection()->GetRepeatedMessage(owner, &field, index);
  if (!field.is_map()) return trimmed(write_document(element));
  const FieldDescriptor& value = *field.message_type()->map_value();
  if (is_message(value)) return write_field(element, value);
  return text_of(get_scalar(element, value, kSingle), {&value, &field});
}

}  // namespace document

std::string write_document(const google::protobuf::Message& message) {
  document::Writer writer;
  if (!writer.fields(message, 0)) return "{}\n";
  return writer.take();
}

}  // namespace rehearse
