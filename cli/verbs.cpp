// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace rehearse::cli {

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> list = {
      // In the order in which a newcomer meets them.
      // clang-format off
      demo_verb(),
      run_verb(),
      report_verb(),
      view_verb(),
      capture_verb(),
      import_verb(),
      inspect_verb(),
      synth_verb(),
      export_verb(),
      platforms_verb(),
      nccl_verb(),
      check_verb(),
      faults_verb(),
      diagnose_verb(),
      fix_verb(),
      learn_verb(),
      campaign_verb(),
      at_verb(),
      shrink_verb(),
      export_repro_verb(),
      compare_verb(),
      sweep_verb(),
      serve_verb(),
      calibrate_verb(),
      validate_verb(),
      help_verb(),
      completion_verb(),
      man_verb(),
      // clang-format on
  };
  return list;
}

const Verb* find_verb(const std::string& name) {
  for (const Verb& verb : verbs()) {
    if (verb.name == name) return &verb;
  }
  return nullptr;
}

Result<const Verb*> known_verb(const std::string& name) {
  if (const Verb* verb = find_verb(name)) return verb;
  std::vector<std::string> names;
  for (const Verb& verb : verbs()) names.push_back(verb.name);
  const std::string near = nearest(name, names);
  return fail(Code::kUsage, fmt::format("unknown verb '{}'", name), "",
              near.empty() ? "rehearse help" : fmt::format("did you mean {}?", near));
}

}  // namespace rehearse::cli
