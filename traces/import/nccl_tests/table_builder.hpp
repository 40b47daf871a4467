// SPDX-License-Identifier: Apache-2.0
// The output of nccl-tests as tables. Takes what is left of each line when NCCL's own messages are
// cut out, so that a row whose halves stand on several lines is put together again. Old and new
// layouts: with and without redop and root, with one or two halves, "res", "error" or "#wrong" as the
// last column, milliseconds (the first version), N/A for what was not checked, blank redop, no header at all. Launchers put names, ranks
// and times before each line: header and rows are found behind them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/finding.hpp"
#include "traces/proto/evidence.pb.h"

namespace rehearse::traces::nccl_tests {

// A run of the program: one header and its rows.
struct Run {
  pb::MeasuredTable table;
  uint32_t number = 0;  // of the run in the file, from 1
  bool redop_column = false, root_column = false, header_seen = false;
  bool milliseconds = false;  // times are, as the first version printed them
  bool cpu_time = false;      // times are of the host (-C)
  bool wrong = false;         // it says at its end that values were wrong
  // Cells from the time of one half to that of the other: 4, more with times per iteration.
  size_t half_cells = 4;
  size_t in_place_at = 0;   // column of the line where the time of the in-place half ends, 0: none
  bool configured = false;  // saw "# nThread"
  std::string configuration;  // that line
  uint64_t twice_line = 0;    // first line that gave a rank a second time, 0: none
};

class TableBuilder {
 public:
  struct Said {
    std::optional<pb::MeasuredDevice> device;
  };
  // One line without NCCL's messages; `line` is its number for findings.
  Said add(std::string_view text, uint64_t line);
  // A version banner of NCCL.
  void tell_version(const std::string& version);
  // Runs so far; the last one is being read.
  [[nodiscard]] uint32_t runs() const { return static_cast<uint32_t>(runs_.size()); }
  // The first message of a test that failed, with its line; "" where none did.
  [[nodiscard]] const std::string& failure() const { return failure_; }
  // Ends the file; the builder is empty then.
  [[nodiscard]] std::vector<Run> finish(Findings& findings, const std::string& file);

 private:
  struct OpenRow {
    pb::MeasuredRow row;
    std::vector<std::string> rest;  // behind the type
    std::vector<size_t> ends;       // columns of the line where they end, 0: of a later line
    uint64_t line = 0;
  };
  Said comment(std::string_view text, size_t column, uint64_t line);
  void read_header(std::string_view text, size_t column);
  void marker(std::string_view text);
  void add_device(const pb::MeasuredDevice& device, uint64_t line);
  Run& begin_run();
  Run& run();
  void close_row();
  void read_configuration(std::string_view text);
  [[nodiscard]] bool continues_row(const std::vector<std::string_view>& words) const;

  std::vector<Run> runs_;
  std::optional<OpenRow> open_;
  std::string next_collective_;  // of a command line that was printed before the run
  std::string version_;
  std::string prefix_;  // what a launcher put before the last comment
  uint64_t incomplete_ = 0, incomplete_line_ = 0, halves_lost_ = 0, half_line_ = 0;
  uint64_t failures_ = 0;
  std::string failure_;  // the first, with its line
};

}  // namespace rehearse::traces::nccl_tests
