// SPDX-License-Identifier: Apache-2.0
// Why a run went as it did and what repairs it, found out for a report: causes, fixes, and how sure both are. What is
// simulated for that is in proportion to the job: small ones are searched like `diagnose` and `fix` do, large ones with
// fewer runs, and of an outcome file whose job is too large for any of that the page says which commands to use.
#pragma once

#include "base/error.hpp"
#include "cli/case.hpp"
#include "cli/context.hpp"
#include "cli/report/report.hpp"

namespace rehearse::cli {

// How many runs may be simulated for one explanation.
struct ExplainBudget {
  uint32_t causes = 0;  // looking for causes; 0: none are looked for
  uint32_t ranges = 0;  // drawn for ranges of step times
};

// kAsked: the scenario itself was given, so that some answer is wanted in any case.
enum class Explained { kAsked, kBeside };
// `operations` of one run; `share` of everything that a report may simulate is for this one.
[[nodiscard]] ExplainBudget explain_budget(size_t operations, Explained how, double share);

// Fills diagnosis and fixes of a run. Fixes get as many ranges as the budget has room for.
[[nodiscard]] Result<void> explain(const Case& what, const ExplainBudget& budget, Context& context,
                                   ReportRun& run);

// Explains every outcome of a report that shows a symptom and came without a diagnosis, as far as it says what it was
// simulated from. Where that cannot be done the run says why (ReportRun::unexplained).
[[nodiscard]] Result<void> explain_outcomes(Context& context, Report& report);

}  // namespace rehearse::cli
