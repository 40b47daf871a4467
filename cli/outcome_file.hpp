// SPDX-License-Identifier: Apache-2.0
// What verbs that travel and shrink take: a scenario, or an outcome (`rehearse run --json`) and its scenario with it.
#pragma once

#include <optional>
#include <string>

#include "base/error.hpp"
#include "cli/context.hpp"
#include "sim/proto/outcome.pb.h"
#include "sim/scenario/scenario.hpp"
#include "traces/import/recording.hpp"

namespace rehearse::cli {

// A document of `--json` by its name; recordings may end so too and are told by their content.
[[nodiscard]] inline bool is_outcome_file(const std::string& what) {
  return what.ends_with(".json") && !traces::is_recording(what);
}

// What `SCENARIO|OUTCOME` names: a scenario with the edits of the command line, or the one that an outcome is of (no
// edits then), with the outcome.
struct Subject {
  sim::Scenario scenario;
  std::optional<pb::Outcome> outcome;
};
[[nodiscard]] Result<Subject> load_subject(Context& context, const std::string& what);

}  // namespace rehearse::cli
