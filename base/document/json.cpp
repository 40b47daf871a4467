// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/document.hpp"
#include "base/document/node.hpp"
#include "base/document/reader.hpp"
#include "base/document/scalar.hpp"

namespace rehearse {
namespace document {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Scalar& value, const FieldDescriptor& field) {
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    return show_enum(*field.enum_type(), std::get<int64_t>(value));
  }
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_FLOAT) {
    // The shortest digits of the float, not those of the nearest double.
    const std::string text = show_scalar(value, {&field, &field});
    double shown = std::get<double>(value);
    std::from_chars(text.data(), text.data() + text.size(), shown);
    return shown;
  }
  return std::visit([](const auto& v) { return Json(v); }, value);
}

Json json_of(const Message& owner, const FieldDescriptor& field, int index) {
  if (!is_message(field)) return json_of(get_scalar(owner, field, index), field);
  const auto& reflection = *owner.GetReflection();
  return to_json(index == kSingle ? reflection.GetMessage(owner, &field)
                                  : reflection.GetRepeatedMessage(owner, &field, index));
}

Json map_of(const Message& owner, const FieldDescriptor& field) {
  const FieldDescriptor& key = *field.message_type()->map_key();
  const auto& reflection = *owner.GetReflection();
  std::map<Scalar, Json> sorted;
  for (int i = 0; i < reflection.FieldSize(owner, &field); ++i) {
    const Message& entry = reflection.GetRepeatedMessage(owner, &field, i);
    sorted[get_scalar(entry, key, kSingle)] =
        json_of(entry, *field.message_type()->map_value(), kSingle);
  }
  Json json = Json::object();
  for (auto& [k, v] : sorted) json[show_scalar(k, {&key, &key})] = std::move(v);
  return json;
}

// Copies JSON into nodes, each with its JSON pointer.
class JsonTree {
 public:
  explicit JsonTree(const std::string& name) : name_(name) {}

  Result<const Node*> add(const Json& json, const std::string& pointer, int depth) {
    if (tree_.nodes.size() >= kMaxNodes)
      return limit(pointer, fmt::format("more than {} values", kMaxNodes));
    if (depth > kMaxDocumentDepth)
      return limit(pointer, fmt::format("nested deeper than {} levels", kMaxDocumentDepth));
    Node& node = tree_.nodes.emplace_back();
    node.pointer = pointer;
    if (json.is_object()) {
      node.kind = Node::Kind::kMapping;
      for (const auto& [key, value] : json.items()) {
        Node& name = tree_.nodes.emplace_back();
        name.kind = Node::Kind::kScalar;
        name.text = key;
        name.pointer = fmt::format("{}/{}", pointer, key);
        RH_TRY(const Node* child, add(value, name.pointer, depth + 1));
        node.children.push_back(&name);
        node.children.push_back(child);
      }
    } else if (json.is_array()) {
      node.kind = Node::Kind::kSequence;
      for (size_t i = 0; i < json.size(); ++i) {
        RH_TRY(const Node* child, add(json[i], fmt::format("{}/{}", pointer, i), depth + 1));
        node.children.push_back(child);
      }
    } else if (json.is_string()) {
      node.kind = Node::Kind::kScalar;
      node.text = json.get_ref<const std::string&>();
    } else if (!json.is_null()) {
      node.kind = Node::Kind::kScalar;
      node.text = json.is_binary() ? "binary" : json.dump();
    }
    return &node;
  }
  Tree take() { return std::move(tree_); }

 private:
  [[nodiscard]] tl::unexpected<Error> limit(const std::string& pointer,
                                            const std::string& what) const {
    return fail(Code::kLimit, what, fmt::format("{}: {}", name_, pointer), "split the document");
  }
  const std::string& name_;
  Tree tree_;
};

}  // namespace

Result<Tree> tree_of(const Json& json, const std::string& name) {
  JsonTree builder(name);
  RH_TRY(const Node* root, builder.add(json, "", 0));
  Tree tree = builder.take();
  tree.root = root;
  return tree;
}

}  // namespace document

nlohmann::ordered_json to_json(const google::protobuf::Message& message) {
  using namespace document;
  const Descriptor& type = *message.GetDescriptor();
  const auto& reflection = *message.GetReflection();
  Json json = Json::object();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.is_map()) {
      json[field.name()] = map_of(message, field);
    } else if (field.is_repeated()) {
      Json list = Json::array();
      for (int k = 0; k < reflection.FieldSize(message, &field); ++k)
        list.push_back(json_of(message, field, k));
      json[field.name()] = std::move(list);
    } else if (!field.has_presence() || reflection.HasField(message, &field)) {
      json[field.name()] = json_of(message, field, kSingle);
    }
  }
  return json;
}

Result<void> from_json(const nlohmann::ordered_json& json, google::protobuf::Message& message,
                       const std::string& name) {
  RH_TRY(const document::Tree tree, document::tree_of(json, name));
  const Catalogue none;
  return document::Reader(name, none, document::Dialect::kJson).read_message(*tree.root, message);
}

}  // namespace rehearse
