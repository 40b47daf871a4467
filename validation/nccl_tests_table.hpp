// SPDX-License-Identifier: Apache-2.0
// Rows of nccl-tests tables, the collective benchmark everybody runs, with the conditions of their
// table beside each: what the import makes of printed tables and of CSV collections
// (traces/import/nccl_tests), flattened for comparison.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/finding.hpp"
#include "base/units.hpp"
#include "traces/proto/evidence.pb.h"

namespace rehearse::validation {

struct NcclTestRow {
  std::string where;       // "all_reduce.txt: all_reduce#1, 1048576 bytes"
  std::string source;      // the table's id; a collection names tables after their source
  std::string collective;  // "all_reduce", "all_to_all", "sendrecv"
  std::string hardware;    // the GPU's name; empty: not stated
  uint32_t nodes = 0;      // 0: not stated
  uint32_t gpus = 0;       // of all nodes; 0: not stated
  std::string nccl_version;
  std::string algorithm;  // forced; empty: NCCL's choice
  std::string protocol;
  std::string ran_algorithm;  // as NCCL logged for this size; empty: not said
  std::string ran_protocol;
  std::string options;
  std::string type;        // "float"
  std::string reduction;   // "sum"; empty: none
  int32_t iterations = 0;  // averaged over; 0: not stated
  // For which a thread of the host issues calls in turn ("nGpus"); 0: not stated.
  uint32_t gpus_per_thread = 0;
  bool graph = false;  // launched as a CUDA graph
  Bytes bytes = 0;     // the size column
  double time_us = 0;  // out of place, or in place where that is all there is
};

struct NcclTestTables {
  std::vector<NcclTestRow> rows;
  Findings findings;  // rows without a time, lines that could not be read
};

// Rows of one table of `file`.
void add_table_rows(const pb::MeasuredTable& table, const std::string& file,
                    const std::string& collective, NcclTestTables& out);

// Reads one file. `collective` is used where neither the text nor the file's name says which it is.
// kMissingInput, kIo; kBadInput when the file holds no row of a table.
[[nodiscard]] Result<NcclTestTables> read_nccl_tests(const std::filesystem::path& file,
                                                     const std::string& collective);

}  // namespace rehearse::validation
