// SPDX-License-Identifier: Apache-2.0
#include "cli/outcome_file.hpp"

#include <filesystem>

#include "cli/report/documents.hpp"
#include "cli/scenario_options.hpp"

namespace rehearse::cli {

Result<Subject> load_subject(Context& context, const std::string& what) {
  if (!is_outcome_file(what)) {
    RH_TRY(Edited edited, load_edited(context, what));
    return Subject{std::move(edited.changed), std::nullopt};
  }
  for (const char* option : {"set", "fault", "patch", "patch-file", "fidelity"}) {
    if (!context.has(option)) continue;
    return fail(Code::kUsage, "an outcome cannot be changed", std::string("--") + option,
                "leave it out, or give the scenario itself");
  }
  RH_TRY(pb::Outcome outcome, read_outcome(what));
  const std::string folder = std::filesystem::path(what).parent_path().string();
  RH_TRY(sim::Scenario scenario, sim::load_origin(outcome.origin(), folder, context.reporter()));
  return Subject{std::move(scenario), std::move(outcome)};
}

}  // namespace rehearse::cli
