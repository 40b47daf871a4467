// SPDX-License-Identifier: Apache-2.0
#include "faults/check/files/training_script.hpp"

#include <algorithm>

#include "base/document.hpp"

namespace rehearse::faults {

void read_training_script(const std::string& text, const pb::CheckTables& tables,
                          pb::Scenario& document, Findings& findings) {
  const auto found = [&](const std::string& part) { return text.find(part) != std::string::npos; };
  for (const pb::ScriptSign& sign : tables.script_signs()) {
    const bool has = std::any_of(sign.has().begin(), sign.has().end(), found);
    const bool lacks = std::none_of(sign.lacks().begin(), sign.lacks().end(), found);
    if (!has || !lacks) continue;
    const auto set = set_path(document, sign.path(), sign.value());
    if (!set) findings.add("script-sign-wrong", Severity::kWarning, sign.path(), set.error().what);
  }
}

}  // namespace rehearse::faults
