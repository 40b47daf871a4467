// SPDX-License-Identifier: Apache-2.0
// Brings the calls of all ranks together: collectives by (communicator, sequence), send and receive
// by (communicator, sender, receiver, sequence). Ranks come in ascending order. One row per
// collective.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "base/finding.hpp"
#include "traces/inspect/inspection.hpp"
#include "traces/inspect/intervals.hpp"
#include "traces/model/trace.hpp"

namespace rehearse::traces {

struct CallRow {
  MatchedCollective facts;
  Bytes compared = 0;     // what must be equal on all ranks; 0: not known yet
  uint64_t rank_sum = 0;  // of the ranks that called, to name a single missing one
  Nanos next_start = 0;   // of the last but one
  Nanos after_first = 0;  // sum over ranks of start minus that of the first rank seen
  Nanos origin = 0;       // start of the first rank seen
  RankId seen_last = 0;   // rank whose call was added last
  RankId odd_rank = 0;    // first that differed
  bool wanted = false;
  bool kind_differs = false, bytes_differ = false, repeated = false;
};

struct PairRow {
  uint32_t communicator = 0;
  RankId from = 0, to = 0;
  int64_t sequence = 0;
  Bytes sent_bytes = 0, received_bytes = 0;
  uint32_t sends = 0, receives = 0;
  bool wanted = false;
};

class CallMatching {
 public:
  // The communicators are kept until finish(); `recorded` is ascending.
  CallMatching(std::span<const Communicator> communicators, std::span<const RankId> recorded);
  // The calls of a rank as seen on its streams, or on other lanes for communicators without stream
  // calls. Collectives of which no call starts inside `wanted` are left out of what finish() tells.
  void add(const RankTrace& rank, Interval wanted);
  // Counts, last arrivers and mismatches of the wanted rows.
  void finish(Inspection& out);

 private:
  struct Key {
    uint64_t where = 0;  // communicator, and the two ranks of a pair
    uint64_t pair = 0;
    int64_t sequence = 0;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const;
  };
  struct Members {
    std::vector<RankId> sorted;
    uint64_t recorded = 0, recorded_sum = 0;
  };

  void add_collective(const Call& call, Interval span, bool wanted);
  void add_pair(const Call& call, bool wanted);
  void split(CallRow& row) const;
  void judge(const CallRow& row, Inspection& out) const;
  void judge(const PairRow& row, Inspection& out) const;
  [[nodiscard]] bool is_recorded(RankId rank) const;

  std::span<const Communicator> communicators_;
  std::vector<RankId> recorded_;
  std::vector<Members> members_;
  std::unordered_map<Key, uint32_t, Hash> row_of_, pair_of_;
  std::vector<CallRow> rows_;
  std::vector<PairRow> pairs_;
  Findings findings_;
  // Of the rank being added.
  RankId rank_ = 0;
  std::vector<uint8_t> on_stream_;  // per communicator: some call is on a stream
};

}  // namespace rehearse::traces
