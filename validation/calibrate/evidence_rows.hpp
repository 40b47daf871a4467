// SPDX-License-Identifier: Apache-2.0
// Measured times of collectives from evidence of any kind, as rows of one shape: tables of nccl-tests
// as they are; records of NCCL Inspector, the median of equal calls; a recorded trace, by the last
// arriver of each synchronising collective, whose kernel is the transfer and no wait.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/finding.hpp"
#include "base/reporter.hpp"
#include "traces/model/trace.hpp"
#include "traces/proto/evidence.pb.h"
#include "validation/calibrate/interference.hpp"
#include "validation/calibrate/recorded_costs.hpp"
#include "validation/calibrate/trace_costs.hpp"
#include "validation/nccl_tests_table.hpp"

namespace rehearse::validation {

struct EvidenceRows {
  std::vector<NcclTestRow> rows;
  Findings findings;
  std::vector<std::string> files;
  std::vector<TraceCost> costs;         // of the first trace among the files; none without one
  Interference interference;            // of the same
  std::vector<RecordedCosts> recorded;  // NCCL's own costs
};

// `collective` is of tables that do not say. kBadInput when a file holds neither a measured time nor
// NCCL's own costs, nor tells what kernels lose beside collectives.
[[nodiscard]] Result<EvidenceRows> read_measured(const std::vector<std::filesystem::path>& files,
                                                 const std::string& collective, Reporter& reporter);

[[nodiscard]] std::vector<NcclTestRow> inspector_rows(const pb::InspectorRecords& records,
                                                      const std::string& where);
[[nodiscard]] std::vector<NcclTestRow> trace_rows(const traces::Trace& trace,
                                                  const std::string& where);

}  // namespace rehearse::validation
