// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "traces/import/json_stream.hpp"
#include "traces/import/limits.hpp"
#include "traces/import/names.hpp"
#include "traces/import/pytorch_et/node.hpp"
#include "traces/import/pytorch_et/pytorch_et.hpp"
#include "traces/import/rank_of_name.hpp"

namespace rehearse::traces::pytorch_et {
namespace {

// Groups that the calls name: as the job listed them, else by the ranks that the calls tell.
void name_groups(std::vector<CommNode>& nodes, const std::vector<GroupNode>& listed,
                 CallSizes& sizes) {
  std::map<std::string, size_t> index;
  std::map<int64_t, const std::string*> by_backend;  // names, of `listed`
  uint64_t held = 0;
  for (const GroupNode& g : listed) {
    if (index.emplace(g.group.id, sizes.groups.size()).second) sizes.groups.push_back(g.group);
    by_backend.emplace(g.backend, &g.group.id);
  }
  for (CommNode& node : nodes) {
    if (!node.row) continue;
    CallSizes::Row& row = *node.row;
    if (row.group.empty() && node.backend != 0) {
      const auto known = by_backend.find(node.backend);
      if (known != by_backend.end()) row.group = *known->second;
    }
    if (row.group.empty()) continue;
    const auto [at, added] = index.emplace(row.group, sizes.groups.size());
    if (!added) continue;
    Communicator group{row.group, "", {}, ""};
    const int64_t size = row.group_size;
    if (node.first >= 0 && node.stride > 0 && size > 0 && node.first < kMostRank &&
        node.stride < kMostRank && node.first + (size - 1) * node.stride < kMostRank &&
        held + row.group_size <= kMostMembers) {
      held += row.group_size;
      for (int64_t i = 0; i < size; ++i) {
        group.members.push_back(static_cast<RankId>(node.first + i * node.stride));
      }
    }
    sizes.groups.push_back(std::move(group));
  }
}

// The rank that was recorded, as a node tells it: its place in the group of the call. Rooted collectives and
// messages name somebody else.
std::optional<RankId> rank_of(const CommNode& node, const CallSizes& sizes) {
  if (!node.place || !node.row || is_rooted(node.row->collective) ||
      is_point_to_point(node.row->collective)) {
    return std::nullopt;
  }
  const auto group = std::find_if(sizes.groups.begin(), sizes.groups.end(),
                                  [&](const Communicator& c) { return c.id == node.row->group; });
  if (node.row->group.empty() || group == sizes.groups.end() || group->members.empty()) {
    return node.place;  // of all ranks, as far as anybody says
  }
  if (*node.place >= group->members.size()) return std::nullopt;
  return group->members[*node.place];
}

// By the collectives; a file without any that tells has only waits, which do not tell their group.
void find_rank(const std::vector<CommNode>& nodes, CallSizes& sizes, Findings& findings) {
  for (const CommNode& node : nodes) {
    const auto rank = rank_of(node, sizes);
    if (!rank) continue;
    if (sizes.rank && *sizes.rank != *rank) {
      findings.add("rank-contradiction", Severity::kWarning, sizes.file,
                   "its nodes name several ranks; the first is taken");
    } else {
      sizes.rank = rank;
    }
  }
  if (!sizes.rank) sizes.rank = rank_of_name(sizes.file);
  if (sizes.rank) return;
  for (const CommNode& node : nodes) {
    if (node.wait && node.place) {
      sizes.rank = node.place;
      return;
    }
  }
}

}  // namespace

bool sniff(std::string_view head) {
  const size_t first = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (first == std::string_view::npos || head[first] != '{') return false;
  const auto has = [&](std::string_view text) { return head.find(text) != std::string_view::npos; };
  // The schema may stand behind the nodes; then these tell.
  return has("\"nodes\"") && !has("\"traceEvents\"") &&
         (has("\"schema\"") || (has("\"rf_id\"") && has("\"fw_parent\"")));
}

Result<FilePart> read(Source& source, ReadContext& context) {
  JsonStream stream(source, "nodes", {});
  NodeParser parser;
  std::vector<CommNode> nodes;
  std::vector<GroupNode> groups;
  Element element;
  for (;;) {
    RH_TRY(const JsonStream::Next got, stream.next(element));
    if (got == JsonStream::Next::kEnd) break;
    if (got == JsonStream::Next::kCut) {
      const std::string what =
          fmt::format("the file ends early: {} nodes are whole", stream.count());
      if (context.cut_files == CutFiles::kRefuse || stream.count() == 0) {
        return fail(Code::kBadInput, what, stream.where(stream.offset()),
                    "copy or record it again, or take what is whole with --allow-truncated");
      }
      context.findings.add("file-cut", Severity::kDataLoss, stream.where(stream.offset()), what);
      break;
    }
    if (element.text.find(kGroupsNode) != std::string_view::npos) {
      if (auto listed = parser.groups(element)) {
        std::move(listed->begin(), listed->end(), std::back_inserter(groups));
        continue;
      }
    }
    if (element.text.find("record_param_comms") == std::string_view::npos) continue;
    auto node = parser.parse(element);
    if (!node) {
      context.findings.add("node-unreadable", Severity::kDataLoss, stream.where(element.offset),
                           "this collective's sizes are not known");
      continue;
    }
    if (!node->wait && !node->row) {
      context.findings.add("collective-unknown", Severity::kWarning, stream.where(element.offset),
                           "left out of the execution trace's list of collectives");
    }
    nodes.push_back(std::move(*node));
  }
  if (!stream.saw_array()) {
    return fail(Code::kBadInput, "there is no array of nodes", source.name(),
                "record the execution trace again");
  }
  stream.tell_trailing(context.findings);
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const CommNode& a, const CommNode& b) { return a.id < b.id; });
  CallSizes sizes;
  sizes.file = source.name();
  name_groups(nodes, groups, sizes);
  find_rank(nodes, sizes, context.findings);
  for (CommNode& node : nodes) {
    if (node.row) sizes.rows.push_back(std::move(*node.row));
  }
  FilePart part;
  part.framework = "pytorch";
  for (const GroupNode& g : groups) {
    if (g.group.members.empty() && g.size > 0) {
      part.world_size = std::max(part.world_size.value_or(0), g.size);
    }
  }
  part.sizes.push_back(std::move(sizes));
  return part;
}

}  // namespace rehearse::traces::pytorch_et
