// SPDX-License-Identifier: Apache-2.0
// Every check of accuracy there is, in one list: what `rehearse validate` runs. A check whose data is
// not there is skipped and says what is missing; the others do not notice.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/reporter.hpp"
#include "validation/check.hpp"

namespace rehearse::validation {

struct SuiteOptions {
  std::filesystem::path data;     // folder of real traces and tables; empty: none
  std::vector<std::string> only;  // parts or checks by id; empty: all
};

// Ids of the parts that checks come in, in order.
[[nodiscard]] std::vector<std::string> suite_parts();

// In the order of the parts. kUsage when `only` names neither a part nor a check that was made.
[[nodiscard]] Result<std::vector<Check>> run_suite(const SuiteOptions& options, Reporter& reporter);

}  // namespace rehearse::validation
