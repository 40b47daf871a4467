// SPDX-License-Identifier: Apache-2.0
// A parsed document before it meets a message: a graph of nodes that know where they were written.
// YAML and JSON both become this, so that there is one reader. Aliases share their node, so a walk
// must bound its depth and the number of nodes it visits.
#pragma once

#include <cstdint>
#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace rehearse::document {

constexpr size_t kMaxNodes = 1'000'000;

// YAML is written by people, JSON by to_json: there a bare number is in the stored unit.
enum class Dialect { kYaml, kJson };

struct Node {
  enum class Kind { kNull, kScalar, kSequence, kMapping };
  Kind kind = Kind::kNull;
  int line = 0, column = 0;                // from 1; 0: not from YAML
  std::string text;                        // of a scalar
  std::string pointer;                     // JSON pointer; empty in YAML
  std::vector<const Node*> children = {};  // a mapping's are key, value, key, value, ...
};

struct Tree {
  std::deque<Node> nodes;  // owns what `root` and children point to
  const Node* root = nullptr;
};

// `name` is what places call the text. An empty text is a null node.
[[nodiscard]] Result<Tree> parse_yaml(std::string_view text, const std::string& name);
[[nodiscard]] Result<Tree> tree_of(const nlohmann::ordered_json& json, const std::string& name);

// "file.yaml:12:5", or "name: /json/pointer".
[[nodiscard]] std::string place(const Node& node, const std::string& name);

}  // namespace rehearse::document
