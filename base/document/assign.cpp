// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/document.hpp"
#include "base/document/path.hpp"
#include "base/document/reader.hpp"
#include "base/document/write.hpp"
#include "base/text.hpp"

namespace rehearse {
namespace document {
namespace {

Message& owner_of(const Target& target, Message& root) {
  Message* message = &root;
  for (const auto& [field, index] : target.steps) {
    const auto& reflection = *message->GetReflection();
    message = index == kSingle ? reflection.MutableMessage(message, field)
                               : reflection.MutableRepeatedMessage(message, field, index);
  }
  return *message;
}

const Message& owner_of(const Target& target, const Message& root) {
  const Message* message = &root;
  for (const auto& [field, index] : target.steps) {
    const auto& reflection = *message->GetReflection();
    message = index == kSingle ? &reflection.GetMessage(*message, field)
                               : &reflection.GetRepeatedMessage(*message, field, index);
  }
  return *message;
}

// The field that gives the type of what is assigned.
const FieldDescriptor& assigned(const Target& target) {
  return target.key ? *target.field->message_type()->map_value() : *target.field;
}

// Text for a single value is taken as it is unless it is quoted, so that a shell needs no second
// layer of quotes; everything else is YAML.
Result<Tree> parse_value(std::string_view text, const Target& target, const std::string& name) {
  const FieldDescriptor& field = assigned(target);
  const bool single = !is_message(field) && (!field.is_repeated() || target.index != kSingle);
  const bool has_quotes = text.size() >= 2 && text.front() == text.back() &&
                          (text.front() == '"' || text.front() == '\'');
  const bool is_null =
      field.cpp_type() != FieldDescriptor::CPPTYPE_STRING && (text == "null" || text == "~");
  if (!single || has_quotes || is_null) return parse_yaml(text, name);
  Tree tree;
  Node& node = tree.nodes.emplace_back();
  node.kind = Node::Kind::kScalar;
  node.text = std::string(text);
  tree.root = &node;
  return tree;
}

Result<void> apply(Reader& reader, const Node& node, Message& owner, const Target& target) {
  if (target.key) return reader.read_entry(node, owner, *target.field, *target.key);
  if (target.index == kSingle) {
    const FieldDescriptor* like = like_of(*owner.GetDescriptor());
    return target.field == like ? reader.read_like(node, owner)
                                : reader.read_field(node, owner, *target.field);
  }
  return reader.read_element(node, owner, *target.field, target.index);
}

// The same assignment to a copy of what it changes, so that a bad value is refused before anything changes.
Result<void> rehearse_assignment(Reader& reader, const Node& node, const Message& owner,
                                 const Target& target) {
  const std::unique_ptr<Message> scratch(owner.New());
  const auto& reflection = *owner.GetReflection();
  Target first = target;
  const bool merged = is_message(*target.field) && !target.field->is_map();
  if (merged && target.index != kSingle) {
    reflection.AddMessage(scratch.get(), target.field)
        ->CopyFrom(reflection.GetRepeatedMessage(owner, target.field, target.index));
    first.index = 0;
  } else if (merged && !target.field->is_repeated() && reflection.HasField(owner, target.field)) {
    reflection.MutableMessage(scratch.get(), target.field)
        ->CopyFrom(reflection.GetMessage(owner, target.field));
  } else if (target.index != kSingle) {
    first.index = kAppend;
  }
  return apply(reader, node, *scratch, first);
}

}  // namespace
}  // namespace document

Result<int> set_path(google::protobuf::Message& message, std::string_view path,
                     std::string_view value, const Catalogue& catalogue) {
  using namespace document;
  const std::string name(path);
  const auto at_value = [&](Error error) {
    const std::string shown = in_quotes(value);
    error.where = fmt::format("{}=>>{}<<", path, shown.substr(1, shown.size() - 2));
    return tl::unexpected(std::move(error));
  };
  RH_TRY(const std::vector<Target> targets, resolve(message, path));
  auto tree = parse_value(value, targets.front(), name);
  if (!tree) return at_value(std::move(tree).error());
  for (size_t i = 0; i <= targets.size(); ++i) {
    // The first round only looks.
    Reader reader(name, catalogue, Dialect::kYaml);
    const Target& target = targets[i == 0 ? 0 : i - 1];
    auto ok = i == 0 ? rehearse_assignment(reader, *tree->root,
                                           owner_of(target, std::as_const(message)), target)
                     : apply(reader, *tree->root, owner_of(target, message), target);
    if (!ok) return at_value(std::move(ok).error());
  }
  return static_cast<int>(targets.size());
}

Result<std::string> get_path(const google::protobuf::Message& message, std::string_view path) {
  using namespace document;
  RH_TRY(const std::vector<Target> targets, resolve(message, path));
  std::string out;
  for (const Target& target : targets) {
    if (&target != &targets.front()) out += '\n';
    const Message& owner = owner_of(target, message);
    if (!target.key && target.index == kSingle) {
      out += write_field(owner, *target.field);
      continue;
    }
    int index = target.index;
    if (target.key) {
      const FieldDescriptor& key_field = *target.field->message_type()->map_key();
      RH_TRY(const Scalar key, parse_scalar(*target.key, {&key_field, &key_field}));
      const auto entries = entries_by_key(owner, *target.field);
      const auto found = entries.find(key);
      if (found == entries.end()) {
        return fail(Code::kBadInput,
                    fmt::format("{} has no entry {}", target.field->name(), in_quotes(*target.key)),
                    std::string(path), "name an entry that exists");
      }
      index = found->second;
    }
    out += write_element(owner, *target.field, index);
  }
  return out;
}

}  // namespace rehearse
