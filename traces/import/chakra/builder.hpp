// SPDX-License-Identifier: Apache-2.0
// Turns the nodes of one Chakra file into the operations of one rank.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "traces/import/chakra/groups.hpp"
#include "traces/import/chakra/node.hpp"
#include "traces/import/lane_table.hpp"
#include "traces/import/notes.hpp"
#include "traces/import/part.hpp"

namespace rehearse::traces::chakra {

class Builder {
 public:
  Builder(ReadContext& context, std::string file, const FileMetadata& metadata);
  // The node that stands at byte `offset`, the `number`-th from 0.
  void add(const Node& node, uint64_t offset, uint64_t number);
  // Operations so far; process groups and left-out nodes do not count.
  [[nodiscard]] size_t operations() const { return part_.trace.ops.size(); }
  // Memory that nodes and dependencies take until they can be joined, about.
  [[nodiscard]] uint64_t held_bytes() const {
    return by_id_.size() * kBytesOfNode + (data_.size() + control_.size()) * sizeof(Pending);
  }
  [[nodiscard]] RankPart finish();

 private:
  static constexpr size_t kBytesOfNode = 40;  // of by_id_, with what the allocator adds
  struct Place {
    uint64_t offset = 0, number = 0;
  };
  struct Pending {  // a dependency whose target may be further down
    uint32_t op = 0;
    uint64_t on = 0;  // id
  };
  struct Exact {  // what our exporter added
    OpKind kind = OpKind::kHost;
    Nanos start = 0, duration = 0;
    LaneId lane = 0;
  };

  void note(const char* id, Severity severity, const Place& place, const char* advice);
  [[nodiscard]] std::optional<Exact> exact_of(const Node& node) const;
  [[nodiscard]] bool times(const Node& node, const Place& place, Nanos& start, Nanos& duration);
  [[nodiscard]] bool lane_of(LaneKind kind, int64_t id, const Place& place, LaneId& lane);
  void add_exact(const Node& node, const Exact& exact, const Place& place);
  void add_recorded(const Node& node, const Place& place);
  void add_operation(const Node& node, OpKind kind, LaneId lane, Nanos start, Nanos duration,
                     const Place& place);
  [[nodiscard]] Call call_of(const Node& node, const Place& place);
  void remember_dependencies(const Node& node, size_t op, const Place& place);
  [[nodiscard]] std::vector<Dependency> resolve(const std::vector<Pending>& pending);
  void unmix_streams();
  void place_in_time(std::vector<Dependency>& dependencies);
  void find_launches(std::vector<Dependency>& dependencies);
  void keep_latest(std::vector<Dependency>& dependencies);
  void complete_calls();
  void read_metadata(const FileMetadata& metadata);
  void name_lanes();

  ReadContext& context_;
  std::string file_;
  RankPart part_;
  bool exact_ = false;        // written by our exporter
  bool has_times_ = false;    // some node has a start
  bool has_streams_ = false;  // GPU nodes say on which stream
  std::vector<ProcessGroup> groups_;
  std::map<std::string, uint32_t, std::less<>> communicators_;  // pg_name -> index
  Notes notes_;
  LaneTable lanes_;
  std::unordered_map<uint64_t, uint32_t> by_id_;
  std::vector<Pending> data_, control_;
  std::vector<std::string> group_of_call_;  // pg_name per call
  std::vector<int64_t> peer_rank_;          // global rank per call, -1: none
};

// The rank that the name of a Chakra file tells: "job.3.et", "chakra.0.json".
[[nodiscard]] std::optional<RankId> rank_of_chakra_name(std::string_view path);

}  // namespace rehearse::traces::chakra
