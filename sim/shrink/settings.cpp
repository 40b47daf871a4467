// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/message_differencer.h>

#include <charconv>

#include "base/document.hpp"
#include "platforms/model/catalogue.hpp"
#include "sim/shrink/job.hpp"

namespace rehearse::sim {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::util::MessageDifferencer;

// Paths of the leaves that differ. False: something has another number of entries.
bool differing_paths(const google::protobuf::Message& before,
                     const google::protobuf::Message& after, const std::string& path,
                     std::vector<std::string>& out) {
  const auto& type = *after.GetDescriptor();
  const auto& a = *before.GetReflection();
  const auto& b = *after.GetReflection();
  for (int f = 0; f < type.field_count(); ++f) {
    const FieldDescriptor* field = type.field(f);
    const std::string name = path + "." + field->name();
    if (field->is_repeated()) {
      const bool nested = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
      if (a.FieldSize(before, field) != b.FieldSize(after, field)) return false;
      for (int i = 0; nested && !field->is_map() && i < b.FieldSize(after, field); ++i) {
        if (!differing_paths(a.GetRepeatedMessage(before, field, i),
                             b.GetRepeatedMessage(after, field, i),
                             name + "[" + std::to_string(i) + "]", out)) {
          return false;
        }
      }
      continue;  // lists of scalars and maps are seen by the check at the end
    }
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (!a.HasField(before, field) && !b.HasField(after, field)) continue;
      if (!differing_paths(a.GetMessage(before, field), b.GetMessage(after, field), name, out)) {
        return false;
      }
      continue;
    }
    const std::vector<const FieldDescriptor*> only = {field};
    MessageDifferencer differencer;
    if (!differencer.CompareWithFields(before, after, only, only)) out.push_back(name);
  }
  return true;
}

// "platform.nodes[3].nics[0].down" is of node 3.
int node_of(const std::string& path) {
  constexpr std::string_view kNodes = "platform.nodes[";
  if (path.rfind(kNodes, 0) != 0) return -1;
  int node = -1;
  const char* last = path.data() + path.size();
  const auto [end, error] = std::from_chars(path.data() + kNodes.size(), last, node);
  return error == std::errc() && end != last && *end == ']' ? node : -1;
}

}  // namespace

std::optional<std::vector<Setting>> settings_of(const Scenario& scenario) {
  pb::Scenario fresh;
  *fresh.mutable_platform() = scenario.written;
  if (!platforms::expand(*fresh.mutable_platform(), "platform")) return std::nullopt;
  std::vector<std::string> paths;
  if (!differing_paths(fresh.platform(), scenario.document.platform(), "platform", paths)) {
    return std::nullopt;
  }
  std::vector<Setting> out;
  for (const std::string& path : paths) {
    const auto value = get_path(scenario.document, path);
    if (!value || value->empty() || !set_path(fresh, path, *value)) return std::nullopt;
    out.push_back({node_of(path), path, *value});
  }
  if (!MessageDifferencer::Equals(fresh.platform(), scenario.document.platform())) {
    return std::nullopt;
  }
  return out;
}

}  // namespace rehearse::sim
