// SPDX-License-Identifier: Apache-2.0
// Errors in what ranks printed: exceptions, time-outs, messages of launchers and libraries. NCCL's own messages are not among
// them (traces/import/nccl_log reads those). Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::faults {

struct PrintedError {
  std::optional<uint32_t> rank;
  std::string text;  // one line, without what a launcher puts before it
};

// Distinct lines, in order, at most kMostPrinted. `rank` is whose output it is; lines that begin with "[rank3]:",
// "[1,3]<stderr>:" or "3: " say so themselves.
[[nodiscard]] std::vector<PrintedError> printed_errors(std::string_view log,
                                                       std::optional<uint32_t> rank);
constexpr size_t kMostPrinted = 1000;

// Whether a line has a sign of trouble, in the words of frameworks, launchers and the kernel.
[[nodiscard]] bool is_trouble(std::string_view line);
// "host:1000:1000 [0] NCCL WARN ...".
[[nodiscard]] bool is_of_nccl(std::string_view line);

}  // namespace rehearse::faults
