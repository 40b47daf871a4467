// SPDX-License-Identifier: Apache-2.0
// What happens when members of one call do not mean the same. NCCL does not compare: each member
// moves what it was told to. So a member that waits for bytes nobody sends waits for ever, and
// bytes of the right number and the wrong meaning are taken as they come.
//
//   different collective, root or size       never ends
//   send longer than its recv                the rest stays in the buffer and is read as the next
//                                            message (corrupts) while it fits there, else never ends
//   send shorter than its recv               never ends
//   same bytes, different type or reduction  ends with wrong numbers (corrupts)
//
// Gather, scatter and all-to-all may differ in size by rank. A type that was not recorded agrees
// with any.
#pragma once

#include "traces/model/trace.hpp"

namespace rehearse::sim {

enum class Agreement : uint8_t { kAgree, kCorrupts, kNeverEnds };

// `credit`: bytes that fit into the buffers between a sender and its receiver.
[[nodiscard]] Agreement agreement(const traces::Call& a, const traces::Call& b, Bytes credit);

// Do two members' views of one call agree?
[[nodiscard]] inline bool agree(const traces::Call& a, const traces::Call& b) {
  return agreement(a, b, 0) == Agreement::kAgree;
}

}  // namespace rehearse::sim
