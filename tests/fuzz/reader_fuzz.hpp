// SPDX-License-Identifier: Apache-2.0
// The frame of all targets that read trace files: any bytes into one reader. A reader may refuse, with
// words; what it takes must be what the rest of the program can rely on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "traces/evidence/evidence.hpp"
#include "traces/import/part.hpp"

namespace rehearse::traces {

using FileReader = Result<FilePart> (*)(Source&, ReadContext&);

inline std::string_view fuzz_bytes(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Columns of one length, and ids that point at something.
inline void check_part(const FilePart& part) {
  for (const RankPart& rank : part.ranks) {
    const Operations& ops = rank.trace.ops;
    const size_t n = ops.size();
    if (ops.kind.size() != n || ops.duration.size() != n || ops.lane.size() != n) __builtin_trap();
    for (size_t op = 0; op < n; ++op) {
      if (ops.lane[op] >= rank.trace.lanes.size() || ops.duration[op] < 0) __builtin_trap();
    }
    for (const Call& call : ops.calls) {
      if (call.communicator >= rank.communicators.size()) __builtin_trap();
    }
  }
  for (const pb::Evidence& evidence : part.evidence) {
    if (!complaint_about(evidence).empty()) __builtin_trap();
  }
}

// As a whole file and as one that may be cut.
inline void read_any_bytes(std::string_view bytes, FileReader read,
                           const pb::TableMapping* table = nullptr) {
  for (const CutFiles cut : {CutFiles::kRefuse, CutFiles::kAccept}) {
    auto source = Source::over(bytes, "fuzz", {.max_bytes = 64 << 20});
    if (!source) continue;
    Strings strings;
    Findings findings;
    SilentReporter silent;
    ReadContext context{strings, findings, silent, cut, table};
    const auto part = read(*source, context);
    if (part) {
      check_part(*part);
    } else if (part.error().what.empty()) {
      __builtin_trap();
    }
  }
}

}  // namespace rehearse::traces
