// SPDX-License-Identifier: Apache-2.0
// Which lane of a rank the threads and streams of a recording are. Lanes get the order in which they are
// first seen.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "traces/model/trace.hpp"

namespace rehearse::traces {

struct LaneKey {
  LaneKind kind = LaneKind::kHostThread;
  int64_t owner = 0;    // process of a thread, GPU of a stream
  int64_t context = 0;  // of CUDA, where streams of several have the same numbers
  int64_t id = 0;       // thread or stream
  bool operator==(const LaneKey&) const = default;
};

class LaneTable {
 public:
  // The lane of `key`, behind those of `lanes` when it is new; nothing when a trace can hold no more.
  [[nodiscard]] std::optional<LaneId> of(const LaneKey& key, std::vector<Lane>& lanes) {
    const Recent& recent = recent_[key.kind == LaneKind::kStream ? 1 : 0];
    if (recent.lane >= 0 && recent.key == key) return static_cast<LaneId>(recent.lane);
    return look_up(key, lanes);
  }
  // Nothing when there is no such lane.
  [[nodiscard]] std::optional<LaneId> find(const LaneKey& key) const;
  // In the order in which they came.
  [[nodiscard]] const std::vector<LaneKey>& keys() const { return keys_; }
  // Per key: the GPU of a stream, kNoDevice of a thread (devices.hpp).
  [[nodiscard]] std::vector<int64_t> devices() const;
  // The name of a thread, as a string id.
  void label(const LaneKey& key, uint32_t name) { labels_[key] = name; }
  [[nodiscard]] size_t labels() const { return labels_.size(); }
  // Names `trace.lanes`, which are all of this table. Streams of GPUs that are not the rank's are told by
  // their GPU: those beside trace.gpu, or beside `communicating` (ascending) where these are several.
  void name(RankTrace& trace, const std::vector<int64_t>& communicating, Strings& strings) const;

 private:
  [[nodiscard]] std::optional<LaneId> look_up(const LaneKey& key, std::vector<Lane>& lanes);

  struct Hash {
    size_t operator()(const LaneKey& k) const;
  };
  struct Recent {
    LaneKey key;
    int64_t lane = -1;  // -1: none yet
  };
  std::unordered_map<LaneKey, LaneId, Hash> lanes_;
  std::unordered_map<LaneKey, uint32_t, Hash> labels_;
  std::vector<LaneKey> keys_;
  std::array<Recent, 2>
      recent_{};  // of threads and of streams: records of one come one after the other
};

}  // namespace rehearse::traces
