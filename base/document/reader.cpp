// SPDX-License-Identifier: Apache-2.0
#include "base/document/reader.hpp"

#include <fmt/format.h>

#include <map>

#include "base/text.hpp"

namespace rehearse::document {
namespace {

// Bytes of text or catalogue content that count as much as one node.
constexpr size_t kBytesPerVisit = 64;

std::string_view noun(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return "nothing";
    case Node::Kind::kScalar:
      return "a single value";
    case Node::Kind::kSequence:
      return "a list";
    case Node::Kind::kMapping:
      return "a mapping";
  }
  return "nothing";
}

std::string some_keys(const Descriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.field_count() && i < 8; ++i) names.push_back(type.field(i)->name());
  return fmt::format("write keys such as {}", join_words(names));
}

}  // namespace

tl::unexpected<Error> Reader::placed(const Node& node, Error error) const {
  if (error.where.empty()) error.where = place(node, name_);
  return tl::unexpected(std::move(error));
}

tl::unexpected<Error> Reader::refuse(const Node& node, std::string what, std::string fix) const {
  return placed(node, Error{Code::kBadInput, std::move(what), {}, std::move(fix)});
}

Result<void> Reader::visit(const Node& node, size_t weight) {
  visited_ += 1 + weight / kBytesPerVisit;
  if (visited_ <= kMaxNodes) return {};
  return placed(node, Error{Code::kLimit,
                            fmt::format("the document expands to more than {} values", kMaxNodes),
                            {},
                            "use fewer aliases or split it"});
}

Result<void> Reader::check_given(const Node& node, const Message& message) const {
  const FieldDescriptor* missing = missing_field(message);
  if (missing == nullptr) return {};
  return placed(node, missing_error(*missing));
}

Result<void> Reader::read_message(const Node& node, Message& message) {
  if (auto ok = visit(node, 0); !ok) return ok;
  const Descriptor& type = *message.GetDescriptor();
  if (depth_ >= kMaxDocumentDepth) {
    return placed(node, Error{Code::kLimit,
                              fmt::format("nested deeper than {} levels", kMaxDocumentDepth),
                              {},
                              "flatten the document"});
  }
  switch (node.kind) {
    case Node::Kind::kNull:
      return {};
    case Node::Kind::kMapping: {
      ++depth_;
      auto result = read_mapping(node, message);
      --depth_;
      return result ? check_given(node, message) : result;
    }
    case Node::Kind::kScalar:
      if (const FieldDescriptor* field = shorthand_of(type)) {
        auto result =
            field == like_of(type) ? read_like(node, message) : read_field(node, message, *field);
        return result ? check_given(node, message) : result;
      }
      [[fallthrough]];
    case Node::Kind::kSequence:
      return refuse(node, fmt::format("{} must be a mapping, not {}", type.name(), noun(node)),
                    some_keys(type));
  }
  return {};
}

Result<std::vector<Reader::Entry>> Reader::entries_of(const Node& node, const Descriptor& type) {
  std::vector<Entry> entries;
  std::map<const FieldDescriptor*, const Node*> seen;
  std::map<const google::protobuf::OneofDescriptor*, const FieldDescriptor*> chosen;
  for (size_t i = 0; i + 1 < node.children.size(); i += 2) {
    const Node& key = *node.children[i];
    if (key.kind != Node::Kind::kScalar) {
      return refuse(key, fmt::format("a key of {} must be a name, not {}", type.name(), noun(key)),
                    some_keys(type));
    }
    auto field = find_field(type, key.text);
    if (!field) return placed(key, std::move(field).error());
    if (const auto [first, fresh] = seen.emplace(*field, &key); !fresh) {
      return refuse(key,
                    fmt::format("{} is written twice, first at {}", in_quotes(key.text),
                                place(*first->second, name_)),
                    "keep one of them");
    }
    if (const auto* choice = (*field)->real_containing_oneof()) {
      if (const auto [other, fresh] = chosen.emplace(choice, *field); !fresh) {
        return refuse(key,
                      fmt::format("'{}' and '{}' exclude each other", other->second->name(),
                                  (*field)->name()),
                      "keep one of them");
      }
    }
    entries.push_back({&key, node.children[i + 1], *field});
  }
  return entries;
}

Result<void> Reader::read_mapping(const Node& node, Message& message) {
  const Descriptor& type = *message.GetDescriptor();
  RH_TRY(const std::vector<Entry> entries, entries_of(node, type));
  const FieldDescriptor* like = catalogue_ ? like_of(type) : nullptr;
  for (const Entry& entry : entries) {
    if (entry.field != like || entry.value->kind == Node::Kind::kNull) continue;
    if (auto ok = read_like(*entry.value, message); !ok) return ok;
  }
  for (const Entry& entry : entries) {
    if (entry.field == like) continue;
    if (auto ok = read_field(*entry.value, message, *entry.field); !ok) return ok;
  }
  return {};
}

Result<void> Reader::read_like(const Node& node, Message& message) {
  const FieldDescriptor* like = like_of(*message.GetDescriptor());
  if (!catalogue_) return read_field(node, message, *like);
  if (node.kind != Node::Kind::kScalar) {
    return refuse(node,
                  fmt::format("'like' must be the name of a catalogue entry, not {}", noun(node)),
                  "write one name");
  }
  auto found = catalogue_(*message.GetDescriptor(), node.text);
  if (!found) return placed(node, std::move(found).error());
  if (*found == nullptr || (*found)->GetDescriptor() != message.GetDescriptor()) {
    return placed(node,
                  Error{Code::kInternal,
                        fmt::format("the catalogue gave {} another type", in_quotes(node.text)),
                        {},
                        {}});
  }
  if (auto ok = visit(node, (*found)->ByteSizeLong()); !ok) return ok;
  message.CopyFrom(**found);
  message.GetReflection()->ClearField(&message, like);
  return {};
}

Result<void> Reader::read_field(const Node& node, Message& owner, const FieldDescriptor& field) {
  if (node.kind == Node::Kind::kNull) {
    owner.GetReflection()->ClearField(&owner, &field);
    return {};
  }
  if (field.is_map()) return read_map(node, owner, field);
  if (!field.is_repeated()) return read_value(node, owner, field, field, kSingle);
  if (auto ok = visit(node, 0); !ok) return ok;
  owner.GetReflection()->ClearField(&owner, &field);
  if (node.kind != Node::Kind::kSequence) return read_element(node, owner, field, kAppend);
  for (const Node* child : node.children) {
    if (auto ok = read_element(*child, owner, field, kAppend); !ok) return ok;
  }
  return {};
}

Result<void> Reader::read_element(const Node& node, Message& owner, const FieldDescriptor& field,
                                  int index) {
  return read_value(node, owner, field, field, index);
}

Result<void> Reader::read_value(const Node& node, Message& owner, const FieldDescriptor& field,
                                const FieldDescriptor& options, int index) {
  const auto& reflection = *owner.GetReflection();
  if (is_message(field)) {
    Message* value = index == kSingle   ? reflection.MutableMessage(&owner, &field)
                     : index == kAppend ? reflection.AddMessage(&owner, &field)
                                        : reflection.MutableRepeatedMessage(&owner, &field, index);
    return read_message(node, *value);
  }
  if (auto ok = visit(node, node.text.size()); !ok) return ok;
  if (node.kind != Node::Kind::kScalar) {
    return refuse(node,
                  fmt::format("{} must be a single value, not {}", options.name(), noun(node)),
                  "write one value");
  }
  auto value = parse_scalar(node.text, {&field, &options, dialect_});
  if (!value) return placed(node, std::move(value).error());
  put_scalar(owner, field, index, std::move(*value));
  return {};
}

Result<void> Reader::read_map(const Node& node, Message& owner, const FieldDescriptor& field) {
  if (auto ok = visit(node, 0); !ok) return ok;
  if (node.kind != Node::Kind::kMapping) {
    return refuse(node, fmt::format("{} must be a mapping, not {}", field.name(), noun(node)),
                  fmt::format("write '{}: {{key: value}}'", field.name()));
  }
  const FieldDescriptor& key_field = *field.message_type()->map_key();
  std::map<Scalar, int> present = entries_by_key(owner, field);
  std::map<Scalar, const Node*> seen;
  for (size_t i = 0; i + 1 < node.children.size(); i += 2) {
    const Node& key = *node.children[i];
    if (key.kind != Node::Kind::kScalar) {
      return refuse(key, fmt::format("a key of {} must be a name, not {}", field.name(), noun(key)),
                    "write a name");
    }
    auto parsed = parse_scalar(key.text, {&key_field, &key_field});
    if (!parsed) return placed(key, std::move(parsed).error());
    if (const auto [first, fresh] = seen.emplace(*parsed, &key); !fresh) {
      return refuse(key,
                    fmt::format("{} is written twice, first at {}", in_quotes(key.text),
                                place(*first->second, name_)),
                    "keep one of them");
    }
    const auto old = present.find(*parsed);
    const int index = old == present.end() ? kAppend : old->second;
    if (auto ok = visit(key, key.text.size()); !ok) return ok;
    if (auto ok = put_entry(*node.children[i + 1], owner, field, index, std::move(*parsed)); !ok)
      return ok;
  }
  return {};
}

Result<void> Reader::read_entry(const Node& node, Message& owner, const FieldDescriptor& field,
                                std::string_view key) {
  const FieldDescriptor& key_field = *field.message_type()->map_key();
  RH_TRY(Scalar parsed, parse_scalar(key, {&key_field, &key_field}));
  const std::map<Scalar, int> present = entries_by_key(owner, field);
  const auto old = present.find(parsed);
  return put_entry(node, owner, field, old == present.end() ? kAppend : old->second,
                   std::move(parsed));
}

Result<void> Reader::put_entry(const Node& node, Message& owner, const FieldDescriptor& field,
                               int index, Scalar key) {
  const FieldDescriptor& value_field = *field.message_type()->map_value();
  const auto& reflection = *owner.GetReflection();
  Message* entry = index == kAppend ? reflection.AddMessage(&owner, &field)
                                    : reflection.MutableRepeatedMessage(&owner, &field, index);
  put_scalar(*entry, *field.message_type()->map_key(), kSingle, std::move(key));
  if (node.kind != Node::Kind::kNull) return read_value(node, *entry, value_field, field, kSingle);
  entry->GetReflection()->ClearField(entry, &value_field);
  return {};
}

std::map<Scalar, int> entries_by_key(const Message& owner, const FieldDescriptor& field) {
  const FieldDescriptor& key_field = *field.message_type()->map_key();
  const auto& reflection = *owner.GetReflection();
  std::map<Scalar, int> found;
  for (int i = 0; i < reflection.FieldSize(owner, &field); ++i) {
    found[get_scalar(reflection.GetRepeatedMessage(owner, &field, i), key_field, kSingle)] = i;
  }
  return found;
}

}  // namespace rehearse::document
