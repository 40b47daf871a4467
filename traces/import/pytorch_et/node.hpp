// SPDX-License-Identifier: Apache-2.0
// Nodes of an execution trace that tell of communication: collectives (record_param_comms) and the process
// groups of the job (process_group:init).
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "traces/import/json_stream.hpp"
#include "traces/import/part.hpp"

namespace rehearse::traces::pytorch_et {

// In the name of the node that lists the process groups: "## process_group:init ##".
inline constexpr std::string_view kGroupsNode = "process_group:init";

struct CommNode {
  int64_t id = 0;
  // The rank that the node names, as a place in its group: the recorded one's own, but of rooted collectives
  // the root's (row->peer) and of messages the other end's.
  std::optional<RankId> place;
  bool wait = false;                  // waits for an earlier collective
  std::optional<CallSizes::Row> row;  // nothing: not a collective that is known
  int64_t backend = 0;                // the group as a number of the recorded process; 0: not told
  int64_t first = -1, stride = -1;    // ranks of the group; -1: not told
};

struct GroupNode {
  Communicator group;   // without members: of all ranks
  uint32_t size = 0;    // 0: not told
  int64_t backend = 0;  // by which CommNode::backend names it
};

class NodeParser {
 public:
  NodeParser();
  ~NodeParser();
  // Nothing when the element is not a readable record_param_comms node.
  [[nodiscard]] std::optional<CommNode> parse(const Element& element);
  // Nothing when the element is not a readable process_group:init node.
  [[nodiscard]] std::optional<std::vector<GroupNode>> groups(const Element& element);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rehearse::traces::pytorch_et
