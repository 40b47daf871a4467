// SPDX-License-Identifier: Apache-2.0
// Chakra files for tests, as other tools write them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "traces/export/wire_text.hpp"

namespace rehearse::traces::samples {

struct ChakraNode {
  uint64_t id = 0;
  std::string name{};
  uint32_t type = 4;
  uint64_t micros = 0;
  uint64_t start = 0;
  std::vector<uint64_t> data{};
  std::optional<bool> cpu{};
  std::optional<int64_t> tid{}, stream{}, comm_type{}, comm_size{};
  std::string group{};
  std::optional<int64_t> comm_src{}, comm_dst{}, tensor_size{}, operations{};
};

class ChakraFile {
 public:
  ChakraFile() {
    std::string metadata;
    attribute(metadata, 2, "schema", 29, "1.1.0-chakra.0.0.4");
    frame(metadata);
  }
  void groups(const std::string& json) {
    std::string node, inputs;
    put_bytes(node, 2, "## process_group:init ##");
    put_number(node, 3, 1);
    put_bytes(inputs, 1, json);
    put_bytes(node, 8, inputs);
    frame(node);
  }
  void add(const ChakraNode& n) {
    std::string node;
    put_number(node, 1, n.id);
    put_bytes(node, 2, n.name);
    put_number(node, 3, n.type);
    put_numbers(node, 5, n.data);
    if (n.start != 0) put_number(node, 6, n.start);
    put_number(node, 7, n.micros);
    if (n.cpu) number(node, "is_cpu_op", 27, *n.cpu ? 1 : 0);
    if (n.tid) number(node, "tid", 9, *n.tid);
    if (n.stream) number(node, "stream", 9, *n.stream);
    if (n.comm_type) number(node, "comm_type", 9, *n.comm_type);
    if (n.comm_size) number(node, "comm_size", 9, *n.comm_size);
    if (n.comm_src) number(node, "comm_src", 7, *n.comm_src);
    if (n.comm_dst) number(node, "comm_dst", 7, *n.comm_dst);
    if (n.tensor_size) number(node, "tensor_size", 13, *n.tensor_size);
    if (n.operations) number(node, "num_ops", 9, *n.operations);
    if (!n.group.empty()) attribute(node, 10, "pg_name", 29, n.group);
    frame(node);
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  static void attribute(std::string& out, uint32_t outer, const std::string& name, uint32_t field,
                        const std::string& text) {
    std::string a;
    put_bytes(a, 1, name);
    put_bytes(a, field, text);
    put_bytes(out, outer, a);
  }
  static void number(std::string& out, const std::string& name, uint32_t field, int64_t value) {
    std::string a;
    put_bytes(a, 1, name);
    put_number(a, field, static_cast<uint64_t>(value));
    put_bytes(out, 10, a);
  }
  void frame(const std::string& message) {
    put_varint(bytes_, message.size());
    bytes_ += message;
  }
  std::string bytes_;
};

}  // namespace rehearse::traces::samples
