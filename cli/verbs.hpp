// SPDX-License-Identifier: Apache-2.0
// One function per verb, each in a file of its own; cli/verbs.cpp puts them in order.
#pragma once

#include <string>

#include "cli/verb.hpp"

namespace rehearse::cli {

Verb at_verb();
Verb capture_verb();
Verb check_verb();
Verb compare_verb();
Verb completion_verb();
Verb demo_verb();
Verb diagnose_verb();
Verb export_verb();
Verb export_repro_verb();
Verb faults_verb();
Verb fix_verb();
Verb help_verb();
Verb import_verb();
Verb inspect_verb();
Verb learn_verb();
Verb man_verb();
Verb nccl_verb();
Verb platforms_verb();
Verb report_verb();
Verb run_verb();
Verb serve_verb();
Verb campaign_verb();
Verb shrink_verb();
Verb sweep_verb();
Verb synth_verb();
Verb calibrate_verb();
Verb validate_verb();
Verb view_verb();

// The verb of that name, or kUsage with the nearest one.
[[nodiscard]] Result<const Verb*> known_verb(const std::string& name);

}  // namespace rehearse::cli
