// SPDX-License-Identifier: Apache-2.0
#include "base/document.hpp"
#include "base/document/path.hpp"
#include "base/text.hpp"

namespace rehearse {

Result<std::vector<const google::protobuf::FieldDescriptor*>> fields_of_path(
    const google::protobuf::Message& message, std::string_view path) {
  using namespace document;
  RH_TRY(const std::vector<Target> targets, resolve(message, path));
  std::vector<const FieldDescriptor*> out;
  // All targets of a path go through the same fields.
  for (const Target::Step& step : targets.front().steps) out.push_back(step.field);
  out.push_back(targets.front().field);
  return out;
}

Result<std::string> reselect(
    const google::protobuf::Message& message, std::string_view path, std::string_view list,
    const std::function<std::optional<Selected>(const Selected&)>& choose) {
  using namespace document;
  const size_t close = path.find(']');
  if (!path.starts_with(list) || path.size() == list.size() || path[list.size()] != '[' ||
      close == path.npos) {
    return std::string(path);
  }
  const std::vector<std::string> names = split(list, '.');
  const Message* owner = &message;
  const FieldDescriptor* field = nullptr;
  for (const std::string& name : names) {
    if (field != nullptr) owner = &owner->GetReflection()->GetMessage(*owner, field);
    RH_TRY(field, find_field(*owner->GetDescriptor(), name));
  }
  auto indices = select(*owner, *field, path.substr(list.size() + 1, close - list.size() - 1));
  if (!indices) {
    Error error = std::move(indices).error();
    error.where = std::string(path);
    return tl::unexpected(std::move(error));
  }
  const auto chosen = choose(Selected(indices->begin(), indices->end()));
  if (!chosen) return std::string(path);
  if (chosen->empty()) return std::string();
  std::string out(list);
  return out.append(1, '[').append(format_ranks(*chosen)).append(path.substr(close));
}

}  // namespace rehearse
