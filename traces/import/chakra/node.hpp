// SPDX-License-Identifier: Apache-2.0
// One node of a Chakra trace and the metadata of a file, from protobuf or JSON. Views point into the bytes
// that were parsed. Field and attribute names are those of Chakra's et_def.proto; "rehearse_..." are what
// our own exporter adds (traces/export/chakra.hpp). Pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/import/json_stream.hpp"

namespace rehearse::traces::chakra {

// NodeType of et_def.proto.
enum NodeType : uint32_t {
  kInvalid = 0,
  kMetadata = 1,
  kMemoryLoad = 2,
  kMemoryStore = 3,
  kCompute = 4,
  kSend = 5,
  kRecv = 6,
  kCollective = 7,
  kStorage = 8,
  kBatch = 9,
  kCheckpoint = 10,
};

struct Attribute {
  std::string_view name;
  std::optional<int64_t> number{};        // integers and booleans; saturated
  std::string_view text{};                // strings and bytes
  std::vector<int64_t> numbers{};         // of an integer list
  std::vector<std::string_view> texts{};  // of a string list
};

struct Node {
  uint64_t id = 0;
  std::string_view name;
  uint32_t type = kInvalid;
  std::vector<uint64_t> control, data;  // ids of nodes it depends on
  uint64_t start_micros = 0, duration_micros = 0;
  std::string_view input_values;
  std::vector<Attribute> attributes;

  [[nodiscard]] const Attribute* attribute(std::string_view key) const;
  [[nodiscard]] std::optional<int64_t> number(std::string_view key) const;
  [[nodiscard]] std::string_view text(std::string_view key) const;
};

// What stands before the nodes.
struct FileMetadata {
  FileMetadata() = default;
  FileMetadata(FileMetadata&&) = default;
  FileMetadata& operator=(FileMetadata&&) = default;
  std::string schema;  // "1.0.1", "1.1.0-chakra.0.0.4"; "" when not told
  std::vector<Attribute> attributes;
  std::vector<char> bytes;  // owns what the attributes view; they survive a move, not a copy
  [[nodiscard]] const Attribute* attribute(std::string_view key) const;
  [[nodiscard]] std::string text(std::string_view key) const;  // "" when not told
};

// Nothing when the bytes are no such message.
[[nodiscard]] std::optional<FileMetadata> parse_metadata(std::string_view message);
[[nodiscard]] bool parse_node(std::string_view message, Node& node);

// Nodes as JSON objects in either spelling ("NodeType": 4, or "type": "COMP_NODE" with "attr").
class JsonNodes {
 public:
  JsonNodes();
  ~JsonNodes();
  // False when it is no JSON object.
  [[nodiscard]] bool parse(const Element& element, Node& node);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rehearse::traces::chakra
