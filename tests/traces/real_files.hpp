// SPDX-License-Identifier: Apache-2.0
// The table of real files (REHEARSE_DATA): every file below the folders named in real_files_test.cpp has
// a row that says what an import of it gives, by a reading that is independent of the importers (python's
// json, csv and sqlite3). Each format has its table in real_files_<format>.cpp and is listed in
// real_files_test.cpp.
#pragma once

#include <cstddef>
#include <span>

namespace rehearse::traces::real {

// -1: not looked at.
struct Counts {
  long ranks = 1;
  long operations = -1, kernels = -1, calls = -1, copies = -1, memsets = -1, steps = -1;
  // Of evidence: communicators of logs, lines that tell a choice, distinct connections, rows of
  // tables, records of NCCL Inspector, entries of flight recorders.
  long communicators = -1, choices = -1, connections = -1, rows = -1, records = -1, entries = -1;
};

struct File {
  const char* path;    // below the data folder
  const char* format;  // as the table of formats names it; "" when the file is refused
  Counts counts{};
  // Imported: the id of a finding that must be there; refused: words of the reason; "" for neither.
  const char* says = "";
};

[[nodiscard]] std::span<const File> kineto_files();
[[nodiscard]] std::span<const File> execution_trace_files();
[[nodiscard]] std::span<const File> nsys_files();
[[nodiscard]] std::span<const File> straggler_files();
[[nodiscard]] std::span<const File> nccl_files();
[[nodiscard]] std::span<const File> flight_recorder_files();
[[nodiscard]] std::span<const File> chakra_files();
[[nodiscard]] std::span<const File> horovod_files();
[[nodiscard]] std::span<const File> tensorflow_files();

}  // namespace rehearse::traces::real
