// SPDX-License-Identifier: Apache-2.0
#include <simdjson.h>

#include <array>
#include <charconv>
#include <utility>

#include "traces/import/chakra/node.hpp"
#include "traces/import/json_text.hpp"

namespace rehearse::traces::chakra {
namespace {

namespace dom = simdjson::dom;

// Protobuf prints 64-bit numbers as strings.
std::optional<int64_t> number_of(const dom::element& value) {
  int64_t number = 0;
  uint64_t large = 0;
  double real = 0;
  bool truth = false;
  std::string_view text;
  if (value.get_int64().get(number) == simdjson::SUCCESS) return number;
  if (value.get_uint64().get(large) == simdjson::SUCCESS) return INT64_MAX;
  if (value.get_bool().get(truth) == simdjson::SUCCESS) return truth ? 1 : 0;
  if (value.get_double().get(real) == simdjson::SUCCESS) {
    if (real > -9e18 && real < 9e18) return static_cast<int64_t>(real);
    return std::nullopt;
  }
  if (value.get_string().get(text) != simdjson::SUCCESS) return std::nullopt;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return number;
}

void append_ids(const dom::element& value, std::vector<uint64_t>& out) {
  dom::array items;
  if (value.get_array().get(items) != simdjson::SUCCESS) return;
  for (const dom::element item : items) {
    if (const auto id = number_of(item); id && *id >= 0) out.push_back(static_cast<uint64_t>(*id));
  }
}

std::optional<uint32_t> type_of(const dom::element& value) {
  static constexpr std::array<std::string_view, 11> kNames = {
      "INVALID_NODE", "METADATA_NODE",  "MEM_LOAD_NODE",  "MEM_STORE_NODE",
      "COMP_NODE",    "COMM_SEND_NODE", "COMM_RECV_NODE", "COMM_COLL_NODE",
      "STORAGE_NODE", "BATCH_NODE",     "CHECKPOINT_NODE"};
  std::string_view text;
  if (value.get_string().get(text) == simdjson::SUCCESS) {
    for (uint32_t i = 0; i < kNames.size(); ++i) {
      if (kNames[i] == text) return i;
    }
  }
  const auto number = number_of(value);
  if (!number || *number < 0) return std::nullopt;
  return static_cast<uint32_t>(std::min<int64_t>(*number, UINT32_MAX));
}

Attribute attribute_of(std::string_view name, const dom::element& value) {
  Attribute out{.name = name};
  std::string_view text;
  dom::array items;
  if (value.get_string().get(text) == simdjson::SUCCESS) out.text = text;
  out.number = number_of(value);
  if (value["values"].get_array().get(items) == simdjson::SUCCESS) {
    for (const dom::element item : items) {
      if (item.get_string().get(text) == simdjson::SUCCESS) out.texts.push_back(text);
      if (const auto n = number_of(item)) out.numbers.push_back(*n);
    }
  }
  return out;
}

// [{"name": "is_cpu_op", "boolVal": true}, ...]
void append_attributes(const dom::element& value, std::vector<Attribute>& out) {
  dom::array items;
  if (value.get_array().get(items) != simdjson::SUCCESS) return;
  for (const dom::element item : items) {
    dom::object fields;
    std::string_view name;
    if (item.get_object().get(fields) != simdjson::SUCCESS ||
        item["name"].get_string().get(name) != simdjson::SUCCESS) {
      continue;
    }
    Attribute attribute{.name = name};
    for (const auto field : fields) {
      if (field.key != "name" && field.key != "docString")
        attribute = attribute_of(name, field.value);
    }
    out.push_back(std::move(attribute));
  }
}

uint64_t micros_of(const dom::element& value) {
  const auto number = number_of(value);
  // A negative one stays recognisable as such: protobuf would have wrapped it the same way.
  return number ? static_cast<uint64_t>(*number) : 0;
}

}  // namespace

struct JsonNodes::Impl {
  dom::parser parser;
};

JsonNodes::JsonNodes() : impl_(std::make_unique<Impl>()) {}
JsonNodes::~JsonNodes() = default;

bool JsonNodes::parse(const Element& element, Node& node) {
  node = {};
  dom::element document;
  dom::object fields;
  if (parse_json(impl_->parser, element, document) != simdjson::SUCCESS ||
      document.get_object().get(fields) != simdjson::SUCCESS) {
    return false;
  }
  for (const auto& [key, value] : fields) {
    std::string_view words;
    if (key == "Id" || key == "id") {
      node.id = static_cast<uint64_t>(number_of(value).value_or(0));
    } else if (key == "Name" || key == "name") {
      if (value.get_string().get(words) == simdjson::SUCCESS) node.name = words;
    } else if (key == "NodeType" || key == "type") {
      node.type = type_of(value).value_or(kInvalid);
    } else if (key == "ctrlDeps" || key == "ctrl_deps") {
      append_ids(value, node.control);
    } else if (key == "data_deps" || key == "dataDeps") {
      append_ids(value, node.data);
    } else if (key == "runtime" || key == "durationMicros" || key == "duration_micros") {
      node.duration_micros = micros_of(value);
    } else if (key == "startTimeMicros" || key == "start_time_micros") {
      node.start_micros = micros_of(value);
    } else if (key == "attr") {
      append_attributes(value, node.attributes);
    } else if (key == "inputs") {
      if (value["values"].get_string().get(words) == simdjson::SUCCESS) node.input_values = words;
    } else if (key != "outputs") {
      node.attributes.push_back(attribute_of(key, value));
    }
  }
  return true;
}

}  // namespace rehearse::traces::chakra
