// SPDX-License-Identifier: Apache-2.0
// One node of an execution trace that records a collective (record_param_comms).
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "traces/import/json_stream.hpp"
#include "traces/import/part.hpp"

namespace rehearse::traces::pytorch_et {

struct CommNode {
  int64_t id = 0;
  std::optional<RankId> rank;
  bool wait = false;                  // waits for an earlier collective
  std::optional<CallSizes::Row> row;  // nothing: not a collective that is known
};

class NodeParser {
 public:
  NodeParser();
  ~NodeParser();
  // Nothing when the element is not a readable record_param_comms node.
  [[nodiscard]] std::optional<CommNode> parse(const Element& element);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rehearse::traces::pytorch_et
