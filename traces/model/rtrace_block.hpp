// SPDX-License-Identifier: Apache-2.0
// Operations of one rank to and from one OperationBlock. Differences are taken so that zstd sees
// small repeating numbers. Both directions make the same checks: what is written can be read, and
// what was read is safe to index with (lanes, names, communicators, peers, details and enums are
// all in range; times leave room to add start, duration and clock offset). Errors have no `where`:
// the caller knows the byte.
#pragma once

#include <span>

#include "base/error.hpp"
#include "traces/model/trace.hpp"

namespace rehearse::traces {

constexpr int64_t kMaxTime = int64_t{1} << 62;         // |start| and |step| below this
constexpr int64_t kMaxDuration = int64_t{1} << 61;     // 0 <= duration below this
constexpr int64_t kMaxClockOffset = int64_t{1} << 60;  // |clock offset| below this

// What operations may name. Views; the owners outlive the call.
struct BlockContext {
  std::span<const Lane> lanes;
  size_t strings = 0;
  std::span<const Communicator> communicators;
};

// Operations [first, first + count) of `ops` into an empty `block`. kInternal when they break a
// rule above or are not in order of start.
[[nodiscard]] Result<void> encode_block(const Operations& ops, size_t first, size_t count,
                                        const BlockContext& context, pb::OperationBlock& block);

// Appends the operations of `block` to `ops`; details are numbered in the order of operations.
// kBadInput when anything is out of range; `ops` is then of no use.
[[nodiscard]] Result<void> decode_block(const pb::OperationBlock& block,
                                        const BlockContext& context, Operations& ops);

// Checks of a rank apart from its operations: lanes, steps, clock. "" or what is wrong.
[[nodiscard]] std::string complaint_about(const RankTrace& rank, size_t strings);

}  // namespace rehearse::traces
