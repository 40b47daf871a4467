// SPDX-License-Identifier: Apache-2.0
// Tables of nccl-tests, the collective benchmark everybody runs: as its programs print them (with
// or without redop and root, in-place half, prefixes of launchers), or many of them collected in a
// CSV file with the columns of `collected_columns`. Pure functions of the text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/finding.hpp"
#include "base/units.hpp"

namespace rehearse::validation {

struct NcclTestRow {
  std::string where;       // "all_reduce.txt:17"
  std::string source;      // source_file of a collection, else the file's name
  std::string collective;  // "all_reduce", "alltoall", "sendrecv"
  std::string hardware;    // the GPU's name; empty: not stated
  uint32_t nodes = 0;      // 0: not stated
  uint32_t gpus = 0;       // of all nodes; 0: not stated
  std::string nccl_version;
  std::string algorithm;  // forced; empty: NCCL's choice
  std::string protocol;
  std::string options;
  std::string type;       // "float"
  std::string reduction;  // "sum"; empty: none
  Bytes bytes = 0;        // the size column
  double time_us = 0;     // out of place, or in place where that is all there is
};

struct NcclTestTables {
  std::vector<NcclTestRow> rows;
  Findings findings;  // rows without a time, lines that could not be read
};

// Reads one file. `collective` is used where the text does not say which it is ("# Collective test
// starting" or the file's name). kMissingInput, kBadInput with the line when the file holds no row
// of a table, kLimit above 256 MiB.
[[nodiscard]] Result<NcclTestTables> read_nccl_tests(const std::filesystem::path& file,
                                                     const std::string& collective);
// The same from text; `name` stands for the file in places.
[[nodiscard]] Result<NcclTestTables> parse_nccl_tests(std::string_view text,
                                                      const std::string& name,
                                                      const std::string& collective);

// Names of collectives as nccl-tests' programs have them, without _perf.
[[nodiscard]] const std::vector<std::string>& nccl_test_names();

}  // namespace rehearse::validation
