// SPDX-License-Identifier: Apache-2.0
// Evidence (evidence.proto) as the rest of the program meets it: read from a file of any of its
// formats, or checked after it was read back from a .rtrace.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/finding.hpp"
#include "base/reporter.hpp"
#include "traces/proto/evidence.pb.h"

namespace rehearse::traces {

// All evidence of one file: an NCCL log, nccl-tests output or CSV, Inspector records, a flight
// recorder dump, or a .rtrace that carries some. kMissingInput, kIo; kBadInput when the content is
// none of these.
[[nodiscard]] Result<std::vector<pb::Evidence>> read_evidence(const std::filesystem::path& path,
                                                              Findings& findings,
                                                              Reporter& reporter);

// The same of bytes in memory; `name` is the file's, which tells the rank of a dump.
[[nodiscard]] Result<std::vector<pb::Evidence>> read_evidence(std::string_view bytes,
                                                              const std::string& name,
                                                              Findings& findings,
                                                              Reporter& reporter);

// "" when columns are of one length and indices point at something, else what is wrong.
[[nodiscard]] std::string complaint_about(const pb::Evidence& evidence);

// The half of a row to go by: out of place, or in place where only that was measured.
[[nodiscard]] inline const pb::MeasuredHalf& measured_half(const pb::MeasuredRow& row) {
  return row.has_out_of_place() ? row.out_of_place() : row.in_place();
}

// Records of NCCL Inspector in one message; a longer file gives several.
constexpr int kInspectorRecordsPerMessage = 65'536;
// Entries of a flight recorder that are kept; PyTorch's own ring holds 2,000 by default.
constexpr int kFlightEntries = 65'536;

}  // namespace rehearse::traces
