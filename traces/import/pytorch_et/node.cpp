// SPDX-License-Identifier: Apache-2.0
#include "traces/import/pytorch_et/node.hpp"

#include <simdjson.h>

#include "traces/import/json_text.hpp"
#include "traces/import/limits.hpp"
#include "traces/import/names.hpp"

namespace rehearse::traces::pytorch_et {
namespace {

namespace dom = simdjson::dom;

// A tensor is [id, storage, offset, elements, bytes of one, "device"]; lists of tensors nest.
Bytes tensor_bytes(const dom::element& value, int depth) {
  dom::array items;
  if (depth > 8 || value.get_array().get(items) != simdjson::SUCCESS) return 0;
  if (items.size() == 6 && items.at(5).is_string() && items.at(3).is_int64() &&
      items.at(4).is_int64()) {
    const int64_t elements = items.at(3).get_int64().value_unsafe();
    const int64_t width = items.at(4).get_int64().value_unsafe();
    Bytes bytes = 0;
    if (elements < 0 || width < 0 || __builtin_mul_overflow(elements, width, &bytes)) return 0;
    return std::min(bytes, kMostBytes);
  }
  Bytes sum = 0;
  for (const dom::element item : items)
    sum = std::min(sum + tensor_bytes(item, depth + 1), kMostBytes);
  return sum;
}

// The values of inputs or outputs in either shape.
simdjson::simdjson_result<dom::array> values_of(const dom::element& node, const char* key) {
  const auto field = node[key];
  if (field.error()) return field.error();
  if (field.is_object()) return field["values"].get_array();
  return field.get_array();
}

DType type_of(const dom::element& node) {
  dom::element first;
  if (node["input_types"].at(0).get(first) != simdjson::SUCCESS &&
      node["inputs"]["types"].at(0).get(first) != simdjson::SUCCESS) {
    return DType::kUnknown;
  }
  std::string_view text;
  if (first.get_string().get(text) != simdjson::SUCCESS) return DType::kUnknown;
  return dtype_of(text);
}

std::string group_name(const dom::element& value) {
  std::string_view text;
  if (value.is_array() && value.at(0).get_string().get(text) == simdjson::SUCCESS)
    return std::string(text);
  if (value.get_string().get(text) == simdjson::SUCCESS) return std::string(text);
  return {};  // a pointer of the recorded process: see CommNode::backend
}

struct Attributes {
  std::string_view collective, dtype, group;
  int64_t in = -1, out = -1, size = -1, first = -1, stride = -1;
};

Attributes attributes_of(const dom::element& node) {
  Attributes out;
  dom::array attrs;
  if (node["attrs"].get_array().get(attrs) != simdjson::SUCCESS) return out;
  for (const dom::element attr : attrs) {
    std::string_view name, text;
    int64_t number = -1;
    if (attr["name"].get_string().get(name) != simdjson::SUCCESS) continue;
    const bool is_text = attr["value"].get_string().get(text) == simdjson::SUCCESS;
    const bool is_number = attr["value"].get_int64().get(number) == simdjson::SUCCESS;
    if (is_text && name == "collective_name") out.collective = text;
    if (is_text && name == "dtype") out.dtype = text;
    if (is_text && name == "pg_name") out.group = text;
    if (is_number && name == "in_msg_nelems") out.in = number;
    if (is_number && name == "out_msg_nelems") out.out = number;
    if (is_number && name == "pg_size") out.size = number;
    if (is_number && name == "global_rank_start") out.first = number;
    if (is_number && name == "global_rank_stride") out.stride = number;
  }
  return out;
}

void apply(const Attributes& a, CallSizes::Row& row) {
  const DType dtype = dtype_of(a.dtype);
  const int64_t width = element_bytes(a.dtype);
  if (dtype != DType::kUnknown) row.dtype = dtype;
  if (a.in >= 0 && width > 0 && a.in < kMostBytes / width) row.bytes_in = a.in * width;
  if (a.out >= 0 && width > 0 && a.out < kMostBytes / width) row.bytes_out = a.out * width;
  if (!a.group.empty()) row.group = a.group;
  if (a.size > 0 && a.size < (1 << 24)) row.group_size = static_cast<uint32_t>(a.size);
}

// What follows the splits: the size of the group, since 1.0.3 with the first rank and the stride before it.
void ranks_behind(const dom::array& inputs, size_t name_at, CommNode& out, CallSizes::Row& row) {
  const auto number = [&](size_t at) {
    int64_t value = -1;
    return at < inputs.size() && inputs.at(at).get_int64().get(value) == simdjson::SUCCESS ? value
                                                                                           : -1;
  };
  const size_t at = name_at + 3;
  const bool whole = inputs.size() > at + 2;
  const int64_t size = number(whole ? at + 2 : at);
  if (size > 0 && size < kMostRank) row.group_size = static_cast<uint32_t>(size);
  if (!whole) return;
  out.first = number(at);
  out.stride = number(at + 1);
}

GroupNode group_of(const dom::element& in) {
  GroupNode out;
  std::string_view text;
  if (in["pg_name"].get_string().get(text) == simdjson::SUCCESS) out.group.id = text;
  if (in["pg_desc"].get_string().get(text) == simdjson::SUCCESS) out.group.description = text;
  if (in["backend_config"].get_string().get(text) == simdjson::SUCCESS) out.group.backend = text;
  int64_t number = 0;
  if (in["backend_id"].get_int64().get(number) == simdjson::SUCCESS) out.backend = number;
  if (in["group_size"].get_int64().get(number) == simdjson::SUCCESS && number > 0 &&
      number < kMostRank) {
    out.size = static_cast<uint32_t>(number);
  }
  dom::array ranks;
  if (in["ranks"].get_array().get(ranks) != simdjson::SUCCESS) return out;
  for (const dom::element rank : ranks) {
    if (rank.get_int64().get(number) != simdjson::SUCCESS || number < 0 || number >= kMostRank) {
      out.group.members.clear();
      out.size = 0;  // not of all ranks: nobody says of whom
      break;
    }
    out.group.members.push_back(static_cast<RankId>(number));
  }
  return out;
}

}  // namespace

struct NodeParser::Impl {
  dom::parser parser, inner;
};

NodeParser::NodeParser() : impl_(std::make_unique<Impl>()) {}
NodeParser::~NodeParser() = default;

std::optional<CommNode> NodeParser::parse(const Element& element) {
  dom::element node;
  if (parse_json(impl_->parser, element, node) != simdjson::SUCCESS) return std::nullopt;
  std::string_view name;
  if (node["name"].get_string().get(name) != simdjson::SUCCESS || name != "record_param_comms") {
    return std::nullopt;
  }
  CommNode out;
  if (node["id"].get_int64().get(out.id) != simdjson::SUCCESS) return std::nullopt;
  dom::array inputs;
  if (values_of(node, "inputs").get(inputs) != simdjson::SUCCESS) return std::nullopt;
  // ... sequence, process group, rank, name of the collective, splits
  std::optional<size_t> name_at;
  size_t i = 0;
  std::string_view collective;
  for (const dom::element value : inputs) {
    if (value.get_string().get(collective) == simdjson::SUCCESS) {
      name_at = i;
      break;
    }
    ++i;
  }
  const Attributes attributes = attributes_of(node);
  if (!name_at || !attributes.collective.empty()) collective = attributes.collective;
  out.wait = collective == "wait";
  if (name_at && *name_at >= 2) {
    int64_t rank = -1;
    if (inputs.at(*name_at - 1).get_int64().get(rank) == simdjson::SUCCESS && rank >= 0 &&
        rank < (1 << 24)) {
      out.place = static_cast<RankId>(rank);
    }
  }
  const auto kind = collective_of(collective);
  if (out.wait || !kind) return out;
  CallSizes::Row row;
  row.collective = *kind;
  const bool of_another = is_rooted(*kind) || is_point_to_point(*kind);
  if (of_another && out.place) row.peer = static_cast<int32_t>(*out.place);
  row.dtype = type_of(node);
  if (inputs.size() > 0) row.bytes_in = tensor_bytes(inputs.at(0).value_unsafe(), 0);
  dom::array outputs;
  if (values_of(node, "outputs").get(outputs) == simdjson::SUCCESS) {
    for (const dom::element value : outputs) {
      row.bytes_out = std::min(row.bytes_out + tensor_bytes(value, 0), kMostBytes);
    }
  }
  if (name_at && *name_at >= 2) {
    const dom::element group = inputs.at(*name_at - 2).value_unsafe();
    row.group = group_name(group);
    if (group.get_int64().get(out.backend) != simdjson::SUCCESS) out.backend = 0;
    ranks_behind(inputs, *name_at, out, row);
  }
  apply(attributes, row);
  if (attributes.first >= 0 && attributes.stride > 0) {
    out.first = attributes.first;
    out.stride = attributes.stride;
  }
  out.row = std::move(row);
  return out;
}

std::optional<std::vector<GroupNode>> NodeParser::groups(const Element& element) {
  dom::element node, listed;
  dom::array values, groups;
  std::string_view name, text;
  if (parse_json(impl_->parser, element, node) != simdjson::SUCCESS ||
      node["name"].get_string().get(name) != simdjson::SUCCESS ||
      name.find(kGroupsNode) == std::string_view::npos ||
      values_of(node, "inputs").get(values) != simdjson::SUCCESS ||
      values.at(0).get_string().get(text) != simdjson::SUCCESS ||
      parse_json(impl_->inner, text, listed) != simdjson::SUCCESS ||
      listed.get_array().get(groups) != simdjson::SUCCESS) {
    return std::nullopt;
  }
  std::vector<GroupNode> out;
  for (const dom::element group : groups) {
    if (group.is_object()) out.push_back(group_of(group));
  }
  return out;
}

}  // namespace rehearse::traces::pytorch_et
