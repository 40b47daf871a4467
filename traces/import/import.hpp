// SPDX-License-Identifier: Apache-2.0
// The front door of the import: files, folders and globs of any known format in, one Trace out.
// Formats are told by content. Files are read one after the other, merged by rank, their
// collectives matched, clocks aligned and steps found; whatever was ignored, repaired or
// contradictory is a finding.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/finding.hpp"
#include "base/reporter.hpp"
#include "traces/import/part.hpp"
#include "traces/model/trace.hpp"

namespace rehearse::traces {

enum class ClockAlignment { kAlign, kAsRecorded };

struct ImportOptions {
  CutFiles cut_files = CutFiles::kRefuse;
  ClockAlignment clocks = ClockAlignment::kAlign;
  SourceOptions source{};
  uint64_t most_held = kMostHeld;  // bytes, of formats that are not streamed (part.hpp)
  // kLimit beyond these: files of one folder; operations and ranks of all files, looked at after each file.
  uint64_t most_files = 1'000'000;
  uint64_t most_operations = 1'000'000'000;
  uint64_t most_ranks = 1 << 20;
  // A file that says what the columns of tables are (traces/proto/table.proto); "": those shipped.
  std::filesystem::path columns{};
  std::string job{};  // name of the job; "" keeps what the files say
  // Seed of the durations of cloned ranks (symmetric.hpp); without it missing ranks stay missing.
  std::optional<uint64_t> assume_symmetric{};
  Nanos unprofiled_step = 0;  // step time without a profiler (program/overhead.hpp); 0: not known
};

struct Imported {
  Trace trace;  // header.findings holds `findings` too
  Findings findings;
  struct Input {
    std::string file;
    std::string format;
    uint64_t bytes = 0;  // as stored
  };
  std::vector<Input> inputs;  // those that were read
};

// Refused: nothing given (kUsage), a named file that is missing (kMissingInput) or of unknown
// content (kBadInput, with what it looks like and the formats known), a file that is damaged. Files
// inside folders that are of unknown content, or whole but without any operation, are passed over with a
// finding.
[[nodiscard]] Result<Imported> import_files(const std::vector<std::filesystem::path>& inputs,
                                            const ImportOptions& options, Reporter& reporter);

}  // namespace rehearse::traces
