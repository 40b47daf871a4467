// SPDX-License-Identifier: Apache-2.0
// The rules of the static check, read from YAML: faults/check/rules in the order of the files' names, then folders of
// the user's own. Immutable once loaded; safe to share.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "faults/check/expression.hpp"
#include "faults/check/subjects.hpp"
#include "faults/proto/check.pb.h"

namespace rehearse::faults {

struct Rule {
  pb::CheckRule text;
  const SubjectKind* each = nullptr;
  Expression when;
  Template what, why, fix, category;
  std::vector<std::pair<Template, Template>> set;  // path and value
};

class Rules {
 public:
  [[nodiscard]] static Result<Rules> load_shipped(
      std::span<const std::filesystem::path> extra = {});
  // One file of rules. Errors carry file:line:column, and for conditions the column inside them.
  [[nodiscard]] Result<void> add(std::string_view text, const std::string& file);
  [[nodiscard]] Result<void> add_tables(std::string_view text, const std::string& file);

  [[nodiscard]] const std::vector<Rule>& all() const { return rules_; }
  [[nodiscard]] const pb::CheckTables& tables() const { return tables_; }

 private:
  std::vector<Rule> rules_;
  pb::CheckTables tables_;
};

}  // namespace rehearse::faults
